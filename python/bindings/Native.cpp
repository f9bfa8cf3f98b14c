// The extension module `tilewright._native`: modules, passes, targets and plans for Python. Thin: what fails returns
// diagnostics, and the Python side raises them; targets and plans cross as JSON.
#include "Diagnostics.h"

#include "passes/Pipelines.h"
#include "passes/plan/Plan.h"
#include "passes/target/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/JSON.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>

namespace nb = nanobind;
using namespace mlir;
using namespace tilewright;

namespace {

using Diagnostics = std::vector<PlainDiagnostic>;

struct OperationInfo {
  std::string name, location, text;
  std::vector<std::string> resultTypes;
  int64_t depth;
};

/// A module and the context it lives in. Calls on one module are serialised; modules are independent of each other.
class NativeModule {
public:
  static std::tuple<std::shared_ptr<NativeModule>, Diagnostics> parse(const std::string &text, const std::string &name);

  std::string text(bool generic, bool localScope, bool debugInfo);
  std::tuple<bool, Diagnostics> run(const std::string &pipeline, const std::string &dumpDirectory);
  std::tuple<bool, Diagnostics> verify();
  std::vector<OperationInfo> operations();
  std::shared_ptr<NativeModule> clone();
  std::tuple<std::string, std::string> checkPlan(const std::string &json);

private:
  NativeModule();
  static const DialectRegistry &registry();

  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  std::mutex mutex;
};

} // namespace

NativeModule::NativeModule() : context(std::make_unique<MLIRContext>(registry())) {
  context->allowUnregisteredDialects();
  // Remarks have an engine of their own; this makes it report them as diagnostics, which we collect.
  remark::RemarkCategories everything{".*", ".*", ".*", ".*", ".*"}; // "all" alone enables none
  (void)remark::enableOptimizationRemarks(*context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                          everything, /*printAsEmitRemarks=*/true);
}

const DialectRegistry &NativeModule::registry() {
  static const DialectRegistry *all = [] {
    auto *result = new DialectRegistry;
    registerDialects(*result);
    return result;
  }();
  return *all;
}

std::tuple<std::shared_ptr<NativeModule>, Diagnostics> NativeModule::parse(const std::string &text,
                                                                           const std::string &name) {
  std::shared_ptr<NativeModule> result(new NativeModule);
  Diagnostics diagnostics;
  { // The collector must go before the context does.
    DiagnosticCollector collector(result->context.get());
    result->module = parseSourceString<ModuleOp>(text, result->context.get(), name);
    diagnostics = collector.take();
  }
  if (!result->module)
    result = nullptr;
  return {result, std::move(diagnostics)};
}

std::string NativeModule::text(bool generic, bool localScope, bool debugInfo) {
  std::lock_guard<std::mutex> lock(mutex);
  OpPrintingFlags flags;
  if (generic)
    flags.printGenericOpForm();
  if (localScope)
    flags.useLocalScope();
  if (debugInfo)
    flags.enableDebugInfo();
  std::string result;
  llvm::raw_string_ostream stream(result);
  module->print(stream, flags);
  return result;
}

/// Runs a pipeline such as "builtin.module(a,b{c=1})"; one anchored on another op runs on every such op of the module.
std::tuple<bool, Diagnostics> NativeModule::run(const std::string &pipeline, const std::string &dumpDirectory) {
  std::lock_guard<std::mutex> lock(mutex);
  DiagnosticCollector collector(context.get());
  std::string syntaxError;
  llvm::raw_string_ostream errors(syntaxError);
  FailureOr<OpPassManager> parsed = parsePassPipeline(pipeline, errors);
  if (failed(parsed)) {
    Diagnostics diagnostics = collector.take();
    diagnostics.insert(diagnostics.begin(), PlainDiagnostic{"error", syntaxError, "", "", {}});
    return {false, std::move(diagnostics)};
  }
  StringRef anchor = parsed->getOpAnchorName();
  SmallVector<Operation *> roots;
  if (anchor == ModuleOp::getOperationName() || anchor == OpPassManager::getAnyOpAnchorName())
    roots.push_back(*module);
  else
    module->walk([&](Operation *op) {
      if (op->getName().getStringRef() == anchor)
        roots.push_back(op);
    });
  bool multithreaded = context->isMultithreadingEnabled();
  if (!dumpDirectory.empty())
    context->disableMultithreading(); // printing from several threads would mix
  bool ok = true;
  for (Operation *root : roots) {
    PassManager manager(context.get(), anchor);
    static_cast<OpPassManager &>(manager) = *parsed;
    if (!dumpDirectory.empty())
      manager.enableIRPrintingToFileTree([](Pass *, Operation *) { return false; },
                                         [](Pass *, Operation *) { return true; }, /*printModuleScope=*/false,
                                         /*printAfterOnlyOnChange=*/true, /*printAfterOnlyOnFailure=*/false,
                                         dumpDirectory);
    if (failed(manager.run(root))) {
      ok = false;
      break;
    }
  }
  if (!dumpDirectory.empty() && multithreaded)
    context->enableMultithreading();
  return {ok, collector.take()};
}

