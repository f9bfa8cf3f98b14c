// Operations: reading, walking, changing and erasing them.
#include "python/bindings/Ir.h"

#include "mlir-c/Diagnostics.h"

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

namespace {
/// The attributes of an op as a mapping from names.
struct Attributes {
  Operation op;
};
/// The operands of an op as a list whose elements can be replaced.
struct Operands {
  Operation op;
};
/// Iterates over ops and leaves out those that were erased meanwhile.
struct Walk {
  std::vector<Operation> ops;
  size_t next = 0;
};

/// Tells the rewriter of a pattern that an op changes, as long as it exists.
class Change {
public:
  explicit Change(const Operation &op) : session(op.session()), op(op.get()) {
    session.hasChanged = true;
    if (session.rewriter.ptr)
      mlirRewriterBaseStartOpModification(session.rewriter, this->op);
  }
  ~Change() {
    if (session.rewriter.ptr)
      mlirRewriterBaseFinalizeOpModification(session.rewriter, op);
  }

private:
  Session &session;
  MlirOperation op;
};

} // namespace

std::string python::print(const Operation &op, bool generic, bool localScope, bool debugInfo, bool skipRegions) {
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
  // MLIR prints an invalid op in the generic form, too, but verifies it without regard to what is around it.
  CollectedDiagnostics ignored(op.session().context->get());
  if (generic || !verifyInside(op.get()))
    mlirOpPrintingFlagsPrintGenericOpForm(flags);
  if (localScope)
    mlirOpPrintingFlagsUseLocalScope(flags);
  if (debugInfo)
    mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
  if (skipRegions) {
    mlirOpPrintingFlagsSkipRegions(flags);
    mlirOpPrintingFlagsElideLargeElementsAttrs(flags, 16);
  }
  std::string text =
      printed([&](auto callback, void *to) { mlirOperationPrintWithFlags(op.get(), flags, callback, to); });
  mlirOpPrintingFlagsDestroy(flags);
  return text;
}

