// Implements modules, pipelines and plans over MLIR, and converts targets and plans to and from JSON.
#include "core/Core.h"
#include "core/Diagnostics.h"
#include "core/Ir.h"
#include "core/PassNotes.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/Pipelines.h"
#include "passes/plan/ir/PlanLoops.h"
#include "passes/support/ParseJson.h"
#include "passes/target/Target.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <mutex>

using namespace mlir;
using namespace tilewright;

/// Returns true for ops of a copy of the module in which a choice of forms is tried.
static bool isInTrial(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto module = dyn_cast<ModuleOp>(op); module && module.getSymName() == kTrialModule)
      return true;
  return false;
}

namespace {
/// Lets LLVM's crash handler print which pass ran on which op, in lines such as "Running pass 'tile-compose' on
/// 'func.func'". The entries are a stack per thread, because passes nest in each thread.
class CrashContext : public PassInstrumentation {
public:
  void runBeforePass(Pass *pass, Operation *op) override {
    auto symbol = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    std::string name = symbol ? " @" + symbol.str() : "";
    entries.push_back(std::make_unique<llvm::PrettyStackTraceFormat>(
        "Running pass '%s' on '%s'%s\n", pass->getArgument().str().c_str(), op->getName().getStringRef().str().c_str(),
        name.c_str()));
  }
  void runAfterPass(Pass *, Operation *) override { entries.pop_back(); }
  void runAfterPassFailed(Pass *, Operation *) override { entries.pop_back(); }

private:
  static thread_local std::vector<std::unique_ptr<llvm::PrettyStackTraceEntry>> entries;
};
thread_local std::vector<std::unique_ptr<llvm::PrettyStackTraceEntry>> CrashContext::entries;
} // namespace

struct NativeModule::State {
  MLIRContext *mlir() { return unwrap(context->get()); }

  std::shared_ptr<NativeContext> context = std::make_shared<NativeContext>();
  OwningOpRef<ModuleOp> module; // destroyed before the context
  std::mutex mutex;
};

NativeModule::NativeModule() : state(std::make_unique<State>()) {}

NativeModule::~NativeModule() = default;

std::tuple<std::shared_ptr<NativeModule>, Diagnostics> NativeModule::parse(const std::string &text,
                                                                           const std::string &name) {
  std::shared_ptr<NativeModule> result(new NativeModule);
  Diagnostics diagnostics;
  { // The collector must be destroyed before the context.
    DiagnosticCollector collector(result->state->mlir());
    result->state->module = parseSourceString<ModuleOp>(text, result->state->mlir(), name);
    diagnostics = collector.take();
  }
  if (!result->state->module)
    result = nullptr;
  return {result, std::move(diagnostics)};
}

std::string NativeModule::text(bool generic, bool localScope, bool debugInfo) {
  std::lock_guard<std::mutex> lock(state->mutex);
  OpPrintingFlags flags;
  if (generic)
    flags.printGenericOpForm();
  if (localScope)
    flags.useLocalScope();
  if (debugInfo)
    flags.enableDebugInfo();
  std::string result;
  llvm::raw_string_ostream stream(result);
  state->module->print(stream, flags);
  return result;
}

std::tuple<bool, Diagnostics> NativeModule::run(const std::string &pipeline, const std::string &dumpDirectory,
                                                 bool verifyEach) {
  std::lock_guard<std::mutex> lock(state->mutex);
  DiagnosticCollector collector(state->mlir());
  std::string syntaxError;
  llvm::raw_string_ostream errors(syntaxError);
  FailureOr<OpPassManager> parsed = parsePassPipeline(pipeline, errors);
  if (failed(parsed)) {
    Diagnostics diagnostics = collector.take();
    diagnostics.insert(diagnostics.begin(), PlainDiagnostic{"error", syntaxError, "", "", {}, {}});
    return {false, std::move(diagnostics)};
  }
  StringRef anchor = parsed->getOpAnchorName();
  SmallVector<Operation *> roots;
  if (anchor == ModuleOp::getOperationName() || anchor == OpPassManager::getAnyOpAnchorName())
    roots.push_back(*state->module);
  else
    state->module->walk([&](Operation *op) {
      if (op->getName().getStringRef() == anchor)
        roots.push_back(op);
    });
  CallbackUse callbacks = callbacksIn(pipeline);
  if (callbacks.any)
    state->mlir()->loadAllAvailableDialects(); // a callback may build ops of any; passes must not load dialects
  // Printing from several threads would mix, and so would the diagnostics that callbacks collect.
  bool isSerial = !dumpDirectory.empty() || callbacks.nested;
  bool multithreaded = state->mlir()->isMultithreadingEnabled();
  if (isSerial)
    state->mlir()->disableMultithreading();
  bool ok = true;
  for (Operation *root : roots) {
    PassManager manager(state->mlir(), anchor);
    static_cast<OpPassManager &>(manager) = *parsed;
    manager.enableVerifier(verifyEach);
    if (std::unique_ptr<PassInstrumentation> notes = createPassNotes())
      manager.addInstrumentation(std::move(notes));
    manager.addInstrumentation(std::make_unique<CrashContext>());
    if (!dumpDirectory.empty())
      manager.enableIRPrintingToFileTree([](Pass *, Operation *) { return false; },
                                         [](Pass *, Operation *op) { return !isInTrial(op); },
                                         /*printModuleScope=*/false,
                                         /*printAfterOnlyOnChange=*/true, /*printAfterOnlyOnFailure=*/false,
                                         dumpDirectory);
    if (failed(manager.run(root))) {
      ok = false;
      break;
    }
  }
  if (isSerial && multithreaded)
    state->mlir()->enableMultithreading();
  return {ok, collector.take()};
}

