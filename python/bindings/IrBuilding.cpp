// Building operations.
#include "python/bindings/Ir.h"

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

namespace {
/// Puts a new op where an insertion point says.
void insert(Session &session, MlirOperation op, const InsertionPoint &point) {
  session.hasChanged = true;
  MlirBlock block = point.block.get();
  if (session.rewriter.ptr) {
    if (point.before)
      mlirRewriterBaseSetInsertionPointBefore(session.rewriter, point.before->get());
    else
      mlirRewriterBaseSetInsertionPointToEnd(session.rewriter, block);
    mlirRewriterBaseInsert(session.rewriter, op);
  } else if (point.before) {
    mlirBlockInsertOwnedOperationBefore(block, point.before->get(), op);
  } else {
    mlirBlockAppendOwnedOperation(block, op);
  }
}

/// Loads the dialect of an op, because MLIR takes an op of a dialect that is not loaded for one that it does not know.
void loadDialect(Session &session, std::string_view name) {
  mlirContextGetOrLoadDialect(session.context->get(), toRef(name.substr(0, name.find('.'))));
}

Operation create(std::string_view name, const std::optional<std::vector<Type>> &results,
                 const std::vector<Value> &operands, const nb::dict &attributes, unsigned regions,
                 const std::vector<Block> &successors, std::optional<Location> location,
                 std::optional<InsertionPoint> point) {
  const Defaults *current = defaults();
  if (!point && current)
    point = current->point;
  std::shared_ptr<Session> session = point               ? point->block.owner->session
                                     : current           ? current->session
                                     : !operands.empty() ? operands.front().owner->session
                                                         : nullptr;
  if (!session)
    raiseError("no insertion point or context is given; pass `ip=`, or build inside a `with` block of one");
  const Context &context = session->context;
  if (!location && current && current->location && current->location->context == context)
    location = current->location;
  if (location)
    requireSame(context, location->context);
  MlirLocation where = location                 ? location->value
                       : point && point->before ? mlirOperationGetLocation(point->before->get())
                                                : mlirLocationUnknownGet(context->get());
  loadDialect(*session, name);
  MlirOperationState state = mlirOperationStateGet(toRef(name), where);
  std::vector<MlirValue> rawOperands;
  for (const Value &operand : operands) {
    requireSame(context, operand.session().context);
    rawOperands.push_back(operand.get());
  }
  mlirOperationStateAddOperands(&state, rawOperands.size(), rawOperands.data());
  std::vector<MlirType> types;
  if (results) {
    for (const Type &type : *results) {
      requireSame(context, type.context);
      types.push_back(type.value);
    }
    mlirOperationStateAddResults(&state, types.size(), types.data());
  } else {
    mlirOperationStateEnableResultTypeInference(&state);
  }
  std::vector<MlirNamedAttribute> named;
  for (auto [key, value] : attributes) {
    if (!nb::isinstance<Attribute>(value))
      throw nb::type_error(("attribute '" + nb::cast<std::string>(key) + "' is not an ir.Attribute").c_str());
    const auto &attribute = nb::cast<Attribute &>(value);
    requireSame(context, attribute.context);
    named.push_back(
        mlirNamedAttributeGet(mlirIdentifierGet(context->get(), toRef(nb::cast<std::string>(key))), attribute.value));
  }
  mlirOperationStateAddAttributes(&state, named.size(), named.data());
  std::vector<MlirBlock> blocks;
  for (const Block &successor : successors)
    blocks.push_back(successor.get());
  mlirOperationStateAddSuccessors(&state, blocks.size(), blocks.data());
  std::vector<MlirRegion> owned;
  for (unsigned i = 0; i < regions; ++i)
    owned.push_back(mlirRegionCreate());
  mlirOperationStateAddOwnedRegions(&state, owned.size(), owned.data());
  CollectedDiagnostics diagnostics(context->get());
  MlirOperation op = mlirOperationCreate(&state);
  if (mlirOperationIsNull(op))
    raiseError(diagnostics.take(), "'" + std::string(name) + "' cannot be built from these operands and attributes");
  if (!point) {
    Operation built = wrap(*session, op);
    built.state->isOwned = true;
    return built;
  }
  insert(*session, op, *point);
  Operation built = wrap(*session, op);
  // An op with regions is verified once they are filled: by verify(), and after each pass.
  if (regions == 0 && !verifyInside(op)) {
    Diagnostics found = diagnostics.take();
    erase(built);
    raiseError(found, "the operation is invalid");
  }
  return built;
}

Operation parse(std::string_view text, std::optional<InsertionPoint> point) {
  if (!point && defaults())
    point = defaults()->point;
  std::shared_ptr<Session> session = point ? point->block.owner->session : defaults() ? defaults()->session : nullptr;
  if (!session)
    raiseError("no insertion point or context is given; pass `ip=`, or parse inside a `with` block of one");
  CollectedDiagnostics diagnostics(session->context->get());
  std::string terminated(text);
  MlirOperation op =
      mlirOperationCreateParse(session->context->get(), mlirStringRefCreateFromCString(terminated.c_str()),
                               mlirStringRefCreateFromCString("operation.mlir"));
  if (mlirOperationIsNull(op))
    raiseError(diagnostics.take(), "the text is not an operation");
  if (point)
    insert(*session, op, *point);
  Operation parsed = wrap(*session, op);
  parsed.state->isOwned = !point;
  return parsed;
}

Operation cloneTo(const Operation &op, std::optional<InsertionPoint> point) {
  if (!point && defaults())
    point = defaults()->point;
  if (!point)
    raiseError("no insertion point is given; pass `ip=`, or clone inside a `with` block of one");
  requireSame(op.session().context, point->block.session().context);
  Session &session = point->block.session();
  MlirOperation copy = mlirOperationClone(op.get());
  insert(session, copy, *point);
  return wrap(session, copy);
}
} // namespace

void python::bindBuilding(nb::class_<Operation> &operation) {
  operation.def_static(
      "create", &create, "name"_a, "results"_a = nb::none(), "operands"_a = std::vector<Value>(),
      "attributes"_a = nb::dict(), "regions"_a = 0, "successors"_a = std::vector<Block>(), "loc"_a = nb::none(),
      "ip"_a = nb::none(),
      nb::sig(
          "def create(name: str, results: collections.abc.Sequence[Type] | None = None, operands: "
          "collections.abc.Sequence[Value] = "
          "..., attributes: collections.abc.Mapping[str, Attribute] = ..., regions: int = 0, successors: "
          "collections.abc.Sequence[Block] = ..., loc: Location | None = None, ip: InsertionPoint | None = None) -> "
          "Operation"),
      "Builds an operation. Without `results`, their types are inferred.\n\nAn operation without regions is "
      "verified at once.");
  operation.def_static("parse", &parse, "text"_a, "ip"_a = nb::none(),
                       "Parses one operation, such as a whole module. It uses no values of the module around it.");
  operation.def("clone", &cloneTo, "ip"_a = nb::none(),
                "Copies the operation, with its regions, to the insertion point; the copy has the same operands.");
}
