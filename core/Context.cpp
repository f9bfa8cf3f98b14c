// Implements contexts, and passes that are functions of another language.
#include "core/Diagnostics.h"
#include "core/Ir.h"

#include "passes/Pipelines.h"
#include "passes/support/Locations.h"

#include "mlir-c/Pass.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassRegistry.h"

#include <map>
#include <mutex>
#include <set>

using namespace mlir;
using namespace tilewright;

static const DialectRegistry &everyDialect() {
  static const DialectRegistry *all = [] {
    auto *result = new DialectRegistry;
    registerDialects(*result);
    return result;
  }();
  return *all;
}

NativeContext::NativeContext() {
  auto *created = new MLIRContext(everyDialect());
  created->allowUnregisteredDialects();
  // Remarks have an engine of their own. These options make it report remarks as diagnostics, which are collected.
  remark::RemarkCategories everything{".*", ".*", ".*", ".*", ".*"}; // "all" alone enables none
  (void)remark::enableOptimizationRemarks(*created, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                          everything, /*printAsEmitRemarks=*/true);
  context = wrap(created);
}

NativeContext::~NativeContext() { delete unwrap(context); }

CollectedDiagnostics::CollectedDiagnostics(MlirContext context)
    : collector(std::make_unique<DiagnosticCollector>(unwrap(context))) {}

CollectedDiagnostics::~CollectedDiagnostics() = default;

Diagnostics CollectedDiagnostics::take() { return collector->take(); }

std::string tilewright::describeLocation(MlirLocation location) { return describe(unwrap(location)); }

bool tilewright::verifyInside(MlirOperation op) {
  SmallVector<Operation *> around;
  for (Operation *outer = unwrap(op)->getParentOp(); outer; outer = outer->getParentOp())
    around.push_back(outer);
  // Verifiers read the attributes of the ops around them, such as the type of the function that a return is in. MLIR
  // verifies from the outside to the inside, so they take required attributes for granted. Other rules may still be
  // broken, because the outer op is not complete yet.
  for (Operation *outer : llvm::reverse(around)) {
    std::optional<RegisteredOperationName> name = outer->getRegisteredInfo();
    if (!name)
      continue;
    std::string missing;
    {
      DiagnosticCollector collector(outer->getContext());
      if (failed(name->verifyInvariants(outer)))
        for (const PlainDiagnostic &found : collector.take())
          if (StringRef(found.message).contains("requires attribute"))
            missing = found.message;
    }
    if (!missing.empty()) {
      outer->emitError(missing);
      return false;
    }
  }
  return succeeded(mlir::verify(unwrap(op)));
}

void tilewright::removeAttribute(MlirOperation op, const std::string &name) {
  Operation *changed = unwrap(op);
  changed->removeAttr(name);
  if (auto registered = changed->getRegisteredInfo(); registered && changed->getPropertiesStorage())
    registered->populateDefaultProperties(changed->getPropertiesStorage());
}

//===----------------------------------------------------------------------===//
// Callback passes
//===----------------------------------------------------------------------===//

namespace {
struct Callback {
  std::string argument;
  const std::string *anchor; ///< MLIR refers to the text, so it is interned
  CallbackPass run;
  MlirTypeID id;
};

std::mutex callbackMutex;
const std::string *interned(const std::string &anchor) {
  static auto *anchors = new std::set<std::string>;
  return &*anchors->insert(anchor).first;
}

/// The registered passes. They live as long as the process, because MLIR's registry cannot forget a pass.
std::map<std::string, std::shared_ptr<Callback>> &callbacks() {
  static auto *all = new std::map<std::string, std::shared_ptr<Callback>>;
  return *all;
}

void runCallback(MlirOperation op, MlirExternalPass pass, void *userData) {
  auto *callback = static_cast<Callback *>(userData);
  if (!callback->run(callback->argument, op))
    mlirExternalPassSignalFailure(pass);
}

std::unique_ptr<Pass> createCallbackPass(const std::string &argument) {
  std::lock_guard<std::mutex> lock(callbackMutex);
  Callback &callback = *callbacks().at(argument);
  MlirExternalPassCallbacks functions{};
  functions.construct = functions.destruct = [](void *) {};
  functions.clone = [](void *userData) { return userData; };
  functions.run = runCallback;
  auto text = [](const std::string &string) { return mlirStringRefCreate(string.data(), string.size()); };
  // A pass without an anchor runs on every op that the pipeline is nested in.
  return std::unique_ptr<Pass>(unwrap(mlirCreateExternalPass(
      callback.id, text(callback.argument), text(callback.argument), mlirStringRefCreateFromCString("a callback"),
      text(*callback.anchor), 0, nullptr, functions, &callback)));
}
} // namespace

std::string tilewright::registerCallbackPass(const std::string &argument, const std::string &anchor, CallbackPass run) {
  {
    std::lock_guard<std::mutex> lock(callbackMutex);
    std::shared_ptr<Callback> &known = callbacks()[argument];
    if (known) { // a pipeline that was parsed with the old anchor has a pass of its own
      known->anchor = interned(anchor);
      return "";
    }
    if (PassInfo::lookup(argument) || PassPipelineInfo::lookup(argument)) {
      callbacks().erase(argument);
      return "there is a pass or pipeline named '" + argument + "' already";
    }
    static auto *ids = new TypeIDAllocator;
    known = std::make_shared<Callback>(Callback{argument, interned(anchor), run, wrap(ids->allocate())});
  }
  registerPass([argument] { return createCallbackPass(argument); });
  return "";
}

CallbackUse tilewright::callbacksIn(const std::string &pipeline) {
  std::lock_guard<std::mutex> lock(callbackMutex);
  CallbackUse use;
  for (auto &[argument, callback] : callbacks())
    if (StringRef(pipeline).contains(argument)) {
      use.any = true;
      use.nested |= *callback->anchor != "builtin.module";
    }
  return use;
}
