// Defines the pipelines. This is the only file that orders passes. Functions that build pipelines go from IREE's module
// to a plan (normalize, plan), from there to tile programs, and from those to an object or PTX.
#include "passes/Pipelines.h"
#include "passes/Passes.h"
#include "passes/iree/Variants.h"
#include "passes/plan/space/GroupMemo.h"
#include "passes/program/InjectFailure.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tilewright;

void tilewright::registerDialects(DialectRegistry &registry) {
  registry.insert<tile::TileDialect, affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                  cf::ControlFlowDialect, complex::ComplexDialect, func::FuncDialect, gpu::GPUDialect,
                  linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect,
                  scf::SCFDialect, tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  addGroupMemo(registry);
}

namespace {
struct KernelOptions : PassPipelineOptions<KernelOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("target name or JSON file"), llvm::cl::init("cpu")};
  ListOption<std::string> variants{*this, "variants",
                                   llvm::cl::desc("more targets, the narrowest last, of which the processor chooses")};
  Option<std::string> objectPath{*this, "object-path", llvm::cl::desc("path of the object file to write")};
  Option<std::string> planIn{*this, "plan-in", llvm::cl::desc("JSON plan to carry out instead of planning")};
  Option<std::string> planOut{*this, "plan-out", llvm::cl::desc("write the plan as JSON")};
  Option<std::string> report{*this, "report", llvm::cl::desc("write a report on the plan and its reasons as JSON")};
  ListOption<std::string> scopes{*this, "scopes", llvm::cl::desc("scopes of parameter files that can be rewritten")};
  Option<std::string> recipes{*this, "recipes", llvm::cl::desc("write recipes of the parameters to store as JSON")};
  Option<std::string> manifest{*this, "manifest", llvm::cl::desc("write the kernels' signatures as JSON")};
  Option<std::string> numerics{*this, "numerics", llvm::cl::init("default"),
                               llvm::cl::desc("default, or strict: every rounding to bf16 and f16 as in the graph")};
  Option<int64_t> cores{*this, "cores", llvm::cl::desc("hardware threads to plan for; 0: the target's"),
                        llvm::cl::init(0)};
  Option<int64_t> blockBytes{*this, "block-bytes",
                             llvm::cl::desc("memory of a block in bytes that plans may use; 0: the target's"),
                             llvm::cl::init(0)};
  Option<bool> countBytes{*this, "count-bytes", llvm::cl::init(false),
                          llvm::cl::desc("instrument kernels to count bytes moved; IREE cannot run them then")};
  Option<bool> traceAccesses{*this, "trace-accesses", llvm::cl::init(false),
                             llvm::cl::desc("instrument kernels to record addresses; IREE cannot run them then")};
  Option<bool> gridSync{*this, "grid-sync", llvm::cl::init(true),
                        llvm::cl::desc("join kernels by grid barriers, if the target has them")};
  Option<std::string> policy{*this, "policy", llvm::cl::init("greedy"),
                             llvm::cl::desc("planning policy: greedy, unfused or exhaustive")};
  Option<bool> fuse{*this, "fuse", llvm::cl::init(true), llvm::cl::desc("let ops share kernels")};
  ListOption<int64_t> unfused{*this, "unfused", llvm::cl::desc("numbers in the plan of ops that share no kernel")};
  ListOption<int64_t> left{*this, "left", llvm::cl::desc("numbers in the plan of ops that stay with IREE")};
  Option<std::string> atNormalized{*this, "at-normalized",
                                   llvm::cl::desc("passes to run on the module before it is planned")};
  Option<std::string> atPlanned{*this, "at-planned",
                                llvm::cl::desc("passes to run on the planned module, before the plan is verified")};
  Option<std::string> atPrograms{*this, "at-programs",
                                 llvm::cl::desc("passes to run on the module with tile programs")};
  Option<std::string> failAt{*this, "fail-at", llvm::cl::Hidden,
                             llvm::cl::desc("for tests: the stage at which to fail: planned, program or code")};
  ListOption<std::string> failOn{*this, "fail-on", llvm::cl::Hidden,
                                 llvm::cl::desc("for tests: substrings of locations in the kernel that fails")};
  Option<bool> failByCrash{*this, "fail-by-crash", llvm::cl::Hidden, llvm::cl::init(false),
                           llvm::cl::desc("for tests: end the process instead of failing a pass")};
  Option<bool> assumeTiles{*this, "assume-tiles", llvm::cl::init(false),
                           llvm::cl::desc("do not request permission to use AMX in kernels, for emulators")};
  Option<std::string> dumpAssembly{*this, "dump-assembly", llvm::cl::desc("write the kernels' assembly")};
};

