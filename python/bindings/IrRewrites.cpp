// Passes and patterns that are Python functions.
#include "python/bindings/Modules.h"

#include "mlir-c/Diagnostics.h"

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

namespace {
//===----------------------------------------------------------------------===//
// Calls of Python functions from MLIR
//===----------------------------------------------------------------------===//

/// Calls a Python function with an op. The op's handles are valid during the call, in which new ops go before `before`.
class Call {
public:
  Call(std::shared_ptr<Session> session, std::optional<InsertionPoint> point) : session(std::move(session)) {
    push({this->session, std::nullopt, std::move(point)});
    calls.push_back(this->session->context->get());
  }
  ~Call() {
    calls.pop_back();
    pop();
    session->root = MlirOperation{nullptr};
    session->forgetAll(MlirOperation{nullptr});
  }

  /// The contexts of the calls that this thread is in.
  static thread_local std::vector<MlirContext> calls;

private:
  std::shared_ptr<Session> session;
};
thread_local std::vector<MlirContext> Call::calls;

/// Returns a description of an exception such as "ValueError: no".
std::string describe(const nb::python_error &error) {
  return nb::cast<std::string>(nb::str(error.type().attr("__name__"))) + ": " +
         nb::cast<std::string>(nb::str(error.value()));
}

nb::object viewOf(const Operation &op) {
  return nb::module_::import_("tilewright.ir.views").attr("view")(nb::cast(op));
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

/// The functions of passes by name. It is never destroyed, because the interpreter may be gone by then.
nb::dict &passes() {
  static auto *all = new nb::dict;
  return *all;
}

/// The exception and the pass of the first failure in a context, until `takeFailure` returns it. Guarded by the GIL.
std::unordered_map<void *, std::pair<std::string, nb::object>> &failures() {
  static auto *all = new std::unordered_map<void *, std::pair<std::string, nb::object>>;
  return *all;
}

bool runPass(const std::string &argument, MlirOperation op) {
  nb::gil_scoped_acquire gil;
  // The context belongs to the module that runs the pipeline, which outlives the call.
  auto session = std::make_shared<Session>(contextOf(mlirOperationGetContext(op)));
  session->root = op;
  try {
    Call call(session, std::nullopt);
    passes()[argument.c_str()](viewOf(wrap(*session, op)));
    return true;
  } catch (nb::python_error &error) {
    std::string message = "pass '" + argument + "' raised " + describe(error);
    failures().try_emplace(session->context->get().ptr, argument, nb::borrow(error.value()));
    mlirEmitError(mlirOperationGetLocation(op), message.c_str());
    return false;
  }
}

void addPass(const std::string &name, const std::string &anchor, nb::callable function) {
  std::string problem = registerCallbackPass(name, anchor, runPass);
  if (!problem.empty())
    raiseError(problem);
  passes()[name.c_str()] = function;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

struct Driver {
  Context context;
  std::shared_ptr<NativeModule> module;
  nb::object error; ///< the first exception of a pattern; no pattern matches after it
};

struct Pattern {
  Driver *driver;
  nb::object function;
};

MlirLogicalResult rewrite(MlirRewritePattern, MlirOperation op, MlirPatternRewriter rewriter, void *data) {
  auto &pattern = *static_cast<Pattern *>(data);
  if (pattern.driver->error)
    return mlirLogicalResultFailure();
  auto session = std::make_shared<Session>(pattern.driver->context);
  session->module = pattern.driver->module;
  session->rewriter = mlirPatternRewriterAsBase(rewriter);
  bool hasRewritten = false;
  try {
    Operation root = wrap(*session, op);
    Call call(session, InsertionPoint{wrap(*session, mlirOperationGetBlock(op)), root});
    hasRewritten = nb::cast<bool>(pattern.function(viewOf(root)));
  } catch (nb::python_error &error) {
    pattern.driver->error = nb::borrow(error.value());
  } catch (nb::cast_error &) {
    pattern.driver->error = nb::module_::import_("builtins")
                                .attr("TypeError")("a pattern returns True if it has rewritten its operation, "
                                                   "and else False");
  }
  // MLIR must learn of changes even if the pattern says that there are none.
  return hasRewritten || session->hasChanged ? mlirLogicalResultSuccess() : mlirLogicalResultFailure();
}

using PatternArgument = std::tuple<std::string, unsigned, nb::callable>;

void applyPatterns(const nb::handle &to, const std::vector<PatternArgument> &arguments, int64_t maxRewrites) {
  Operation op = asOperation(to);
  MlirOperation root = op.get();
  Session &session = op.session();
  if (session.rewriter.ptr)
    raiseError("a pattern cannot apply patterns");
  if (session.hasChanged) {
    CollectedDiagnostics diagnostics(session.context->get());
    if (!verifyInside(root)) // patterns and folders take valid ops for granted
      raiseError(diagnostics.take(), "the operation is invalid");
  }
  Driver driver{session.context, session.module, nb::object()};
  MlirContext context = session.context->get();
  std::vector<std::unique_ptr<Pattern>> patterns;
  MlirRewritePatternSet set = mlirRewritePatternSetCreate(context);
  for (const auto &[name, benefit, function] : arguments) {
    patterns.push_back(std::make_unique<Pattern>(Pattern{&driver, function}));
    MlirRewritePatternCallbacks callbacks{nullptr, nullptr, rewrite};
    mlirRewritePatternSetAdd(
        set, mlirOpRewritePatternCreate(toRef(name), benefit, context, callbacks, patterns.back().get(), 0, nullptr));
  }
  MlirFrozenRewritePatternSet frozen = mlirFreezeRewritePattern(set);
  MlirGreedyRewriteDriverConfig config = mlirGreedyRewriteDriverConfigCreate();
  mlirGreedyRewriteDriverConfigSetMaxNumRewrites(config, maxRewrites);
  // The driver folds and erases dead ops, too. Only `root` and what is around it is certain to survive.
  session.forgetAll(root);
  session.hasChanged = true;
  ++session.busy;
  MlirLogicalResult result = mlirApplyPatternsAndFoldGreedilyWithOp(root, frozen, config);
  --session.busy;
  mlirGreedyRewriteDriverConfigDestroy(config);
  mlirFrozenRewritePatternSetDestroy(frozen);
  mlirRewritePatternSetDestroy(set);
  if (driver.error) {
    PyErr_SetObject(driver.error.type().ptr(), driver.error.ptr());
    throw nb::python_error();
  }
  if (mlirLogicalResultIsFailure(result))
    raiseError("the patterns still match after " + std::to_string(maxRewrites) +
               " rewrites; one of them matches what it has built itself, or what another one has");
}
} // namespace

bool python::isInCall(MlirContext context) {
  for (MlirContext each : Call::calls)
    if (mlirContextEqual(each, context))
      return true;
  return false;
}

nb::object python::takeFailure(MlirContext context) {
  auto found = failures().find(context.ptr);
  if (found == failures().end())
    return nb::none();
  nb::object failure = nb::make_tuple(found->second.first, found->second.second);
  failures().erase(found);
  return failure;
}

void python::bindRewrites(nb::module_ &m) {
  m.def("register_pass", &addPass, "name"_a, "on"_a, "function"_a,
        nb::sig(
            "def register_pass(name: str, on: str, function: collections.abc.Callable[[typing.Any], object]) -> None"));
  m.def("apply_patterns", &applyPatterns, "operation"_a, "patterns"_a, "max_rewrites"_a,
        nb::sig("def apply_patterns(operation: Operation | tilewright.ir.views.OpView, patterns: "
                "collections.abc.Sequence[tuple[str, int, collections.abc.Callable[[typing.Any], "
                "bool]]], max_rewrites: int) -> None"));
}
