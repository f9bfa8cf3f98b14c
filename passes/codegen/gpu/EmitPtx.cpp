// Compiles the kernel module to PTX in process: lowers NVVM ops that are inline assembly, translates to LLVM IR,
// optimises and prints. It needs neither libdevice nor the CUDA toolkit. Math functions have been expanded before, so
// any call that is left is an error here. Kernels do not depend on each other, so they are compiled in parallel.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/common/LlvmBackend.h"
#include "passes/codegen/gpu/JoinPtx.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/IR/LLVMContext.h"

namespace tilewright {
#define GEN_PASS_DEF_EMITPTX
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
llvm::PipelineTuningOptions tuning() {
  llvm::PipelineTuningOptions options;
  options.LoopVectorization = false;
  options.SLPVectorization = false; // kernels are already vectorised
  return options;
}

struct EmitPtx : tilewright::impl::EmitPtxBase<EmitPtx> {
  using EmitPtxBase::EmitPtxBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
    registerGPUDialectTranslation(registry);
    registerNVVMDialectTranslation(registry);
  }

  void fail(const Twine &message) {
    getOperation().emitError(message);
    signalPassFailure();
  }

  static std::string describe(gpu::GPUModuleOp module) {
    return describeKernels(llvm::to_vector(llvm::make_filter_range(
        module.getOps<LLVM::LLVMFuncOp>(), [](LLVM::LLVMFuncOp function) { return function->hasAttr(kThreadsAttr); })));
  }

  /// Returns the functions that the kernels call but that are not defined: the driver would refuse to load such a
  /// module.
  static SmallVector<std::string> undefinedFunctions(const llvm::Module &module) {
    SmallVector<std::string> names;
    for (const llvm::Function &function : module)
      if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty())
        names.push_back(function.getName().str());
    return names;
  }

  /// Returns true if the module has instructions of one architecture (`sm_90a`), which newer GPUs do not run.
  static bool isOfArchitecture(gpu::GPUModuleOp module) {
    return module.walk([](NVVM::WgmmaFenceAlignedOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }

  static SmallVector<StringRef> without(StringRef features, StringRef feature) {
    SmallVector<StringRef> parts;
    features.split(parts, ',', -1, /*KeepEmpty=*/false);
    llvm::erase(parts, feature);
    return parts;
  }

  /// Returns a module for each kernel, with all variables and with the functions that kernels call, which are inlined.
  static SmallVector<OwningOpRef<gpu::GPUModuleOp>> splitByKernel(gpu::GPUModuleOp module) {
    auto isKernel = [](Operation &op) { return isa<LLVM::LLVMFuncOp>(op) && op.hasAttr(kThreadsAttr); };
    SmallVector<OwningOpRef<gpu::GPUModuleOp>> modules;
    for (Operation &kernel : llvm::make_filter_range(*module.getBody(), isKernel)) {
      modules.emplace_back(cast<gpu::GPUModuleOp>(module->cloneWithoutRegions()));
      OpBuilder builder = OpBuilder::atBlockEnd(&modules.back()->getBodyRegion().emplaceBlock());
      for (Operation &op : *module.getBody())
        if (&op == &kernel || !isKernel(op))
          if (auto called = dyn_cast<LLVM::LLVMFuncOp>(builder.clone(op)); called && &op != &kernel)
            called.setAlwaysInline(!called.isExternal());
    }
    return modules;
  }

  /// Lowers ops of NVVM that are inline assembly.
  static LogicalResult lowerAssembly(gpu::GPUModuleOp module) {
    ConversionTarget target(*module.getContext());
    target.addLegalDialect<LLVM::LLVMDialect>();
    RewritePatternSet patterns(module.getContext());
    populateNVVMToLLVMConversionPatterns(patterns);
    return applyPartialConversion(module, target, std::move(patterns));
  }

  /// Compiles a module to PTX, which changes it. Each call has a code generator of its own, so several may run at once.
  LogicalResult compile(gpu::GPUModuleOp module, const Target &machine, std::string &ptx) {
    auto emitError = [&] { return mlir::emitError(getOperation().getLoc()); };
    std::string reason;
    std::unique_ptr<llvm::TargetMachine> generator = makeMachine(machine, reason);
    if (!generator)
      return emitError() << "no code generator for target '" << machine.name << "': " << reason;
    if (failed(lowerAssembly(module)))
      return failure();
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> translated = translateKernels(module, context, *generator);
    if (!translated)
      return emitError() << "the kernels could not be translated to LLVM IR";
    optimise(*translated, *generator, tuning());
    if (SmallVector<std::string> missing = undefinedFunctions(*translated); !missing.empty())
      return emitError() << "the kernels call '" << llvm::join(missing, "', '")
                         << "', which PTX lacks; leave the op that needs it out of the plan";
    SmallVector<char> text;
    if (!emitCode(*translated, *generator, llvm::CodeGenFileType::AssemblyFile, text))
      return emitError() << "target '" << machine.name << "' cannot print PTX";
    ptx.assign(text.begin(), text.end());
    return success();
  }

  void runOnOperation() override {
    markAllAnalysesPreserved(); // each kernel is lowered in a copy
    auto kernels = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    auto module = kernels ? kernels.lookupSymbol<gpu::GPUModuleOp>(kGpuModule) : gpu::GPUModuleOp();
    if (!module)
      return;
    llvm::Expected<Target> known = lookupTarget(target);
    if (!known)
      return fail(llvm::toString(known.takeError()));
    if (path.empty())
      return fail("tile-emit-ptx needs a path for the PTX");
    known->features = llvm::join(without(known->features, ("+" + kWarpgroupFeature).str()), ",");
    if (isOfArchitecture(module))
      known->cpu = kWarpgroupFeature.str();
    SmallVector<OwningOpRef<gpu::GPUModuleOp>> modules = splitByKernel(module);
    std::vector<std::string> texts(modules.size());
    auto compileOne = [&](size_t number) { return compile(*modules[number], *known, texts[number]); };
    if (failed(failableParallelForEachN(&getContext(), 0, modules.size(), compileOne)))
      return signalPassFailure();
    std::string ptx = joinPtx(texts);
    for (auto [file, content] : {std::pair<std::string, std::string>{path, ptx}, {manifest, describe(module)}})
      if (!file.empty())
        if (llvm::Error error = writeFile(file, content))
          return fail("cannot write '" + file + "': " + llvm::toString(std::move(error)));
    bytes += ptx.size();
  }
};
} // namespace