std::tuple<bool, Diagnostics> NativeModule::verify() {
  std::lock_guard<std::mutex> lock(mutex);
  DiagnosticCollector collector(context.get());
  bool ok = succeeded(mlir::verify(*module));
  return {ok, collector.take()};
}

std::vector<OperationInfo> NativeModule::operations() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<OperationInfo> result;
  auto visit = [&](auto &&self, Operation *op, int64_t depth) -> void {
    OperationInfo info{op->getName().getStringRef().str(), describe(op->getLoc()), "", {}, depth};
    llvm::raw_string_ostream stream(info.text);
    op->print(stream, OpPrintingFlags().useLocalScope().skipRegions().elideLargeElementsAttrs());
    for (Type type : op->getResultTypes()) {
      llvm::raw_string_ostream typeStream(info.resultTypes.emplace_back());
      type.print(typeStream);
    }
    result.push_back(std::move(info));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &nested : block)
          self(self, &nested, depth + 1);
  };
  visit(visit, *module, 0);
  return result;
}

std::shared_ptr<NativeModule> NativeModule::clone() {
  // Another context, so that the copy can be worked on at the same time.
  auto [copy, diagnostics] = parse(text(true, false, true), "clone");
  return copy;
}

/// The plan as the library writes it, or an error; with exactly one function in the module it is verified against it.
std::tuple<std::string, std::string> NativeModule::checkPlan(const std::string &json) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return {"", llvm::toString(value.takeError())};
  llvm::Expected<Plan> plan = planFromJson(*value);
  if (!plan)
    return {"", llvm::toString(plan.takeError())};
  SmallVector<FunctionOpInterface> functions;
  module->walk([&](FunctionOpInterface function) {
    if (!function.isExternal())
      functions.push_back(function);
  });
  if (functions.size() != 1)
    return {"", "a plan is checked against a module with one function, this one has " + std::to_string(functions.size())};
  TensorGraph graph = TensorGraph::build(functions.front().getFunctionBody().front());
  if (std::string problem = plan->verify(graph); !problem.empty())
    return {"", problem};
  return {llvm::formatv("{0:2}", toJson(*plan)).str(), ""};
}

//===----------------------------------------------------------------------===//
// Targets and plans, as JSON: value or error
//===----------------------------------------------------------------------===//

static std::tuple<std::string, std::string> lookupTargetJson(const std::string &nameOrPath) {
  llvm::Expected<Target> target = lookupTarget(nameOrPath);
  if (!target)
    return {"", llvm::toString(target.takeError())};
  return {llvm::formatv("{0:2}", toJson(*target)).str(), ""};
}

/// `cores`: hardware threads to scale the target to; 0: as it is.
static std::tuple<std::string, std::string> normalizeTargetJson(const std::string &json, int64_t cores) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return {"", llvm::toString(value.takeError())};
  llvm::Expected<Target> target = targetFromJson(*value);
  if (!target)
    return {"", llvm::toString(target.takeError())};
  return {llvm::formatv("{0:2}", toJson(cores > 0 ? withCores(*target, cores) : *target)).str(), ""};
}

static std::tuple<std::string, std::string> normalizePlanJson(const std::string &json) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return {"", llvm::toString(value.takeError())};
  llvm::Expected<Plan> plan = planFromJson(*value);
  if (!plan)
    return {"", llvm::toString(plan.takeError())};
  return {llvm::formatv("{0:2}", toJson(*plan)).str(), ""};
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

NB_MODULE(_native, m) {
  registerAllPassesAndPipelines();
  m.attr("llvm_version") = LLVM_VERSION_STRING;

  nb::class_<PlainDiagnostic>(m, "Diagnostic")
      .def_ro("severity", &PlainDiagnostic::severity)
      .def_ro("message", &PlainDiagnostic::message)
      .def_ro("location", &PlainDiagnostic::location)
      .def_ro("operation", &PlainDiagnostic::operation)
      .def_ro("notes", &PlainDiagnostic::notes);

  nb::class_<OperationInfo>(m, "OperationInfo")
      .def_ro("name", &OperationInfo::name)
      .def_ro("location", &OperationInfo::location)
      .def_ro("text", &OperationInfo::text)
      .def_ro("result_types", &OperationInfo::resultTypes)
      .def_ro("depth", &OperationInfo::depth);

  // Passes run for long and touch nothing of Python's.
  using NoGil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<NativeModule>(m, "NativeModule")
      .def_static("parse", &NativeModule::parse, nb::arg("text"), nb::arg("name"), NoGil())
      .def("text", &NativeModule::text, nb::arg("generic"), nb::arg("local_scope"), nb::arg("debug_info"), NoGil())
      .def("run", &NativeModule::run, nb::arg("pipeline"), nb::arg("dump_directory"), NoGil())
      .def("verify", &NativeModule::verify, NoGil())
      .def("operations", &NativeModule::operations, NoGil())
      .def("clone", &NativeModule::clone, NoGil())
      .def("check_plan", &NativeModule::checkPlan, nb::arg("json"), NoGil());

  m.def("known_targets", &knownTargets);
  m.def("lookup_target", &lookupTargetJson, nb::arg("name_or_path"));
  m.def("normalize_target", &normalizeTargetJson, nb::arg("json"), nb::arg("cores"));
  m.def("normalize_plan", &normalizePlanJson, nb::arg("json"));
}
