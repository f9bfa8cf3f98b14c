// The kernel module to an ELF object, in process: translate to LLVM IR, optimise, emit for the target's CPU. Loop-idiom
// recognition is off (it would call memcpy and memset) and so is auto-vectorisation (the vectors are chosen).
#include "passes/Passes.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace tilewright {
#define GEN_PASS_DEF_EMITOBJECT
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
std::unique_ptr<llvm::TargetMachine> makeMachine(const Target &target, std::string &error) {
  static bool initialised = [] {
    // The only code generator that the table's CPU targets need, and that a statically linked build contains.
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialised;
  llvm::Triple triple(target.triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(triple, target.cpu, target.features, options,
                                                                           llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                           llvm::CodeGenOptLevel::Aggressive));
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.LoopUnrolling = false; // the nests have as many lanes as pay; more of them would only spill
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

/// Full-width registers are wanted even where the CPU's default prefers half, because the code is written for them.
void setFunctionAttributes(llvm::Function &function, const Target &target) {
  std::string width = std::to_string(target.vectorBytes * 8);
  function.addFnAttr("prefer-vector-width", width);
  function.addFnAttr("min-legal-vector-width", width);
  function.addFnAttr("target-cpu", target.cpu);
  function.addFnAttr("target-features", target.features);
  function.addFnAttr("no-builtins");
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

bool emit(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
          SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind))
    return false;
  passes.run(module);
  return true;
}

/// Names that the loader would have to provide.
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
    llvm::Error error = llvm::writeToOutput(file, [&](llvm::raw_ostream &stream) {
      stream << bytes;
      return llvm::Error::success();
    });
    if (!error)
      return success();
    fail("cannot write '" + file + "': " + llvm::toString(std::move(error)));
    return failure();
  }

  static std::string describe(ModuleOp kernels) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::json::OStream json(stream, /*IndentSize=*/2);
    json.arrayBegin();
    for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
      if (!kernel->hasAttr(kWorkgroupsAttr) || kernel.getLinkage() == LLVM::Linkage::Internal)
        continue;
      json.objectBegin();
      json.attribute("name", kernel.getName());
      for (auto [field, attr] : {std::pair<StringRef, StringRef>{"workgroups", kWorkgroupsAttr},
                                 {"outputs", kOutputsAttr},
                                 {"block_bytes", kBlockBytesAttr}})
        json.attribute(field, kernel->getAttrOfType<IntegerAttr>(attr).getInt());
      json.attributeArray("binding_bytes", [&] {
        for (int64_t bytes : kernel->getAttrOfType<DenseI64ArrayAttr>(kBindingBytesAttr).asArrayRef())
          json.value(bytes);
      });
      json.objectEnd();
    }
    json.arrayEnd();
    return text;
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
    std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "tilewright_kernels");
    if (!module)
      return fail("the kernels could not be translated to LLVM IR");
    module->setTargetTriple(machine->getTargetTriple());
    module->setDataLayout(machine->createDataLayout());
    for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
      llvm::Expected<Target> own = lookupTarget(targetOf(kernel, target));
      if (!own)
        return fail(llvm::toString(own.takeError()));
      if (!kernel.isExternal())
        setFunctionAttributes(*module->getFunction(kernel.getName()), *own);
    }
    optimise(*module, *machine);
    if (!dumpAssembly.empty()) {
      SmallVector<char> assembly;
      std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*module);
      if (!emit(*copy, *machine, llvm::CodeGenFileType::AssemblyFile, assembly) ||
          failed(write(dumpAssembly, StringRef(assembly.data(), assembly.size()))))
        return fail("cannot print assembly for target '" + known->name + "'");
    }
    SmallVector<char> object;
    if (!emit(*module, *machine, llvm::CodeGenFileType::ObjectFile, object))
      return fail("target '" + known->name + "' cannot emit objects");
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