std::tuple<bool, Diagnostics> NativeModule::verify() {
  std::lock_guard<std::mutex> lock(state->mutex);
  DiagnosticCollector collector(state->mlir());
  bool ok = succeeded(mlir::verify(*state->module));
  return {ok, collector.take()};
}

std::shared_ptr<NativeContext> NativeModule::context() { return state->context; }

MlirOperation NativeModule::operation() { return wrap(state->module->getOperation()); }

std::shared_ptr<NativeModule> NativeModule::clone() {
  // The copy has a context of its own, so that both modules can be used at the same time.
  auto [copy, diagnostics] = parse(text(true, false, true), "clone");
  return copy;
}

template <typename T>
static llvm::Expected<T> parseAs(const std::string &json, llvm::Expected<T> (*read)(const llvm::json::Value &)) {
  llvm::Expected<llvm::json::Value> value = parseJson(json);
  if (!value)
    return value.takeError();
  return read(*value);
}

std::tuple<std::string, std::string> NativeModule::checkPlan(const std::string &json) {
  std::lock_guard<std::mutex> lock(state->mutex);
  llvm::Expected<Plan> plan = parseAs(json, planFromJson);
  if (!plan)
    return {"", llvm::toString(plan.takeError())};
  SmallVector<FunctionOpInterface> functions;
  state->module->walk([&](FunctionOpInterface function) {
    if (!function.isExternal())
      functions.push_back(function);
  });
  if (functions.size() != 1)
    return {"",
            "a plan is checked against a module with one function, this one has " + std::to_string(functions.size())};
  for (const BlockGraph &block : graphsOf(functions.front()))
    if (!block.loop || loopAt(*plan, block.firstOp))
      if (std::string why = planOfBlock(*plan, block.firstOp, block.graph.exprs().size()).verify(block.graph);
          !why.empty())
        return {"", why};
  return {llvm::formatv("{0:2}", toJson(*plan)).str(), ""};
}

//===----------------------------------------------------------------------===//
// Targets and plans as JSON
//===----------------------------------------------------------------------===//

std::tuple<std::string, std::string> tilewright::lookupTargetJson(const std::string &nameOrPath) {
  llvm::Expected<Target> target = lookupTarget(nameOrPath);
  if (!target)
    return {"", llvm::toString(target.takeError())};
  return {llvm::formatv("{0:2}", toJson(*target)).str(), ""};
}

std::tuple<std::string, std::string> tilewright::normalizeTargetJson(const std::string &json, int64_t cores) {
  llvm::Expected<Target> target = parseAs(json, targetFromJson);
  if (!target)
    return {"", llvm::toString(target.takeError())};
  return {llvm::formatv("{0:2}", toJson(cores > 0 ? withCores(*target, cores) : *target)).str(), ""};
}

std::tuple<std::string, std::string> tilewright::normalizePlanJson(const std::string &json) {
  llvm::Expected<Plan> plan = parseAs(json, planFromJson);
  if (!plan)
    return {"", llvm::toString(plan.takeError())};
  return {llvm::formatv("{0:2}", toJson(*plan)).str(), ""};
}

std::vector<std::string> tilewright::targetNames() { return knownTargets(); }

//===----------------------------------------------------------------------===//
// The process
//===----------------------------------------------------------------------===//

std::string tilewright::llvmVersion() { return LLVM_VERSION_STRING; }

void tilewright::describeCrashes() { llvm::EnablePrettyStackTrace(); }

void tilewright::registerPipelines() { registerAllPassesAndPipelines(); }

int tilewright::optMain(int argc, char **argv) {
  DialectRegistry registry;
  registerDialects(registry);
  registerAllPassesAndPipelines();
  llvm::cl::SetVersionPrinter([](raw_ostream &os) {
    os << "tilewright-opt " TILEWRIGHT_VERSION " (MLIR " LLVM_VERSION_STRING ")\n";
  });
  return asMainReturnCode(MlirOptMain(argc, argv, "Tilewright optimizer driver\n", registry));
}
