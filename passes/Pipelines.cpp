// Defines the pipelines. They go from IREE's module to a plan (normalize, plan), from there to tile programs, and from
// those to objects. This file orders the stages and the passes that all machines share; the Pipeline.cpp of a backend
// orders its own.
#include "passes/Pipelines.h"
#include "passes/Passes.h"
#include "passes/backend/Backend.h"
#include "passes/backend/common/Stages.h"
#include "passes/backend/cpu/CpuBackend.h"
#include "passes/backend/cuda/CudaBackend.h"
#include "passes/plan/fusion/Explorers.h"
#include "passes/plan/space/GroupMemo.h"
#include "passes/target/MachineKind.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include <mutex>

using namespace mlir;
using namespace tilewright;

void tilewright::registerDialects(DialectRegistry &registry) {
  registry.insert<tile::TileDialect, affine::AffineDialect, arith::ArithDialect, bufferization::BufferizationDialect,
                  cf::ControlFlowDialect, complex::ComplexDialect, func::FuncDialect, gpu::GPUDialect,
                  linalg::LinalgDialect, LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect,
                  scf::SCFDialect, tensor::TensorDialect, ub::UBDialect, vector::VectorDialect>();
  addGroupMemo(registry);
  registerBackends();
}

void tilewright::registerBackends() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::string cpu = registerBackend(std::make_unique<CpuBackend>());
    std::string cuda = registerBackend(std::make_unique<CudaBackend>());
    assert(cpu.empty() && cuda.empty() && "no other backend takes these names");
    (void)cpu, (void)cuda;
  });
}

namespace {
const MachineTraits &traitsOf(const Backend &backend) { return findMachineKind(backend.name())->traits; }

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

/// Verifies the module at the end of a phase. Compilations have no verifier after every pass (`NativeModule::run`).
struct VerifyPhase : PassWrapper<VerifyPhase, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(VerifyPhase)

  StringRef getName() const override { return "VerifyPhase"; }
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(mlir::verify(getOperation())))
      signalPassFailure();
  }
};

/// Adds the passes that the caller named for a stage.
void extend(OpPassManager &manager, const std::string &passes) {
  std::string reason;
  llvm::raw_string_ostream stream(reason);
  if (!passes.empty() && failed(parsePassPipeline(passes, manager, stream)))
    manager.addPass(std::make_unique<RefusePasses>(
        "the passes '" + passes + "' of a stage are no pipeline: " + StringRef(reason).split('\n').first.str()));
}

/// Stores packed weights. This comes after planning, because the plan does not depend on where weights are packed, and
/// where kernels may have several weights in one binding, after code generation.
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
void buildPlanning(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  FormSubprogramsOptions form;
  form.target = options.target;
  form.cores = options.cores;
  form.blockBytes = options.blockBytes;
  form.numerics = options.numerics;
  form.policy = options.policy;
  form.planSeconds = options.planSeconds;
  form.planIn = options.planIn;
  form.planOut = options.planOut;
  form.report = options.report;
  form.gridSync = options.gridSync;
  std::unique_ptr<Pass> formed = createFormSubprograms(form);
  restrictPlan(*formed, options);
  manager.addPass(std::move(formed));
  manager.addNestedPass<func::FuncOp>(createApplyNumerics());
  manager.addNestedPass<func::FuncOp>(createComposeExprs());
  manager.addNestedPass<func::FuncOp>(createCseSubprograms());
  backend.populatePlanned(manager, options);
  if (!traitsOf(backend).sharesBindings)
    storeWeights(manager, options);
  extend(manager, options.atPlanned);
  manager.addPass(std::make_unique<VerifyPhase>());
  manager.addPass(createVerifyPlanned());
  maybeFail(manager, options, "planned");
}

/// Has forms chosen by a search, if the policy has one and ops may share kernels.
void searchForms(OpPassManager &manager, const KernelOptions &options) {
  if (!options.fuse || formSearchOf(options.policy).value_or(FormSearchKind::none) == FormSearchKind::none)
    return;
  SearchFormsOptions search;
  search.target = options.target;
  search.cores = options.cores;
  search.numerics = options.numerics;
  search.gridSync = options.gridSync;
  search.policy = options.policy;
  search.planSeconds = options.planSeconds;
  manager.addPass(createSearchForms(search));
}

