// Compiles the kernel module to PTX in process: lowers NVVM ops that are inline assembly, translates to LLVM IR,
// optimises and prints. It needs neither libdevice nor the CUDA toolkit. Math functions have been expanded before, so
// any call that is left is an error here.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/common/LlvmBackend.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
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

  void runOnOperation() override {
    auto kernels = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    auto module = kernels ? kernels.lookupSymbol<gpu::GPUModuleOp>(kGpuModule) : gpu::GPUModuleOp();
    if (!module)
      return;
    llvm::Expected<Target> known = lookupTarget(target);
    if (!known)
      return fail(llvm::toString(known.takeError()));
    std::string reason;
    known->features = llvm::join(without(known->features, ("+" + kWarpgroupFeature).str()), ",");
    if (isOfArchitecture(module))
      known->cpu = kWarpgroupFeature.str();
    std::unique_ptr<llvm::TargetMachine> machine = makeMachine(*known, reason);
    if (!machine)
      return fail("no code generator for target '" + known->name + "': " + reason);
    OpPassManager lower(gpu::GPUModuleOp::getOperationName());
    lower.addPass(createConvertNVVMToLLVMPass());
    if (failed(runPipeline(lower, module)))
      return signalPassFailure();
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> translated = translateKernels(module, context, *machine);
    if (!translated)
      return fail("the kernels could not be translated to LLVM IR");
    optimise(*translated, *machine, tuning());
    if (SmallVector<std::string> missing = undefinedFunctions(*translated); !missing.empty())
      return fail("the kernels call '" + llvm::join(missing, "', '") +
                  "', which PTX lacks; leave the op that needs it out of the plan");
    SmallVector<char> ptx;
    if (!emitCode(*translated, *machine, llvm::CodeGenFileType::AssemblyFile, ptx))
      return fail("target '" + known->name + "' cannot print PTX");
    if (path.empty())
      return fail("tile-emit-ptx needs a path for the PTX");
    StringRef text(ptx.data(), ptx.size());
    for (auto [file, content] : {std::pair<std::string, std::string>{path, text.str()}, {manifest, describe(module)}})
      if (!file.empty())
        if (llvm::Error error = writeFile(file, content))
          return fail("cannot write '" + file + "': " + llvm::toString(std::move(error)));
    bytes += ptx.size();
  }
};
} // namespace
