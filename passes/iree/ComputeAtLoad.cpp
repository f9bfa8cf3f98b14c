// Moves the ops behind values that are known at load into one initializer, which stores the values in globals. IREE
// hoists most such ops by itself, but not where results are much larger than what they are computed from, and it gives
// the values no names. The function that returns them is for runtimes that run the kernels without IREE.
#include "passes/Passes.h"
#include "passes/iree/ForeignFunction.h"
#include "passes/iree/ForeignOp.h"
#include "passes/iree/ValuesAtLoad.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tilewright {
#define GEN_PASS_DEF_COMPUTEATLOAD
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns true for ops that hand tensors to kernels or to the caller of the program.
bool readsForKernels(Operation *op) {
  if (isa<tile::LaunchOp, func::ReturnOp>(op) || isNamed(op, "hal.tensor.export") || isNamed(op, "hal.tensor.barrier"))
    return true;
  bool isInLoop = !isa<func::FuncOp>(op->getParentOp()) && holdsLaunches(op->getParentOp());
  return (isInLoop && (isa<OffsetSizeAndStrideOpInterface>(op) || op->hasTrait<OpTrait::IsTerminator>())) ||
         (!isa<func::FuncOp>(op) && holdsLaunches(op)); // a loop, whose states begin with operands
}

bool hasStorage(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getNumElements() > 0 && !type.getEncoding();
}

/// Returns the values that are computed from constants and weights alone and that kernels read. What is only arranged
/// differently is left out, because that can be done without IREE.
llvm::SetVector<Value> decideValues(func::FuncOp function) {
  ValuesAtLoad atLoad;
  llvm::SetVector<Value> values;
  function.walk([&](Operation *op) {
    if (!readsForKernels(op))
      return;
    for (Value operand : op->getOperands()) {
      Value value = isa<RankedTensorType>(operand.getType()) ? behindReshapes(operand) : Value();
      if (value && hasStorage(value) && atLoad.isComputed(value) &&
          !arrangementOf(value, [](Value) { return std::string("source"); }))
        values.insert(value);
    }
  });
  return values;
}

/// Moves the computation of values to an initializer.
class Mover {
public:
  Mover(func::FuncOp function, ArrayRef<Value> values)
      : function(function), values(values), builder(function), loc(function.getLoc()) {
    name = function.getName().str();
    if (StringRef(name).ends_with("$async")) // which the function that callers know calls
      name.resize(name.size() - StringRef("$async").size());
    name += kAtLoadSuffix;
  }

  void move() {
    for (auto [number, value] : llvm::enumerate(values))
      createGlobal(globalName(number), value.getType());
    Block *body = cast<ModuleOp>(function->getParentOp()).getBody();
    // Behind all globals that the values may be computed from. IREE computes what it finds to be constant in initializers
    // in front of the functions, and must find the values there.
    for (Operation &op : *body)
      if (op.getName().getStringRef() == "util.global")
        builder.setInsertionPointAfter(&op);
    createInitializer();
    builder.setInsertionPointToEnd(body);
    createFunction();
    readGlobals();
  }

private:
  std::string globalName(size_t number) const { return name + "_" + std::to_string(number); }

  NamedAttribute property(StringRef of, Attribute value) { return builder.getNamedAttr(of, value); }

  void createGlobal(StringRef symbol, Type type) {
    createForeign(builder, loc, "util.global", {}, {},
                  {property("sym_name", builder.getStringAttr(symbol)),
                   property("sym_visibility", builder.getStringAttr("private")),
                   property("type", TypeAttr::get(type))});
  }

  Value createLoad(size_t number) {
    auto global = FlatSymbolRefAttr::get(builder.getContext(), globalName(number));
    return createForeign(builder, values[number].getLoc(), "util.global.load", {}, values[number].getType(),
                         {property("global", global)})
        ->getResult(0);
  }

  void createInitializer() {
    OpBuilder::InsertionGuard guard(builder);
    auto type = TypeAttr::get(builder.getFunctionType({}, {}));
    Operation *initializer =
        createForeign(builder, loc, "util.initializer", {}, {}, {property("function_type", type)}, /*hasBlock=*/true);
    builder.setInsertionPointToStart(&initializer->getRegion(0).front());
    IRMapping mapping;
    for (auto [number, value] : llvm::enumerate(values)) {
      clone(value.getDefiningOp(), mapping);
      auto global = FlatSymbolRefAttr::get(builder.getContext(), globalName(number));
      createForeign(builder, loc, "util.global.store", mapping.lookup(value), {}, {property("global", global)});
    }
    createForeign(builder, loc, "util.return", {}, {});
  }

  /// Clones an op behind the ops that it depends on.
  void clone(Operation *op, IRMapping &mapping) {
    if (mapping.contains(op->getResult(0)))
      return;
    llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    for (Value value : read)
      clone(value.getDefiningOp(), mapping);
    builder.clone(*op, mapping);
    moved.push_back(op);
    for (Value result : op->getResults())
      if (isa<DestinationStyleOpInterface>(op) && !result.hasOneUse())
        mapping.map(result, hidden(mapping.lookup(result)));
  }

  /// Hides from IREE what computes a value that several ops read. IREE makes copies of a dispatch without inputs for its
  /// readers, and takes one result of a copy for another (3.13).
  Value hidden(Value value) {
    return createForeign(builder, loc, "util.optimization_barrier", value, value.getType(), {})->getResult(0);
  }

  void createFunction() {
    OpBuilder::InsertionGuard guard(builder);
    Type view = OpaqueType::get(builder.getStringAttr("hal"), "buffer_view");
    auto type = TypeAttr::get(builder.getFunctionType({}, SmallVector<Type>(values.size(), view)));
    Operation *returning = createForeign(builder, loc, "util.func", {}, {},
                                         {property("function_type", type),
                                          property("sym_name", builder.getStringAttr(name)),
                                          property("sym_visibility", builder.getStringAttr("public"))},
                                         /*hasBlock=*/true);
    builder.setInsertionPointToStart(&returning->getRegion(0).front());
    SmallVector<Value> views;
    for (size_t number = 0; number < values.size(); ++number)
      views.push_back(createForeign(builder, loc, "hal.tensor.export", createLoad(number), view,
                                    {property("source_encoding", TypeAttr::get(values[number].getType()))})
                          ->getResult(0));
    createForeign(builder, loc, "util.return", views, {});
  }

  void readGlobals() {
    builder.setInsertionPointToStart(&function.getBody().front());
    for (size_t number = 0; number < values.size(); ++number) {
      Value value = values[number];
      value.replaceAllUsesWith(createLoad(number));
    }
    for (Operation *op : llvm::reverse(moved)) // readers come first
      if (isOpTriviallyDead(op))
        op->erase();
  }

  func::FuncOp function;
  ArrayRef<Value> values;
  SmallVector<Operation *> moved; ///< each behind those that it depends on
  OpBuilder builder;
  Location loc;
  std::string name;
};

struct ComputeAtLoad : tilewright::impl::ComputeAtLoadBase<ComputeAtLoad> {
  void runOnOperation() override {
    auto functions = getOperation().getOps<func::FuncOp>();
    auto launching = llvm::find_if(functions, holdsLaunches);
    if (launching == functions.end())
      return markAllAnalysesPreserved();
    llvm::SetVector<Value> values = decideValues(*launching);
    numMoved += values.size();
    if (values.empty())
      return markAllAnalysesPreserved();
    Mover(*launching, values.getArrayRef()).move();
  }
};
} // namespace
