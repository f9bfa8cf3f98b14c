// Isolates ops by cloning backwards from a result.
#include "passes/iree/ForeignFunction.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Clones the ops that compute a tensor into a function, and adds arguments as it reaches them.
class Isolation {
public:
  explicit Isolation(func::FuncOp function)
      : function(function), body(function.addEntryBlock()), builder(OpBuilder::atBlockEnd(body)) {}

  /// Returns the value in the function that replaces `value`, or null if it cannot be computed there.
  Value take(Value value) {
    value = behindBarriers(value);
    if (Value known = mapping.lookupOrNull(value))
      return known;
    if (comesFromElsewhere(value)) {
      inputs.push_back(value);
      mapping.map(value, body->addArgument(value.getType(), value.getLoc()));
      return mapping.lookup(value);
    }
    Operation *op = value.getDefiningOp();
    if (!op || namesSymbols(*op) || !takeOperands(*op))
      return {};
    builder.clone(*op, mapping);
    return mapping.lookup(value);
  }

  void finish(Value result) {
    func::ReturnOp::create(builder, result.getLoc(), result);
    function.setFunctionType(builder.getFunctionType(body->getArgumentTypes(), result.getType()));
  }

  SmallVector<Value> inputs;

private:
  /// Returns true for ops that refer to symbols, such as functions and globals that are not tensors. They cannot be
  /// cloned into another module.
  static bool namesSymbols(Operation &op) {
    auto finds = [](Attribute attribute) {
      return attribute && attribute.walk([](SymbolRefAttr) { return WalkResult::interrupt(); }).wasInterrupted();
    };
    return finds(op.getAttrDictionary()) || (!op.isRegistered() && finds(op.getPropertiesAsAttribute()));
  }

  bool takeOperands(Operation &op) {
    llvm::SetVector<Value> read(op.operand_begin(), op.operand_end());
    getUsedValuesDefinedAbove(op.getRegions(), read);
    return llvm::all_of(read, [&](Value value) {
      Value taken = take(value);
      if (taken)
        mapping.map(value, taken);
      return static_cast<bool>(taken);
    });
  }

  func::FuncOp function;
  Block *body;
  OpBuilder builder;
  IRMapping mapping;
};
} // namespace

bool tilewright::holdsLaunches(Operation *op) {
  return op->getNumRegions() > 0 &&
         op->walk([](tile::LaunchOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool tilewright::comesFromElsewhere(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isa<RankedTensorType>(value.getType()))
    return false;
  StringRef name = op->getName().getStringRef();
  return isa<tile::LaunchOp>(op) || holdsLaunches(op) || name == "hal.tensor.import" || name == "util.global.load";
}

Value tilewright::behindBarriers(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    StringRef name = op->getName().getStringRef();
    if (name.starts_with("iree_tensor_ext.compute_barrier."))
      value = op->getOperand(0);
    else if (name == "hal.tensor.barrier")
      value = op->getOperand(cast<OpResult>(value).getResultNumber());
    else
      break;
  }
  return value;
}

Value tilewright::behindReshapes(Value value) {
  value = behindBarriers(value);
  while (isa_and_present<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(value.getDefiningOp()))
    value = behindBarriers(value.getDefiningOp()->getOperand(0));
  return value;
}

std::optional<ForeignFunction> tilewright::isolate(Value result, StringRef name) {
  MLIRContext *context = result.getContext();
  OwningOpRef<func::FuncOp> function = func::FuncOp::create(result.getLoc(), name, FunctionType::get(context, {}, {}));
  Isolation isolation(*function);
  Value isolated = isolation.take(result);
  if (!isolated)
    return std::nullopt;
  isolation.finish(isolated);
  return ForeignFunction{std::move(function), std::move(isolation.inputs)};
}
