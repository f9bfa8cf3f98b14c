// Compiles the kernel module to ELF objects, in process: translates it to LLVM IR, optimises it, selects the
// instructions of masked accesses (MaskedAccesses.cpp) and emits code for the target's CPU. Loop-idiom recognition is
// off, because it would call memcpy and memset. Auto-vectorisation is off, because vectors have been chosen already.
// Kernels do not depend on each other, so each becomes an object of its own, in parallel.
#include "dialects/tile/TargetOf.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/common/LlvmBackend.h"
#include "passes/codegen/cpu/AssemblyErrors.h"
#include "passes/codegen/cpu/JoinAssembly.h"
#include "passes/codegen/cpu/MaskedAccesses.h"
#include "passes/codegen/cpu/SplitKernels.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Object/ArchiveWriter.h"
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

  /// The code of a part of the kernels, or the reason why there is none.
  struct Part {
    std::string object, assembly, error;
  };

  /// Compiles a part. Each call has a code generator of its own, so several may run at once.
  void compile(ModuleOp kernels, const Target &known, Part &part) {
    std::string reason;
    std::unique_ptr<llvm::TargetMachine> machine = makeMachine(known, reason);
    if (!machine) {
      part.error = "no code generator for target '" + known.name + "': " + reason;
      return;
    }
    llvm::LLVMContext context;
    std::unique_ptr<llvm::Module> module = translateKernels(kernels, context, *machine);
    if (!module) {
      part.error = "the kernels could not be translated to LLVM IR";
      return;
    }
    for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
      llvm::Expected<Target> own = lookupTarget(targetOf(kernel, target));
      if (!own) {
        part.error = llvm::toString(own.takeError());
        return;
      }
      if (!kernel.isExternal())
        setFunctionAttributes(*module->getFunction(kernel.getName()), *own);
    }
    AssemblyErrors errors(kernels, *module);
    part.error = errors.first();
    if (!part.error.empty())
      return;
    optimise(*module, *machine, tuning());
    for (llvm::Function &function : *module)
      if (!function.isDeclaration())
        useNativeMasks(function, *machine);
    part.error = emit(*module, *machine, part);
    if (part.error.empty())
      part.error = errors.first();
  }

  /// Emits the code of a part. Returns the reason if that fails.
  std::string emit(llvm::Module &module, llvm::TargetMachine &machine, Part &part) {
    SmallVector<char> bytes;
    if (!dumpAssembly.empty()) {
      std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
      if (!emitCode(*copy, machine, llvm::CodeGenFileType::AssemblyFile, bytes))
        return "cannot print assembly for target '" + target + "'";
      part.assembly.assign(bytes.begin(), bytes.end());
      bytes.clear();
    }
    if (!emitCode(module, machine, llvm::CodeGenFileType::ObjectFile, bytes))
      return "target '" + target + "' cannot emit objects";
    part.object.assign(bytes.begin(), bytes.end());
    SmallVector<std::string> missing = undefinedSymbols(part.object);
    if (missing.empty())
      return "";
    return "the kernels call '" + llvm::join(missing, "', '") +
           "', which IREE's loader does not provide; leave the op that needs it out of the plan";
  }

  /// Returns the object of the only part, or an archive of all objects.
  static llvm::Expected<std::string> joinObjects(ArrayRef<Part> parts) {
    if (parts.size() == 1)
      return parts.front().object;
    std::vector<std::string> names;
    for (size_t number = 0; number < parts.size(); ++number)
      names.push_back("kernels." + std::to_string(number) + ".o");
    std::vector<llvm::NewArchiveMember> members;
    for (auto [part, name] : llvm::zip_equal(parts, names))
      members.emplace_back(llvm::MemoryBufferRef(part.object, name));
    auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                              llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
    if (!archive)
      return archive.takeError();
    return (*archive)->getBuffer().str();
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    auto kernels = getOperation().lookupSymbol<ModuleOp>(kKernelModule);
    if (!kernels)
      return;
    llvm::Expected<Target> known = lookupTarget(target);
    if (!known)
      return fail(llvm::toString(known.takeError()));
    if (path.empty())
      return fail("tile-emit-object needs a path for the object");
    SmallVector<OwningOpRef<ModuleOp>> modules = splitKernels(kernels);
    if (modules.empty())
      return;
    std::vector<Part> parts(modules.size());
    mlir::parallelFor(&getContext(), 0, modules.size(),
                      [&](size_t number) { compile(*modules[number], *known, parts[number]); });
    std::vector<std::string> assembly;
    for (const Part &part : parts) {
      if (!part.error.empty())
        return fail(part.error);
      assembly.push_back(part.assembly);
    }
    if (!dumpAssembly.empty() && failed(write(dumpAssembly, joinAssembly(assembly))))
      return;
    llvm::Expected<std::string> objects = joinObjects(parts);
    if (!objects)
      return fail(llvm::toString(objects.takeError()));
    if (failed(write(path, *objects)) || (!manifest.empty() && failed(write(manifest, describe(kernels)))))
      return;
    bytes += objects->size();
  }
};
} // namespace
