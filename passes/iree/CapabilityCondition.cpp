// Builds the condition from two device queries, because IREE's CUDA driver reports the major and the minor number of
// the compute capability separately.
#include "passes/iree/CapabilityCondition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace {
/// Returns the driver's answer to a device query with this key as an i32.
Value query(OpBuilder &builder, Location loc, Value device, StringRef key) {
  OperationState state(loc, "hal.device.query");
  state.addOperands(device);
  state.addTypes({builder.getI1Type(), builder.getI32Type()});
  state.addAttribute("category", builder.getStringAttr("cuda.device"));
  state.addAttribute("key", builder.getStringAttr(key));
  return builder.create(state)->getResult(1);
}
} // namespace

void tilewright::buildCapabilityCondition(OpBuilder &builder, Location loc, int64_t capability) {
  auto device = OpaqueType::get(builder.getStringAttr("hal"), "device");
  OperationState state(loc, "hal.executable.condition");
  state.addAttribute("function_type", TypeAttr::get(builder.getFunctionType({device}, {builder.getI1Type()})));
  Block &body = state.addRegion()->emplaceBlock();
  body.addArgument(device, loc);
  builder.create(state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&body);
  // A query that fails returns 0.
  Value major = query(builder, loc, body.getArgument(0), "compute_capability_major");
  Value minor = query(builder, loc, body.getArgument(0), "compute_capability_minor");
  Value ten = arith::ConstantIntOp::create(builder, loc, 10, 32);
  Value both = arith::AddIOp::create(builder, loc, arith::MulIOp::create(builder, loc, major, ten), minor);
  Value least = arith::ConstantIntOp::create(builder, loc, capability, 32);
  Value suffices = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, both, least);
  OperationState result(loc, "hal.return");
  result.addOperands(suffices);
  builder.create(result);
}
