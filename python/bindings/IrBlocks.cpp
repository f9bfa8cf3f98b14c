// Values, blocks, regions and insertion points.
#include "python/bindings/Ir.h"

#include <nanobind/stl/variant.h>

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

namespace {
struct OpOperand {
  Operation owner;
  intptr_t number;
};

std::string textOf(const Value &self) {
  if (mlirValueIsAOpResult(self.get()))
    return print(wrap(self.session(), mlirOpResultGetOwner(self.get())), false, true, false, true);
  return printed([&](auto callback, void *to) { mlirValuePrint(self.get(), callback, to); });
}

std::vector<OpOperand> usesOf(const Value &self) {
  std::vector<OpOperand> uses;
  for (MlirOpOperand use = mlirValueGetFirstUse(self.get()); !mlirOpOperandIsNull(use);
       use = mlirOpOperandGetNextUse(use))
    uses.push_back({wrap(self.session(), mlirOpOperandGetOwner(use)), mlirOpOperandGetOperandNumber(use)});
  return uses;
}

void replaceAllUses(const Value &self, const Value &other) {
  MlirValue from = self.get(), to = other.get();
  requireSame(self.session().context, other.session().context);
  if (!mlirTypeEqual(mlirValueGetType(from), mlirValueGetType(to)))
    raiseError("a value is replaced by one of another type");
  self.session().hasChanged = true;
  if (self.session().rewriter.ptr)
    mlirRewriterBaseReplaceAllUsesWith(self.session().rewriter, from, to);
  else
    mlirValueReplaceAllUsesOfWith(from, to);
}

void bindValues(nb::module_ &m) {
  nb::class_<OpOperand>(m, "OpOperand", "A use of a value.")
      .def_prop_ro("owner", [](const OpOperand &self) { return self.owner; })
      .def_prop_ro("operand_number", [](const OpOperand &self) { return self.number; });
  nb::class_<Value>(m, "Value", "A result of an operation, or an argument of a block.")
      .def_prop_ro(
          "type", [](const Value &self) { return wrap(self.session().context, mlirValueGetType(self.get())); },
          nb::sig("def type(self) -> Type"))
      .def_prop_ro("owner",
                   [](const Value &self) -> std::variant<Operation, Block> {
                     if (mlirValueIsAOpResult(self.get()))
                       return wrap(self.session(), mlirOpResultGetOwner(self.get()));
                     return wrap(self.session(), mlirBlockArgumentGetOwner(self.get()));
                   })
      .def_prop_ro("uses", &usesOf)
      .def_prop_ro(
          "location",
          [](const Value &self) { return Location{{self.session().context, mlirValueGetLocation(self.get())}}; })
      .def("replace_all_uses_with", &replaceAllUses, "other"_a)
      .def("__str__", &textOf)
      .def(
          "__eq__", [](const Value &a, const Value &b) { return mlirValueEqual(a.value, b.value); }, nb::is_operator(),
          nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Value &self) { return reinterpret_cast<intptr_t>(self.value.ptr); });
  nb::class_<OpResult, Value>(m, "OpResult", "A result of an operation.")
      .def_prop_ro("result_number", [](const OpResult &self) { return mlirOpResultGetResultNumber(self.get()); });
  nb::class_<BlockArgument, Value>(m, "BlockArgument", "An argument of a block.")
      .def_prop_ro("arg_number", [](const BlockArgument &self) { return mlirBlockArgumentGetArgNumber(self.get()); });
}

std::vector<Block> blocksOf(const Region &self) {
  std::vector<Block> blocks;
  for (MlirBlock block = mlirRegionGetFirstBlock(self.get()); !mlirBlockIsNull(block);
       block = mlirBlockGetNextInRegion(block))
    blocks.push_back(Block(self.owner, block));
  return blocks;
}

