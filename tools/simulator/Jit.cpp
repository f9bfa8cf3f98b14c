// Compiles with LLVM's ORC JIT. The module links against the runtime's functions and against conversions of half and
// bfloat, for which LLVM emits library calls on hosts without instructions for them.
#include "tools/simulator/Jit.h"
#include "tools/simulator/Machine.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/ThreadSafeModule.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace tilewright::simulator;

//===----------------------------------------------------------------------===//
// Conversions that some hosts have no instruction for
//===----------------------------------------------------------------------===//

// The x86-64 ABI passes half and bfloat in the low bits of a vector register, like float.
static float fromNarrow(const llvm::fltSemantics &semantics, float bits) {
  llvm::APFloat value(semantics, llvm::APInt(16, llvm::bit_cast<uint32_t>(bits) & 0xffff));
  bool inexact = false;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToFloat();
}

static float toNarrow(const llvm::fltSemantics &semantics, llvm::APFloat value) {
  bool inexact = false;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  return llvm::bit_cast<float>(uint32_t(value.bitcastToAPInt().getZExtValue()));
}

static float extendHalf(float bits) { return fromNarrow(llvm::APFloat::IEEEhalf(), bits); }
static float truncateToHalf(float value) { return toNarrow(llvm::APFloat::IEEEhalf(), llvm::APFloat(value)); }
static float truncateDoubleToHalf(double value) { return toNarrow(llvm::APFloat::IEEEhalf(), llvm::APFloat(value)); }
static float truncateToBfloat(float value) { return toNarrow(llvm::APFloat::BFloat(), llvm::APFloat(value)); }
static float truncateDoubleToBfloat(double value) { return toNarrow(llvm::APFloat::BFloat(), llvm::APFloat(value)); }

static std::vector<std::pair<const char *, void *>> hostFunctions() {
  std::vector<std::pair<const char *, void *>> functions = runtimeFunctions();
  functions.push_back({"__extendhfsf2", reinterpret_cast<void *>(&extendHalf)});
  functions.push_back({"__truncsfhf2", reinterpret_cast<void *>(&truncateToHalf)});
  functions.push_back({"__truncdfhf2", reinterpret_cast<void *>(&truncateDoubleToHalf)});
  functions.push_back({"__truncsfbf2", reinterpret_cast<void *>(&truncateToBfloat)});
  functions.push_back({"__truncdfbf2", reinterpret_cast<void *>(&truncateDoubleToBfloat)});
  return functions;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

static void initialiseHost() {
  static bool initialised = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialised;
}

/// Optimises the code at O1. Vectorisation and unrolling are off, because a call precedes every memory access.
static void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = false;
  tuning.LoopInterleaving = tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O1).run(module, modules);
}

llvm::Expected<std::unique_ptr<Jit>> Jit::compile(ModuleOp module) {
  initialiseHost();
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  auto context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, *context);
  if (!code)
    return llvm::createStringError("the kernel has no translation to LLVM IR");
  llvm::Expected<llvm::orc::JITTargetMachineBuilder> host = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!host)
    return host.takeError();
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = host->createTargetMachine();
  if (!machine)
    return machine.takeError();
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  optimise(*code, **machine);

  auto result = std::make_unique<Jit>();
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*host)).create();
  if (!jit)
    return jit.takeError();
  result->jit = std::move(*jit);
  llvm::orc::SymbolMap symbols;
  for (auto [name, pointer] : hostFunctions())
    symbols[result->jit->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(pointer),
                                                   llvm::JITSymbolFlags::Exported};
  llvm::orc::JITDylib &main = result->jit->getMainJITDylib();
  if (llvm::Error error = main.define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return error;
  if (llvm::Error error = result->jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(code), std::move(context))))
    return error;
  return result;
}

llvm::Expected<void *> Jit::address(llvm::StringRef symbol) {
  llvm::Expected<llvm::orc::ExecutorAddr> found = jit->lookup(symbol);
  if (!found)
    return found.takeError();
  return found->toPtr<void *>();
}
