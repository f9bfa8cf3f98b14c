// The steps of code generation that object files and PTX share. Library functions are disabled in the optimiser,
// because neither IREE's loader nor a GPU driver could resolve calls of them.
#include "passes/codegen/common/LlvmBackend.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"

#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/TargetSelect.h"

using namespace tilewright;

/// Registers X86 and NVPTX. The known targets need no other code generators, and a statically linked build contains no
/// others.
static void initialiseTargets() {
  static bool initialised = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // parses inline assembly
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

std::unique_ptr<llvm::Module> tilewright::translateKernels(mlir::Operation *kernels, llvm::LLVMContext &context,
                                                           llvm::TargetMachine &machine) {
  std::unique_ptr<llvm::Module> module = mlir::translateModuleToLLVMIR(kernels, context, "tilewright_kernels");
  if (module) {
    module->setTargetTriple(machine.getTargetTriple());
    module->setDataLayout(machine.createDataLayout());
  }
  return module;
}

static void describeKernel(llvm::json::OStream &json, mlir::LLVM::LLVMFuncOp kernel) {
  json.attribute("name", kernel.getName());
  for (auto [field, attr] : {std::pair<llvm::StringRef, llvm::StringRef>{"workgroups", kWorkgroupsAttr},
                             {"threads", kThreadsAttr},
                             {"outputs", kOutputsAttr},
                             {"block_bytes", kBlockBytesAttr}})
    if (auto number = kernel->getAttrOfType<mlir::IntegerAttr>(attr))
      json.attribute(field, number.getInt());
  json.attributeArray("binding_bytes", [&] {
    for (int64_t bytes : kernel->getAttrOfType<mlir::DenseI64ArrayAttr>(kBindingBytesAttr).asArrayRef())
      json.value(bytes);
  });
}

std::string tilewright::describeKernels(llvm::ArrayRef<mlir::LLVM::LLVMFuncOp> kernels) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, /*IndentSize=*/2);
  json.array([&] {
    for (mlir::LLVM::LLVMFuncOp kernel : kernels)
      json.object([&] { describeKernel(json, kernel); });
  });
  return text;
}
