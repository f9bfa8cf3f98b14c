// Compiles the kernel module to an ELF object, in process: translates it to LLVM IR, optimises it, selects the
// instructions of masked accesses (MaskedAccesses.cpp) and emits code for the target's CPU. Loop-idiom recognition is
// off, because it would call memcpy and memset. Auto-vectorisation is off, because vectors have been chosen already.
#include "dialects/tile/TargetOf.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/common/LlvmBackend.h"
#include "passes/codegen/cpu/AssemblyErrors.h"
#include "passes/codegen/cpu/MaskedAccesses.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace tilewright {
#define GEN_PASS_DEF_EMITOBJECT
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
llvm::PipelineTuningOptions tuning() {
  llvm::PipelineTuningOptions options;
  options.LoopVectorization = false;
  options.SLPVectorization = false;
  options.LoopInterleaving = false;
  options.LoopUnrolling = false; // nests have as many lanes as pay off
  return options;
}

/// Sets attributes of a kernel function. Full-width registers are preferred even if the CPU's default is half of them,
/// because the code has vectors of that width.
void setFunctionAttributes(llvm::Function &function, const Target &target) {
  std::string width = std::to_string(target.vectorBytes * 8);
  function.addFnAttr("prefer-vector-width", width);
  function.addFnAttr("min-legal-vector-width", width);
  function.addFnAttr("target-cpu", target.cpu);
  function.addFnAttr("target-features", target.features);
  function.addFnAttr("no-builtins");
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

/// Returns the symbols that the loader would have to provide.
SmallVector<std::string> undefinedSymbols(StringRef object) {
  SmallVector<std::string> names;
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(object, "kernels"));
  if (!file) {
    names.push_back(llvm::toString(file.takeError()));
    return names;
  }
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<StringRef> name = symbol.getName();
    if (flags && name && (*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty())
      names.push_back(name->str());
    llvm::consumeError(flags.takeError());
    llvm::consumeError(name.takeError());
  }
  return names;
}

struct EmitObject : tilewright::impl::EmitObjectBase<EmitObject> {
  using EmitObjectBase::EmitObjectBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerBuiltinDialectTranslation(registry);
    registerLLVMDialectTranslation(registry);
  }

  void fail(const Twine &message) {
    getOperation().emitError(message);
    signalPassFailure();
  }

  LogicalResult write(StringRef file, StringRef bytes) {
    llvm::Error error = writeFile(file, bytes);
    if (!error)
      return success();
    fail("cannot write '" + file + "': " + llvm::toString(std::move(error)));
    return failure();
  }

  static std::string describe(ModuleOp kernels) {
    return describeKernels(
        llvm::to_vector(llvm::make_filter_range(kernels.getOps<LLVM::LLVMFuncOp>(), [](LLVM::LLVMFuncOp kernel) {
          return kernel->hasAttr(kWorkgroupsAttr) && kernel.getLinkage() != LLVM::Linkage::Internal;
        })));
  }

  void runOnOperation() override {
    auto kernels = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    if (!kernels)
      return;
    llvm::Expected<Target> known = lookupTarget(target);
    if (!known)
      return fail(llvm::toString(known.takeError()));
    std::string reason;
    std::unique_ptr<llvm::TargetMachine> machine = makeMachine(*known, reason);
    if (!machine)
      return fail("no code generator for target '" + known->name + "': " + reason);
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module = translateKernels(kernels, context, *machine);
    if (!module)
      return fail("the kernels could not be translated to LLVM IR");
    for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
      llvm::Expected<Target> own = lookupTarget(targetOf(kernel, target));
      if (!own)
        return fail(llvm::toString(own.takeError()));
      if (!kernel.isExternal())
        setFunctionAttributes(*module->getFunction(kernel.getName()), *own);
    }
    AssemblyErrors errors(kernels, *module);
    if (!errors.first().empty())
      return fail(errors.first());
    optimise(*module, *machine, tuning());
    for (llvm::Function &function : *module)
      if (!function.isDeclaration())
        useNativeMasks(function, *machine);
    if (!dumpAssembly.empty()) {
      SmallVector<char> assembly;
      std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*module);
      if (!emitCode(*copy, *machine, llvm::CodeGenFileType::AssemblyFile, assembly) ||
          failed(write(dumpAssembly, StringRef(assembly.data(), assembly.size()))))
        return fail("cannot print assembly for target '" + known->name + "'");
    }
    SmallVector<char> object;
    if (!emitCode(*module, *machine, llvm::CodeGenFileType::ObjectFile, object))
      return fail("target '" + known->name + "' cannot emit objects");
    if (!errors.first().empty())
      return fail(errors.first());
    StringRef bytesOut(object.data(), object.size());
    SmallVector<std::string> missing = undefinedSymbols(bytesOut);
    if (!missing.empty())
      return fail("the kernels call '" + llvm::join(missing, "', '") +
                  "', which IREE's loader does not provide; leave the op that needs it out of the plan");
    if (path.empty())
      return fail("tile-emit-object needs a path for the object");
    if (failed(write(path, bytesOut)) || (!manifest.empty() && failed(write(manifest, describe(kernels)))))
      return;
    bytes += object.size();
  }
};
} // namespace