namespace {
void verify(const Operation &op) {
  CollectedDiagnostics diagnostics(op.session().context->get());
  if (!verifyInside(op.get()))
    raiseError(diagnostics.take(), "the operation is invalid");
}

void replace(const Operation &op, const nb::args &with) {
  MlirOperation replaced = op.get();
  std::vector<Value> values;
  for (nb::handle each : with)
    appendValues(each, values);
  intptr_t n = mlirOperationGetNumResults(replaced);
  std::string where = describeLocation(mlirOperationGetLocation(replaced));
  if (static_cast<intptr_t>(values.size()) != n)
    raiseError("the operation has " + std::to_string(n) + " results and is replaced by " +
                   std::to_string(values.size()) + " values",
               nameOf(replaced), where);
  for (intptr_t i = 0; i < n; ++i) {
    MlirValue result = mlirOperationGetResult(replaced, i);
    requireSame(op.session().context, values[i].session().context);
    if (!mlirTypeEqual(mlirValueGetType(result), mlirValueGetType(values[i].get())))
      raiseError("result " + std::to_string(i) + " is replaced by a value of another type", nameOf(replaced), where);
    for (MlirOperation owner = values[i].owner->op; !mlirOperationIsNull(owner);
         owner = mlirOperationGetParentOperation(owner))
      if (mlirOperationEqual(owner, replaced))
        raiseError("result " + std::to_string(i) + " is replaced by a value of the operation itself", nameOf(replaced),
                   where);
  }
  for (intptr_t i = 0; i < n; ++i) {
    MlirValue result = mlirOperationGetResult(replaced, i);
    if (op.session().rewriter.ptr)
      mlirRewriterBaseReplaceAllUsesWith(op.session().rewriter, result, values[i].get());
    else
      mlirValueReplaceAllUsesOfWith(result, values[i].get());
  }
  erase(op);
}

void moveTo(const Operation &op, const Operation &other, bool before) {
  MlirOperation moved = op.get(), there = other.get();
  if (op.state->session != other.state->session)
    raiseError("the operations belong to different modules", nameOf(moved));
  if (mlirOperationEqual(moved, op.session().root) || mlirBlockIsNull(mlirOperationGetBlock(there)))
    raiseError("the operation cannot be moved there", nameOf(moved));
  for (MlirOperation around = there; !mlirOperationIsNull(around); around = mlirOperationGetParentOperation(around))
    if (mlirOperationEqual(around, moved))
      raiseError("an operation cannot be moved into itself", nameOf(moved));
  Change change(op);
  (before ? mlirOperationMoveBefore : mlirOperationMoveAfter)(moved, there);
  op.state->isOwned = false;
}

//===----------------------------------------------------------------------===//
// Parts of the class
//===----------------------------------------------------------------------===//

void bindAttributeMap(nb::module_ &m) {
  auto find = [](const Attributes &self, std::string_view name) {
    return mlirOperationGetAttributeByName(self.op.get(), toRef(name));
  };
  auto names = [](const Attributes &self) {
    MlirOperation op = self.op.get();
    std::vector<std::string> result;
    for (intptr_t i = 0, n = mlirOperationGetNumAttributes(op); i < n; ++i)
      result.push_back(str(mlirIdentifierStr(mlirOperationGetAttribute(op, i).name)));
    return result;
  };
  nb::class_<Attributes>(m, "OpAttributeMap", "The attributes of an operation by name.")
      .def("__contains__",
           [find](const Attributes &self, std::string_view name) { return !mlirAttributeIsNull(find(self, name)); })
      .def(
          "__getitem__",
          [find](const Attributes &self, std::string_view name) {
            MlirAttribute found = find(self, name);
            if (mlirAttributeIsNull(found))
              throw nb::key_error(std::string(name).c_str());
            return wrap(self.op.session().context, found);
          },
          nb::sig("def __getitem__(self, arg: str, /) -> Attribute"))
      .def(
          "get",
          [find](const Attributes &self, std::string_view name) {
            MlirAttribute found = find(self, name);
            return wrap(self.op.session().context, found);
          },
          "name"_a, nb::sig("def get(self, name: str) -> Attribute | None"))
      .def("__setitem__",
           [](const Attributes &self, std::string_view name, const Attribute &value) {
             requireSame(self.op.session().context, value.context);
             MlirOperation op = self.op.get();
             MlirAttribute old = mlirOperationGetAttributeByName(op, toRef(name));
             Change change(self.op);
             mlirOperationSetAttributeByName(op, toRef(name), value.value);
             if (mlirAttributeEqual(mlirOperationGetAttributeByName(op, toRef(name)), value.value))
               return;
             // MLIR drops a value of the wrong kind.
             if (!mlirAttributeIsNull(old))
               mlirOperationSetAttributeByName(op, toRef(name), old);
             raiseError("attribute '" + std::string(name) + "' is of another kind", nameOf(op),
                        describeLocation(mlirOperationGetLocation(op)));
           })
      .def("__delitem__",
           [find](const Attributes &self, std::string_view name) {
             if (mlirAttributeIsNull(find(self, name)))
               throw nb::key_error(std::string(name).c_str());
             Change change(self.op);
             removeAttribute(self.op.get(), std::string(name));
           })
      .def("__len__", [](const Attributes &self) { return mlirOperationGetNumAttributes(self.op.get()); })
      .def(
          "__iter__", [names](const Attributes &self) { return nb::iter(nb::cast(names(self))); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def(
          "items",
          [names, find](const Attributes &self) {
            nb::list items;
            for (const std::string &name : names(self))
              items.append(nb::make_tuple(name, wrap(self.op.session().context, find(self, name))));
            return items;
          },
          nb::sig("def items(self) -> list[tuple[str, Attribute]]"));
}

void bindOperandList(nb::module_ &m) {
  auto position = [](const Operands &self, intptr_t i) {
    intptr_t n = mlirOperationGetNumOperands(self.op.get());
    if (i < 0)
      i += n;
    if (i < 0 || i >= n)
      throw nb::index_error();
    return i;
  };
  nb::class_<Operands>(m, "OpOperandList", "The operands of an operation; an assignment replaces one.")
      .def("__len__", [](const Operands &self) { return mlirOperationGetNumOperands(self.op.get()); })
      .def(
          "__getitem__",
          [position](const Operands &self, intptr_t i) {
            return wrap(self.op.session(), mlirOperationGetOperand(self.op.get(), position(self, i)));
          },
          nb::sig("def __getitem__(self, arg: int, /) -> Value"))
      .def(
          "__getitem__",
          [](const Operands &self, const nb::slice &slice) {
            auto [start, stop, step, length] = slice.compute(mlirOperationGetNumOperands(self.op.get()));
            nb::list result;
            for (size_t i = 0; i < length; ++i, start += step)
              result.append(wrap(self.op.session(), mlirOperationGetOperand(self.op.get(), start)));
            return result;
          },
          nb::sig("def __getitem__(self, arg: slice, /) -> list[Value]"))
      .def("__setitem__", [position](const Operands &self, intptr_t i, const Value &value) {
        requireSame(self.op.session().context, value.session().context);
        MlirValue operand = value.get();
        Change change(self.op);
        mlirOperationSetOperand(self.op.get(), position(self, i), operand);
      });
}

void bindReading(nb::class_<Operation> &operation) {
  operation.def_prop_ro("name", [](const Operation &self) { return nameOf(self.get()); })
      .def_prop_ro(
          "operation", [](const Operation &self) { return self; }, "The operation itself, as for views of operations.")
      .def_prop_ro("attributes", [](const Operation &self) { return Attributes{self}; })
      .def_prop_ro("operands", [](const Operation &self) { return Operands{self}; })
      .def_prop_ro("results",
                   [](const Operation &self) {
                     std::vector<OpResult> results;
                     for (intptr_t i = 0, n = mlirOperationGetNumResults(self.get()); i < n; ++i)
                       results.push_back(OpResult(self.state, mlirOperationGetResult(self.get(), i)));
                     return results;
                   })
      .def_prop_ro("result",
                   [](const Operation &self) {
                     if (mlirOperationGetNumResults(self.get()) != 1)
                       raiseError("the operation does not have one result", nameOf(self.get()));
                     return OpResult(self.state, mlirOperationGetResult(self.get(), 0));
                   })
      .def_prop_ro("regions",
                   [](const Operation &self) {
                     std::vector<Region> regions;
                     for (intptr_t i = 0, n = mlirOperationGetNumRegions(self.get()); i < n; ++i)
                       regions.push_back(Region(self.state, mlirOperationGetRegion(self.get(), i)));
                     return regions;
                   })
      .def_prop_ro("successors",
                   [](const Operation &self) {
                     std::vector<Block> blocks;
                     for (intptr_t i = 0, n = mlirOperationGetNumSuccessors(self.get()); i < n; ++i)
                       blocks.push_back(wrap(self.session(), mlirOperationGetSuccessor(self.get(), i)));
                     return blocks;
                   })
      .def_prop_ro("parent",
                   [](const Operation &self) -> std::optional<Operation> {
                     MlirOperation parent = mlirOperationGetParentOperation(self.get());
                     if (mlirOperationIsNull(parent) || mlirOperationEqual(self.get(), self.session().root))
                       return std::nullopt;
                     return wrap(self.session(), parent);
                   })
      .def_prop_ro("block",
                   [](const Operation &self) -> std::optional<Block> {
                     MlirBlock block = mlirOperationGetBlock(self.get());
                     if (mlirBlockIsNull(block) || mlirOperationEqual(self.get(), self.session().root))
                       return std::nullopt;
                     return wrap(self.session(), block);
                   })
      .def_prop_ro("context", [](const Operation &self) { return self.state->session; })
      .def_prop_ro("location",
                   [](const Operation &self) {
                     return Location{{self.session().context, mlirOperationGetLocation(self.get())}};
                   })
      .def_prop_ro(
          "is_valid", [](const Operation &self) { return self.state->isValid; },
          "False once the operation was erased, or a pass ran that could erase it.")
      .def(
          "walk",
          [](const Operation &self, const std::optional<std::string> &name) {
            struct Found {
              const Operation &self;
              const std::optional<std::string> &name;
              Walk walk;
            } found{self, name, {}};
            mlirOperationWalk(
                self.get(),
                [](MlirOperation op, void *data) {
                  auto &found = *static_cast<Found *>(data);
                  if (!found.name || nameOf(op) == *found.name)
                    found.walk.ops.push_back(wrap(found.self.session(), op));
                  return MlirWalkResultAdvance;
                },
                &found, MlirWalkPreOrder);
            return found.walk;
          },
          "name"_a = nb::none(),
          nb::sig("def walk(self, name: str | None = None) -> collections.abc.Iterator[Operation]"),
          "Iterates over the operation and everything in it, outermost first.\n\nWith a name, over those of that name. "
          "Operations may be erased on the way.");
}

void bindChanging(nb::class_<Operation> &operation) {
  operation
      .def("verify", &verify, "Raises `IrError` with MLIR's message if the operation breaks a rule of its dialect.")
      .def("erase", &erase, "Erases the operation, whose results must be unused.")
      .def("replace", &replace,
           nb::sig("def replace(self, *values: Value | Operation | tilewright.ir.views.OpView) -> None"),
           "Makes all users of the results use other values, and erases the operation.")
      .def(
          "move_before", [](const Operation &self, const nb::handle &other) { moveTo(self, asOperation(other), true); },
          "other"_a, nb::sig("def move_before(self, other: Operation | tilewright.ir.views.OpView) -> None"))
      .def(
          "move_after", [](const Operation &self, const nb::handle &other) { moveTo(self, asOperation(other), false); },
          "other"_a, nb::sig("def move_after(self, other: Operation | tilewright.ir.views.OpView) -> None"));
}
} // namespace

void python::erase(const Operation &op) {
  MlirOperation erased = op.get();
  Session &session = op.session();
  if (mlirOperationEqual(erased, session.root))
    raiseError("the outermost operation cannot be erased", nameOf(erased));
  if (isUsed(erased))
    raiseError("the operation cannot be erased, because its results are used; replace them first", nameOf(erased),
               describeLocation(mlirOperationGetLocation(erased)));
  session.hasChanged = true;
  session.forgetInside(erased, /*itself=*/true);
  if (session.rewriter.ptr)
    mlirRewriterBaseEraseOp(session.rewriter, erased);
  else
    mlirOperationDestroy(erased);
}

void python::bindOperations(nb::module_ &m) {
  bindAttributeMap(m);
  bindOperandList(m);
  nb::class_<Walk>(m, "OperationIterator")
      .def(
          "__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> OperationIterator"))
      .def("__next__", [](Walk &self) {
        while (self.next < self.ops.size())
          if (Operation op = self.ops[self.next++]; op.state->isValid)
            return op;
        throw nb::stop_iteration();
      });
  nb::class_<Operation> operation(m, "Operation", "An operation of a module.");
  bindBuilding(operation);
  bindReading(operation);
  bindChanging(operation);
  operation
      .def("print", &print, "generic"_a = false, "local_scope"_a = true, "debug_info"_a = false,
           "skip_regions"_a = false, "Returns the operation as text.")
      .def("__str__", [](const Operation &self) { return print(self, false, true, false, false); })
      .def("__repr__",
           [](const Operation &self) {
             return self.state->isValid && !self.session().busy ? "<operation " + nameOf(self.get()) + ">"
                                                                : "<operation that is gone or in use>";
           })
      .def(
          "__eq__", [](const Operation &a, const Operation &b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Operation &self) { return reinterpret_cast<intptr_t>(self.state.get()); });
}
