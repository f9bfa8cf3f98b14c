// Gives large results storage of their own. `hal.tensor.alias` is a hint for where a tensor should be stored, and IREE
// copies the tensor if it cannot be stored there. So storage is given only to new results of Tilewright's dispatches
// that a single export reads.
#include "passes/iree/ResultStorage.h"

#include "passes/iree/ForeignOp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Largest allocation, in bytes, that the pools of `local-task` serve.
constexpr int64_t kPooledBytes = 64 << 20;

// Bits of iree_hal_memory_type_t and iree_hal_buffer_usage_t that IREE requests when it allocates a result itself.
constexpr int64_t kDeviceLocal = 0x30;
constexpr int64_t kTransferAndStorage = 0xC03;

/// Returns the bytes of a tensor in memory; 0 if they are not known, or if IREE may pack elements.
int64_t storedBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding() || !tensor.getElementType().isIntOrFloat())
    return 0;
  int64_t bits = tensor.getElementTypeBitWidth();
  return bits % 8 == 0 ? tensor.getNumElements() * (bits / 8) : 0;
}

/// Returns the operand that holds an export's tensor, behind barriers that wait for all results.
OpOperand &exportedTensor(Operation *exported) {
  OpOperand *operand = &exported->getOpOperand(0);
  while (isNamed(operand->get().getDefiningOp(), "hal.tensor.barrier"))
    operand = &operand->get().getDefiningOp()->getOpOperand(cast<OpResult>(operand->get()).getResultNumber());
  return *operand;
}

/// Returns true if a dispatch computes the exported tensor in new memory, and the export is its only reader.
bool isMadeFor(OpOperand &exported) {
  Value tensor = exported.get();
  while (tensor.hasOneUse() && isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  Operation *dispatch = tensor.getDefiningOp();
  if (!tensor.hasOneUse() || !isNamed(dispatch, "flow.dispatch"))
    return false;
  auto tied = dispatch->getAttrOfType<ArrayAttr>("tied_operands");
  return tied && cast<IntegerAttr>(tied[cast<OpResult>(tensor).getResultNumber()]).getInt() < 0;
}

class StorageBuilder {
public:
  explicit StorageBuilder(Operation *before) : builder(before), loc(before->getLoc()) {}

  /// Returns the same tensor, stored in a new buffer.
  Value place(Value tensor, int64_t bytes) {
    Value first = arith::ConstantIndexOp::create(builder, loc, 0);
    Value device = create("hal.devices.get", first, halType("device"));
    Value allocator = create("hal.device.allocator", device, halType("allocator"));
    Value queues = arith::ConstantIntOp::create(builder, loc, -1, 64);
    Value memory = arith::ConstantIntOp::create(builder, loc, kDeviceLocal, 32);
    Value usage = arith::ConstantIntOp::create(builder, loc, kTransferAndStorage, 32);
    Value size = arith::ConstantIndexOp::create(builder, loc, bytes);
    Value buffer = create("hal.allocator.allocate", {allocator, queues, memory, usage, size}, halType("buffer"));
    OperationState alias(loc, "hal.tensor.alias");
    alias.addOperands({tensor, buffer});
    alias.addTypes(tensor.getType());
    alias.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr({1, 0, 1, 0}));
    return builder.create(alias)->getResult(0);
  }

private:
  Type halType(StringRef name) { return OpaqueType::get(builder.getStringAttr("hal"), name); }

  Value create(StringRef name, ValueRange operands, Type type) {
    OperationState state(loc, name);
    state.addOperands(operands);
    state.addTypes(type);
    return builder.create(state)->getResult(0);
  }

  OpBuilder builder;
  Location loc;
};
} // namespace

void tilewright::storeLargeResults(ModuleOp module) {
  SmallVector<Operation *> exports;
  module.walk([&](Operation *op) {
    if (isNamed(op, "hal.tensor.export"))
      exports.push_back(op);
  });
  for (Operation *op : exports) {
    OpOperand &result = exportedTensor(op);
    int64_t bytes = storedBytes(result.get().getType());
    if (bytes > kPooledBytes && isMadeFor(result))
      result.set(StorageBuilder(result.getOwner()).place(result.get(), bytes));
  }
}