std::vector<Operation> operationsOf(const Block &self) {
  std::vector<Operation> ops;
  for (MlirOperation op = mlirBlockGetFirstOperation(self.get()); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    ops.push_back(wrap(self.session(), op));
  return ops;
}

Block appendBlock(const Region &self, const std::vector<Type> &types, std::optional<Location> location) {
  const Context &context = self.session().context;
  std::vector<MlirType> raw;
  for (const Type &type : types) {
    requireSame(context, type.context);
    raw.push_back(type.value);
  }
  if (location)
    requireSame(context, location->context);
  MlirLocation where = location ? location->value : mlirOperationGetLocation(self.owner->op);
  std::vector<MlirLocation> locations(raw.size(), where);
  MlirBlock block = mlirBlockCreate(raw.size(), raw.data(), locations.data());
  mlirRegionAppendOwnedBlock(self.get(), block);
  self.session().hasChanged = true;
  return Block(self.owner, block);
}

void takeBody(const Region &self, const Region &other) {
  requireSame(self.session().context, other.session().context);
  MlirRegion to = self.get(), from = other.get();
  if (self.session().rewriter.ptr)
    raiseError("a pattern cannot move regions");
  for (MlirOperation op = self.owner->op; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    if (mlirOperationEqual(op, other.owner->op))
      raiseError("a region cannot move into itself");
  if (isInsideUsedOutside(self.owner->op) || isInsideUsedOutside(other.owner->op))
    raiseError("a region cannot be replaced or move while its values are used outside of its operation");
  for (const Region *each : {&self, &other}) {
    each->session().forgetInside(each->owner->op, /*itself=*/false);
    ++each->owner->generation;
  }
  mlirRegionTakeBody(to, from);
  self.session().hasChanged = true;
}

void bindContainers(nb::module_ &m) {
  nb::class_<Region>(m, "Region", "The blocks of an operation.")
      .def_prop_ro("blocks", &blocksOf)
      .def("append_block", &appendBlock, "types"_a = std::vector<Type>(), "loc"_a = nb::none(),
           "Appends a block with arguments of these types.")
      .def("take_body", &takeBody, "other"_a,
           "Replaces the blocks by those of another region, which is empty afterwards.")
      .def_prop_ro("parent", [](const Region &self) { return self.get(), Operation{self.owner}; })
      .def("__len__", [](const Region &self) { return blocksOf(self).size(); })
      .def("__getitem__", [](const Region &self, size_t i) {
        std::vector<Block> blocks = blocksOf(self);
        if (i >= blocks.size())
          throw nb::index_error();
        return blocks[i];
      });
  nb::class_<Block>(m, "Block", "Operations that run one after another.")
      .def_prop_ro("arguments",
                   [](const Block &self) {
                     std::vector<BlockArgument> arguments;
                     for (intptr_t i = 0, n = mlirBlockGetNumArguments(self.get()); i < n; ++i)
                       arguments.push_back(BlockArgument(self.owner, mlirBlockGetArgument(self.get(), i)));
                     return arguments;
                   })
      .def(
          "add_argument",
          [](const Block &self, const Type &type, const Location &location) {
            requireSame(self.session().context, type.context);
            requireSame(self.session().context, location.context);
            self.session().hasChanged = true;
            return BlockArgument(self.owner, mlirBlockAddArgument(self.get(), type.value, location.value));
          },
          "type"_a, "loc"_a)
      .def_prop_ro("operations", &operationsOf)
      .def_prop_ro("owner", [](const Block &self) { return self.get(), Operation{self.owner}; })
      .def("__str__",
           [](const Block &self) {
             return printed([&](auto callback, void *to) { mlirBlockPrint(self.get(), callback, to); });
           })
      .def(
          "__eq__", [](const Block &a, const Block &b) { return mlirBlockEqual(a.block, b.block); }, nb::is_operator(),
          nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Block &self) { return reinterpret_cast<intptr_t>(self.block.ptr); });
}

InsertionPoint before(const Operation &op) {
  MlirBlock block = mlirOperationGetBlock(op.get());
  if (mlirBlockIsNull(block) || mlirOperationEqual(op.get(), op.session().root))
    raiseError("there is no place before the outermost operation");
  return {wrap(op.session(), block), op};
}

/// The place before an op of a block, or at its end if there is none.
InsertionPoint beforeOrEnd(const Block &block, MlirOperation op) {
  if (mlirOperationIsNull(op))
    return {block, std::nullopt};
  return {block, wrap(block.session(), op)};
}
} // namespace

nb::object python::wrap(Session &session, MlirValue value) {
  if (mlirValueIsAOpResult(value))
    return nb::cast(OpResult(session.state(mlirOpResultGetOwner(value)), value));
  return nb::cast(BlockArgument(session.state(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value))), value));
}

Block python::wrap(Session &session, MlirBlock block) {
  return Block(session.state(mlirBlockGetParentOperation(block)), block);
}

Operation python::asOperation(const nb::handle &object) {
  if (nb::isinstance<Operation>(object))
    return nb::cast<Operation>(object);
  nb::object viewed = nb::getattr(object, "operation", nb::none());
  if (!nb::isinstance<Operation>(viewed))
    throw nb::type_error("expected an ir.Operation or ir.OpView");
  return nb::cast<Operation>(viewed);
}

void python::appendValues(const nb::handle &object, std::vector<Value> &values) {
  if (nb::isinstance<Value>(object)) {
    values.push_back(nb::cast<Value>(object));
    return;
  }
  Operation op = asOperation(object);
  for (intptr_t i = 0, n = mlirOperationGetNumResults(op.get()); i < n; ++i)
    values.push_back(Value(op.state, mlirOperationGetResult(op.get(), i)));
}

void python::bindBlocks(nb::module_ &m) {
  bindValues(m);
  bindContainers(m);
  nb::class_<InsertionPoint>(m, "InsertionPoint", "Where new operations go.")
      .def(
          "__init__",
          [](InsertionPoint *self, const nb::handle &place) {
            if (nb::isinstance<Block>(place))
              new (self) InsertionPoint{nb::cast<Block>(place), std::nullopt};
            else
              new (self) InsertionPoint(before(asOperation(place)));
          },
          "place"_a, nb::sig("def __init__(self, place: Block | Operation | tilewright.ir.views.OpView) -> None"),
          "The end of a block, or the place before an operation.")
      .def_static(
          "after",
          [](const nb::handle &place) {
            Operation op = asOperation(place);
            return beforeOrEnd(before(op).block, mlirOperationGetNextInBlock(op.get()));
          },
          "operation"_a, nb::sig("def after(operation: Operation | tilewright.ir.views.OpView) -> InsertionPoint"))
      .def_static(
          "at_block_begin",
          [](const Block &block) { return beforeOrEnd(block, mlirBlockGetFirstOperation(block.get())); }, "block"_a)
      .def_static(
          "at_block_terminator",
          [](const Block &block) { return beforeOrEnd(block, mlirBlockGetTerminator(block.get())); }, "block"_a)
      .def_prop_ro("block", [](const InsertionPoint &self) { return self.block; })
      .def("__enter__",
           [](const InsertionPoint &self) {
             self.block.check();
             push({self.block.owner->session, std::nullopt, self});
             return self;
           })
      .def("__exit__", [](InsertionPoint &, nb::args) { pop(); }, nb::sig("def __exit__(self, *args: object) -> None"));
}
