#include "passes/codegen/cpu/LlvmBackend.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/TargetSelect.h"

using namespace tilewright;

/// The only code generators that the table's targets need, and that a statically linked build contains.
static void initialiseTargets() {
  static bool initialised = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialised;
}

std::unique_ptr<llvm::TargetMachine> tilewright::makeMachine(const Target &target, std::string &error) {
  initialiseTargets();
  llvm::Triple triple(target.triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(triple, target.cpu, target.features, options,
                                                                           llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                           llvm::CodeGenOptLevel::Aggressive));
}

void tilewright::optimise(llvm::Module &module, llvm::TargetMachine &machine, llvm::PipelineTuningOptions tuning) {
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

bool tilewright::emitCode(llvm::Module &module, llvm::TargetMachine &machine, llvm::CodeGenFileType kind,
                          llvm::SmallVectorImpl<char> &bytes) {
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind))
    return false;
  passes.run(module);
  return true;
}

llvm::Error tilewright::writeFile(llvm::StringRef path, llvm::StringRef bytes) {
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
    stream << bytes;
    return llvm::Error::success();
  });
}