void buildNormalized(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  manager.addPass(createImportIree());
  if (!options.planIn.empty())
    manager.addPass(createRequestForms({options.planIn}));
  else
    searchForms(manager, options);
  backend.populateNormalize(manager, options);
  extend(manager, options.atNormalized);
  manager.addPass(std::make_unique<VerifyPhase>());
}

void buildPrograms(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  buildPlanning(manager, options, backend);
  LowerToProgramOptions lower;
  lower.target = options.target;
  manager.addPass(createLowerToProgram(lower));
  extend(manager, options.atPrograms);
  manager.addPass(std::make_unique<VerifyPhase>());
}

/// Puts loops into the kernels of their bodies, where blocks can wait for each other.
void repeatLaunches(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  if (!traitsOf(backend).threadBlocks)
    return;
  RepeatLaunchesOptions repeat;
  repeat.target = options.target;
  manager.addPass(createRepeatLaunches(repeat));
}

/// Compiles tile programs to kernels.
void buildKernels(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  maybeFail(manager, options, "program");
  backend.populateKernels(manager, options);
  repeatLaunches(manager, options, backend);
  manager.addPass(std::make_unique<VerifyPhase>());
}

/// Stores weights that could not be stored before.
void storeLateWeights(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  if (traitsOf(backend).sharesBindings)
    storeWeights(manager, options);
}

/// Compiles tile programs to objects.
void buildCodegen(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  buildKernels(manager, options, backend);
  backend.populateObject(manager, options);
}

/// Compiles a normalized function to the launches of its kernels and an object, or to the kernels that the simulated
/// device runs.
void buildSubprogram(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  buildPrograms(manager, options, backend);
  buildKernels(manager, options, backend);
  if (!backend.isSimulated())
    backend.populateObject(manager, options);
  storeLateWeights(manager, options, backend);
}

/// Compiles a model to the kernels that the simulated device runs.
void buildSimulated(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  buildNormalized(manager, options, backend);
  buildPrograms(manager, options, backend);
  buildKernels(manager, options, backend);
  storeLateWeights(manager, options, backend);
}

void buildModel(OpPassManager &manager, const KernelOptions &options, const Backend &backend) {
  buildNormalized(manager, options, backend);
  buildPrograms(manager, options, backend);
  backend.populateLaunches(manager, options);
  buildCodegen(manager, options, backend);
  storeLateWeights(manager, options, backend);
  manager.addPass(createAlignBindings());
  backend.populateSplice(manager, options);
  manager.addPass(createExportIree());
  manager.addPass(std::make_unique<VerifyPhase>());
}

using BuildPipeline = void (*)(OpPassManager &manager, const KernelOptions &options, const Backend &backend);

/// Registers a pipeline. One that writes code fails at once if it is not told where to.
void registerPipeline(const std::string &name, StringRef summary, BuildPipeline build, const Backend &backend,
                      bool writesCode) {
  registerPassPipeline(
      name, summary,
      [name, build, &backend, writesCode](OpPassManager &manager, StringRef text,
                                          function_ref<LogicalResult(const Twine &)> fail) -> LogicalResult {
        KernelOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        if (writesCode && options.objectPath.empty())
          return fail(name + " needs object-path=FILE, the file that the kernels are written to");
        build(manager, options, backend);
        return success();
      },
      [](function_ref<void(const detail::PassOptions &)> show) { show(KernelOptions()); });
}
} // namespace

void tilewright::registerPipelinesOf(const Backend &backend) {
  std::string name = "tilewright-" + backend.name().str();
  auto add = [&](const std::string &suffix, const std::string &summary, BuildPipeline build, bool writesCode = false) {
    registerPipeline(name + suffix, summary, build, backend, writesCode);
  };
  std::string form = backend.isSimulated() ? "kernels that the simulated device runs" : "an object";
  add("", "Fuse an IREE module at its preprocessing phase into kernels", buildModel, /*writesCode=*/true);
  add("-normalize", "Prepare an IREE module for planning", buildNormalized);
  add("-subprogram", "Compile a function of tile-print-subprograms to " + form, buildSubprogram,
      /*writesCode=*/!backend.isSimulated());
  add("-codegen", "Compile a kernel module's tile programs to an object", buildCodegen, /*writesCode=*/true);
  if (backend.isSimulated())
    add("-kernels", "Fuse an IREE module into " + form, buildSimulated);
}

void tilewright::registerAllPassesAndPipelines() {
  registerTilewrightPasses();
  registerTransformsPasses();
  registerBackends();
  for (const Backend *backend : backends())
    registerPipelinesOf(*backend);
}