/// Fails with the reason why passes that the caller named for a stage are no pipeline.
struct RefusePasses : PassWrapper<RefusePasses, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RefusePasses)

  explicit RefusePasses(StringRef reason) : reason(reason.str()) {}
  void runOnOperation() override {
    getOperation().emitError(reason);
    signalPassFailure();
  }

  std::string reason;
};

/// Adds the passes that the caller named for a stage.
void extend(OpPassManager &manager, const std::string &passes) {
  std::string reason;
  llvm::raw_string_ostream stream(reason);
  if (!passes.empty() && failed(parsePassPipeline(passes, manager, stream)))
    manager.addPass(std::make_unique<RefusePasses>(
        "the passes '" + passes + "' of a stage are no pipeline: " + StringRef(reason).split('\n').first.str()));
}

/// Adds a pass that fails if a test requests a failure at this stage.
void maybeFail(OpPassManager &manager, const KernelOptions &options, StringRef stage) {
  if (options.failAt != stage)
    return;
  manager.addPass(
      createInjectFailure(SmallVector<std::string>(options.failOn.begin(), options.failOn.end()), options.failByCrash));
}

/// Lowers kernels from functions over vectors and memrefs to the LLVM dialect, for every target.
void lowerToLlvm(OpPassManager &kernels, const std::string &target, bool isGpu) {
  kernels.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  kernels.addNestedPass<func::FuncOp>(createCSEPass());
  kernels.addNestedPass<func::FuncOp>(math::createMathExtendToSupportedTypes());
  LowerMathOptions math;
  math.target = target;
  kernels.addPass(createLowerMath(math));
  arith::ArithEmulateUnsupportedFloatsOptions widen;
  widen.sourceTypeStrs = {"bf16", "f16"};
  widen.targetTypeStr = "f32";
  kernels.addNestedPass<func::FuncOp>(arith::createArithEmulateUnsupportedFloats(widen));
  if (!isGpu)
    kernels.addNestedPass<func::FuncOp>(arith::createArithExpandOpsPass());
  EmulateInstructionsOptions emulate;
  emulate.target = target;
  kernels.addNestedPass<func::FuncOp>(createEmulateInstructions(emulate));
  kernels.addNestedPass<func::FuncOp>(createCSEPass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertVectorToLLVMPass());
  kernels.addPass(createFinalizeMemRefToLLVMConversionPass());
  kernels.addNestedPass<func::FuncOp>(createConvertMathToLLVMPass());
  kernels.addPass(createArithToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions function;
  function.useBarePtrCallConv = true;
  kernels.addPass(createConvertFuncToLLVMPass(function));
  kernels.addPass(createConvertControlFlowToLLVMPass());
  kernels.addPass(createUBToLLVMConversionPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

/// Compiles tile programs to an object.
void buildCodegen(OpPassManager &manager, const KernelOptions &options) {
  maybeFail(manager, options, "program");
  auto &kernels = manager.nest<ModuleOp>();
  StageTransposesOptions stage;
  stage.target = options.target;
  kernels.addNestedPass<tile::ProgramOp>(createStageTransposes(stage));
  WidenBuffersOptions widen;
  widen.target = options.target;
  kernels.addNestedPass<tile::ProgramOp>(createWidenBuffers(widen));
  kernels.addNestedPass<tile::ProgramOp>(createAllocateBuffers());
  kernels.addNestedPass<tile::ProgramOp>(createVerifyPrograms());
  MakeVariantsOptions variants;
  variants.targets.push_back(options.target);
  variants.targets.append(options.variants.begin(), options.variants.end());
  kernels.addPass(createMakeVariants(variants));
  ConvertToVectorOptions convert;
  convert.target = options.target;
  kernels.addPass(createConvertToVector(convert));
  if (options.countBytes)
    kernels.addNestedPass<func::FuncOp>(createInstrumentBytes());
  if (options.traceAccesses)
    kernels.addNestedPass<func::FuncOp>(createTraceAccesses());
  lowerToLlvm(kernels, options.target, /*isGpu=*/false);
  WrapCpuAbiOptions wrap;
  wrap.assumeTiles = options.assumeTiles;
  kernels.addPass(createWrapCpuAbi(wrap));
  maybeFail(manager, options, "code");
  EmitObjectOptions emit;
  emit.target = options.target;
  emit.path = options.objectPath;
  emit.manifest = options.manifest;
  emit.dumpAssembly = options.dumpAssembly;
  manager.addPass(createEmitObject(emit));
}

/// Compiles tile programs to kernels in the NVVM dialect, which the simulated device can run.
void buildCudaKernels(OpPassManager &manager, const KernelOptions &options) {
  maybeFail(manager, options, "program");
  RewriteMovementOptions movement;
  movement.target = options.target;
  manager.addPass(createRewriteMovement(movement));
  auto &programs = manager.nest<ModuleOp>();
  KeepResidentTilesOptions keep;
  keep.target = options.target;
  keep.gridSync = options.gridSync;
  programs.addNestedPass<tile::ProgramOp>(createKeepResidentTiles(keep));
  StageTilesOptions stage;
  stage.target = options.target;
  programs.addNestedPass<tile::ProgramOp>(createStageTiles(stage));
  programs.addNestedPass<tile::ProgramOp>(createAllocateBuffers());
  programs.addNestedPass<tile::ProgramOp>(createInsertSyncs());
  PartitionAtGridSyncOptions partition;
  partition.target = options.target;
  partition.gridSync = options.gridSync;
  manager.addPass(createPartitionAtGridSync(partition));
  AllocatePartialsOptions partials;
  partials.target = options.target;
  manager.addPass(createAllocatePartials(partials));
  auto &kernels = manager.nest<ModuleOp>();
  PipelineLoadsOptions pipeline;
  pipeline.target = options.target;
  kernels.addNestedPass<tile::ProgramOp>(createPipelineLoads(pipeline));
  kernels.addNestedPass<tile::ProgramOp>(createVerifyPrograms());
  ConvertToGpuOptions convert;
  convert.target = options.target;
  kernels.addPass(createConvertToGpu(convert));
  lowerToLlvm(kernels, options.target, /*isGpu=*/true);
  kernels.addPass(createWrapCudaAbi());
  maybeFail(manager, options, "code");
  ShareBindingsOptions share;
  share.target = options.target;
  manager.addPass(createShareBindings(share));
}

/// Compiles tile programs to PTX.
void buildCudaCodegen(OpPassManager &manager, const KernelOptions &options) {
  buildCudaKernels(manager, options);
  EmitPtxOptions emit;
  emit.target = options.target;
  emit.path = options.objectPath;
  emit.manifest = options.manifest;
  manager.addPass(createEmitPtx(emit));
  for (auto [number, variant] : llvm::enumerate(options.variants)) {
    EmitPtxOptions also;
    also.target = variant;
    also.path = variantPath(options.objectPath, number);
    manager.addPass(createEmitPtx(also));
  }
}

/// Adds rewrites whose sums and divisions have another order than those of the graph.
void buildRegrouping(OpPassManager &manager, const KernelOptions &options, bool isGpu) {
  manager.addNestedPass<func::FuncOp>(createDeferNormalization());
  if (isGpu) {
    SplitReductionsOptions split;
    split.target = options.target;
    split.gridSync = options.gridSync;
    manager.addNestedPass<func::FuncOp>(createSplitReductions(split));
  }
  MarkOnlineSoftmaxOptions run;
  run.target = options.target;
  manager.addNestedPass<func::FuncOp>(createMarkOnlineSoftmax(run));
}

/// Normalizes a module's functions for planning. On GPUs weights are packed after planning, because the plan decides
/// their layout.
void buildNormalizing(OpPassManager &manager, const KernelOptions &options, bool isGpu) {
  LowerQuantizedMatmulOptions narrow;
  narrow.numerics = options.numerics;
  manager.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass()); // IREE leaves bitcasts as they are
  manager.addNestedPass<func::FuncOp>(createExpandArgCompare());
  manager.addNestedPass<func::FuncOp>(createExpandQuantization());
  manager.addNestedPass<func::FuncOp>(createLowerQuantizedMatmul(narrow));
  if (!isGpu) {
    manager.addNestedPass<func::FuncOp>(createConvolutionToMatmul());
    manager.addNestedPass<func::FuncOp>(createLowerQuantizedMatmul(narrow)); // former convolutions
  }
  manager.addNestedPass<func::FuncOp>(createNormalizeExprs());
  if (options.numerics != "strict") {
    OnePassVarianceOptions shift;
    shift.target = options.target;
    manager.addNestedPass<func::FuncOp>(createOnePassVariance(shift));
  }
  if (!isGpu) {
    CollapseDimsOptions collapse; // after passes that cut along the dims of the model
    collapse.target = options.target;
    manager.addNestedPass<func::FuncOp>(createCollapseDims(collapse));
  }
  if (options.numerics != "strict")
    buildRegrouping(manager, options, isGpu);
  if (isGpu)
    return;
  MergeContractionsOptions merge;
  merge.target = options.target;
  manager.addNestedPass<func::FuncOp>(createMergeContractions(merge));
  PackWeightsOptions pack;
  pack.target = options.target;
  pack.numerics = options.numerics;
  manager.addNestedPass<func::FuncOp>(createPackWeights(pack));
}

/// Stores packed weights. This comes after planning, because the plan does not depend on where weights are packed, and
/// on GPUs after code generation, because kernels may have several weights in one binding.
void storeWeights(OpPassManager &manager, const KernelOptions &options) {
  StoreWeightsOptions store;
  store.scopes.append(options.scopes.begin(), options.scopes.end());
  store.recipes = options.recipes;
  manager.addPass(createStoreWeights(store));
}

/// Passes restrictions on to the planner. A plan from a file has them built in.
void restrictPlan(Pass &form, const KernelOptions &options) {
  auto list = [](const auto &ops) {
    return llvm::join(llvm::map_range(ops, [](int64_t op) { return std::to_string(op); }), ",");
  };
  std::string text = options.fuse ? "" : "fuse=false";
  if (!options.unfused.empty())
    text += " unfused=" + list(options.unfused);
  if (!options.left.empty())
    text += " left=" + list(options.left);
  if (failed(form.initializeOptions(text, [](const Twine &error) { return failure(); })))
    llvm_unreachable("options that the pass has");
}

/// Plans normalized functions, and composes the expressions of the planned graphs.
void buildPlanning(OpPassManager &manager, const KernelOptions &options, bool isGpu) {
  FormSubprogramsOptions form;
  form.target = options.target;
  form.cores = options.cores;
  form.blockBytes = options.blockBytes;
  form.numerics = options.numerics;
  form.policy = options.policy;
  form.planIn = options.planIn;
  form.planOut = options.planOut;
  form.report = options.report;
  form.gridSync = options.gridSync;
  std::unique_ptr<Pass> formed = createFormSubprograms(form);
  restrictPlan(*formed, options);
  manager.addPass(std::move(formed));
  manager.nest<func::FuncOp>().nest<tile::SubprogramOp>().addPass(createApplyNumerics());
  manager.addNestedPass<func::FuncOp>(createComposeExprs());
  manager.nest<func::FuncOp>().nest<tile::SubprogramOp>().addPass(createCSEPass());
  if (isGpu)
    manager.addNestedPass<func::FuncOp>(createSwizzleWeights());
  else
    storeWeights(manager, options);
  extend(manager, options.atPlanned);
  manager.addPass(createVerifyPlanned());
  maybeFail(manager, options, "planned");
}

void buildNormalized(OpPassManager &manager, const KernelOptions &options) {
  manager.addPass(createImportIree());
  buildNormalizing(manager, options, /*isGpu=*/false);
  extend(manager, options.atNormalized);
}

void buildPrograms(OpPassManager &manager, const KernelOptions &options, bool isGpu) {
  buildPlanning(manager, options, isGpu);
  LowerToProgramOptions lower;
  lower.target = options.target;
  if (isGpu)
    lower.workgroupStaging = 0; // tensors that every block reads stay in L1 and L2
  manager.addPass(createLowerToProgram(lower));
  extend(manager, options.atPrograms);
}

/// Compiles a normalized function to an object and the launches of its kernels.
void buildSubprogram(OpPassManager &manager, const KernelOptions &options) {
  buildPrograms(manager, options, /*isGpu=*/false);
  buildCodegen(manager, options);
}

void buildCpu(OpPassManager &manager, const KernelOptions &options) {
  buildNormalized(manager, options);
  buildPrograms(manager, options, /*isGpu=*/false);
  manager.addPass(createTieResults());
  buildCodegen(manager, options);
  SpliceIreeOptions splice;
  splice.object = options.objectPath;
  manager.addPass(createAlignBindings());
  manager.addPass(createSpliceIree(splice));
  manager.addPass(createExportIree());
}

void buildCudaNormalized(OpPassManager &manager, const KernelOptions &options) {
  manager.addPass(createImportIree());
  buildNormalizing(manager, options, /*isGpu=*/true);
  extend(manager, options.atNormalized);
}

void buildCudaPrograms(OpPassManager &manager, const KernelOptions &options) {
  buildCudaNormalized(manager, options);
  buildPrograms(manager, options, /*isGpu=*/true);
}

/// Compiles a normalized function to kernels in the NVVM dialect and their launches.
void buildCudaSubprogram(OpPassManager &manager, const KernelOptions &options) {
  buildPrograms(manager, options, /*isGpu=*/true);
  buildCudaKernels(manager, options);
  storeWeights(manager, options);
}

void buildCudaSimulated(OpPassManager &manager, const KernelOptions &options) {
  buildCudaPrograms(manager, options);
  buildCudaKernels(manager, options);
  storeWeights(manager, options);
}

void buildCuda(OpPassManager &manager, const KernelOptions &options) {
  buildCudaPrograms(manager, options);
  buildCudaCodegen(manager, options);
  storeWeights(manager, options);
  SpliceIreeOptions splice;
  splice.object = options.objectPath;
  splice.target = options.target;
  splice.variants.append(options.variants.begin(), options.variants.end());
  manager.addPass(createAlignBindings());
  manager.addPass(createSpliceIree(splice));
  manager.addPass(createExportIree());
}
/// Registers a pipeline that writes code, and that fails at once if it is not told where to.
void registerEmitting(StringRef name, StringRef summary, void (*build)(OpPassManager &, const KernelOptions &)) {
  registerPassPipeline(
      name, summary,
      [name = name.str(), build](OpPassManager &manager, StringRef text,
                                 function_ref<LogicalResult(const Twine &)> fail) -> LogicalResult {
        KernelOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        if (options.objectPath.empty())
          return fail(name + " needs object-path=FILE, the file that the kernels are written to");
        build(manager, options);
        return success();
      },
      [](function_ref<void(const detail::PassOptions &)> show) { show(KernelOptions()); });
}
} // namespace

void tilewright::registerAllPassesAndPipelines() {
  registerTilewrightPasses();
  registerTransformsPasses();
  registerEmitting("tilewright-cpu", "Fuse an IREE module at its preprocessing phase into CPU kernels", buildCpu);
  PassPipelineRegistration<KernelOptions>("tilewright-cpu-normalize", "Prepare an IREE module for planning",
                                          buildNormalized);
  registerEmitting("tilewright-cpu-subprogram", "Compile a function of tile-print-subprograms to an object",
                   buildSubprogram);
  registerEmitting("tilewright-cpu-codegen", "Compile a kernel module's tile programs to an object", buildCodegen);
  registerEmitting("tilewright-cuda", "Fuse an IREE module at its preprocessing phase into CUDA kernels", buildCuda);
  PassPipelineRegistration<KernelOptions>(
      "tilewright-cuda-kernels", "Fuse an IREE module into CUDA kernels at the NVVM dialect", buildCudaSimulated);
  PassPipelineRegistration<KernelOptions>("tilewright-cuda-normalize", "Prepare an IREE module for planning on a GPU",
                                          buildCudaNormalized);
  PassPipelineRegistration<KernelOptions>("tilewright-cuda-subprogram",
                                          "Compile a function of tile-print-subprograms to the NVVM dialect",
                                          buildCudaSubprogram);
  registerEmitting("tilewright-cuda-codegen", "Compile a kernel module's tile programs to PTX", buildCudaCodegen);
}
