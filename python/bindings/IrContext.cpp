// Errors, the validity of handles, contexts and locations.
#include "python/bindings/Ir.h"

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void python::raiseError(const std::string &message, const std::string &operation, const std::string &location,
                        const std::string &details) {
  auto orNone = [](const std::string &text) -> nb::object { return text.empty() ? nb::none() : nb::cast(text); };
  nb::object kind = nb::module_::import_("tilewright.errors").attr("IrError");
  nb::object error = kind(message, "operation"_a = orNone(operation), "location"_a = orNone(location),
                          "details"_a = details.empty() ? message : details);
  PyErr_SetObject(kind.ptr(), error.ptr());
  throw nb::python_error();
}

void python::raiseError(const Diagnostics &diagnostics, const std::string &otherwise) {
  std::string details;
  const PlainDiagnostic *first = nullptr;
  for (const PlainDiagnostic &each : diagnostics) {
    details += (details.empty() ? "" : "\n") + each.location + ": " + each.severity + ": " + each.message;
    if (!first && each.severity == "error")
      first = &each;
  }
  if (!first)
    raiseError(otherwise, "", "", details);
  raiseError(first->message, first->operation, first->location, details);
}

//===----------------------------------------------------------------------===//
// Validity
//===----------------------------------------------------------------------===//

static bool isInside(MlirOperation op, MlirOperation outer) {
  for (; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    if (mlirOperationEqual(op, outer))
      return true;
  return false;
}

/// True if an op that is not inside `outer` uses a value.
static bool isUsedOutside(MlirValue value, MlirOperation outer) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
    if (!isInside(mlirOpOperandGetOwner(use), outer))
      return true;
  return false;
}

bool python::isInsideUsedOutside(MlirOperation op) {
  struct Walk {
    MlirOperation outer;
    bool found;
  } walk{op, false};
  mlirOperationWalk(
      op,
      [](MlirOperation inner, void *data) {
        auto *walk = static_cast<Walk *>(data);
        if (!mlirOperationEqual(inner, walk->outer))
          for (intptr_t i = 0, n = mlirOperationGetNumResults(inner); i < n; ++i)
            walk->found |= isUsedOutside(mlirOperationGetResult(inner, i), walk->outer);
        for (intptr_t r = 0, n = mlirOperationGetNumRegions(inner); r < n; ++r)
          for (MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(inner, r)); !mlirBlockIsNull(block);
               block = mlirBlockGetNextInRegion(block))
            for (intptr_t i = 0, arguments = mlirBlockGetNumArguments(block); i < arguments; ++i)
              walk->found |= isUsedOutside(mlirBlockGetArgument(block, i), walk->outer);
        return walk->found ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
      },
      &walk, MlirWalkPreOrder);
  return walk.found;
}

bool python::isUsed(MlirOperation op) {
  for (intptr_t i = 0, n = mlirOperationGetNumResults(op); i < n; ++i)
    if (!mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(op, i))))
      return true;
  return isInsideUsedOutside(op);
}

OpState::~OpState() {
  if (isValid && isOwned && mlirBlockIsNull(mlirOperationGetBlock(op)) && !isUsed(op)) {
    session->forgetInside(op, /*itself=*/false);
    mlirOperationDestroy(op);
  }
}

std::shared_ptr<OpState> Session::state(MlirOperation op) {
  std::weak_ptr<OpState> &known = live[op.ptr];
  std::shared_ptr<OpState> state = known.lock();
  if (!state || !state->isValid)
    known = state = std::make_shared<OpState>(op, shared_from_this());
  return state;
}

void Session::forgetInside(MlirOperation op, bool itself) {
  struct Walk {
    Session *session;
    void *kept;
  } walk{this, itself ? nullptr : op.ptr};
  mlirOperationWalk(
      op,
      [](MlirOperation inner, void *data) {
        auto *walk = static_cast<Walk *>(data);
        if (auto found = walk->session->live.find(inner.ptr);
            found != walk->session->live.end() && inner.ptr != walk->kept) {
          if (std::shared_ptr<OpState> state = found->second.lock())
            state->isValid = false;
          walk->session->live.erase(found);
        }
        return MlirWalkResultAdvance;
      },
      &walk, MlirWalkPreOrder);
}

void Session::forgetAll(MlirOperation kept) {
  std::vector<MlirOperation> around;
  for (MlirOperation op = kept; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    around.push_back(op);
  std::unordered_map<void *, std::weak_ptr<OpState>> old;
  old.swap(live);
  std::vector<MlirOperation> unplaced;
  for (auto &[pointer, weak] : old) {
    std::shared_ptr<OpState> state = weak.lock();
    if (!state || !state->isValid)
      continue;
    ++state->generation;
    bool isKept = false;
    for (MlirOperation op : around)
      isKept |= op.ptr == pointer;
    if (isKept) {
      live[pointer] = weak;
      continue;
    }
    state->isValid = false;
    if (state->isOwned && mlirBlockIsNull(mlirOperationGetBlock(state->op)))
      unplaced.push_back(state->op);
  }
  // Ops that use each other are destroyed users first. One that an op of the module uses stays, which leaks it.
  for (size_t left = 0; left != unplaced.size();) {
    left = unplaced.size();
    for (size_t i = unplaced.size(); i-- > 0;)
      if (!isUsed(unplaced[i])) {
        mlirOperationDestroy(unplaced[i]);
        unplaced.erase(unplaced.begin() + i);
      }
  }
}

static void check(const OpState &state) {
  if (!state.isValid)
    raiseError("the operation no longer exists: it was erased, or a pass or pattern that could erase it has run since; "
               "get it from the module again");
  if (state.session->busy)
    raiseError("the module is in use by a pipeline or another thread; a pass changes only the operation it is given");
}

MlirOperation Operation::get() const {
  check(*state);
  return state->op;
}

void Inside::check() const {
  ::check(*owner);
  if (generation != owner->generation)
    raiseError("the block no longer exists, because a pass or pattern has run since; get it from the operation again");
}

//===----------------------------------------------------------------------===//
// Defaults
//===----------------------------------------------------------------------===//

static thread_local std::vector<Defaults> entered;

const Defaults *python::defaults() { return entered.empty() ? nullptr : &entered.back(); }

void python::push(Defaults defaults) {
  if (!defaults.location && !entered.empty() && entered.back().session->context == defaults.session->context)
    defaults.location = entered.back().location;
  entered.push_back(std::move(defaults));
}

void python::pop() {
  if (!entered.empty())
    entered.pop_back();
}

Context python::contextOr(const std::optional<std::shared_ptr<Session>> &given) {
  if (given)
    return (*given)->context;
  if (const Defaults *current = defaults())
    return current->session->context;
  raiseError("no context is given; pass `context=`, or build inside a `with` block of a context or insertion point");
}

//===----------------------------------------------------------------------===//
// Contexts and locations
//===----------------------------------------------------------------------===//

void python::bindContext(nb::module_ &m) {
  nb::class_<Session>(
      m, "Context",
      "Owns the types, attributes and locations of one or more modules. Objects of different contexts do "
      "not mix.")
      .def(nb::new_([] { return std::make_shared<Session>(std::make_shared<NativeContext>()); }))
      .def("__enter__",
           [](const std::shared_ptr<Session> &self) {
             push({self, std::nullopt, std::nullopt});
             return self;
           })
      .def(
          "__exit__", [](Session &, nb::args) { pop(); }, nb::sig("def __exit__(self, *args: object) -> None"))
      .def(
          "__eq__", [](Session &a, Session &b) { return a.context == b.context; }, nb::is_operator(),
          nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](Session &self) { return reinterpret_cast<intptr_t>(self.context.get()); });

  using MaybeContext = std::optional<std::shared_ptr<Session>>;
  nb::class_<Location>(m, "Location", "The place in the model that an operation comes from.")
      .def_static(
          "unknown",
          [](MaybeContext context) {
            Context owner = contextOr(context);
            return Location{owner, mlirLocationUnknownGet(owner->get())};
          },
          "context"_a = nb::none())
      .def_static(
          "file",
          [](std::string_view filename, unsigned line, unsigned column, MaybeContext context) {
            Context owner = contextOr(context);
            return Location{owner, mlirLocationFileLineColGet(owner->get(), toRef(filename), line, column)};
          },
          "filename"_a, "line"_a, "column"_a, "context"_a = nb::none())
      .def_static(
          "name",
          [](std::string_view name, MaybeContext context) {
            Context owner = contextOr(context);
            return Location{owner,
                            mlirLocationNameGet(owner->get(), toRef(name), mlirLocationUnknownGet(owner->get()))};
          },
          "name"_a, "context"_a = nb::none())
      .def("__str__", [](const Location &self) { return describeLocation(self.value); })
      .def("__repr__",
           [](const Location &self) {
             return printed([&](auto callback, void *to) { mlirLocationPrint(self.value, callback, to); });
           })
      .def(
          "__eq__", [](const Location &a, const Location &b) { return mlirLocationEqual(a.value, b.value); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Location &self) { return reinterpret_cast<intptr_t>(self.value.ptr); });
}
