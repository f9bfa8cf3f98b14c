#include "passes/codegen/gpu/SumEpilogue.h"

#include "passes/codegen/cpu/Slices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

SumEpilogue::SumEpilogue(ContractionFrame &contraction, const RegisterHandover &handover, int64_t lane)
    : contraction(contraction), frame(contraction.builder, handover.reader, contraction.values, contraction.thread,
                                      contraction.threads, contraction.scratch),
      handover(handover), lane(llvm::find(handover.dims, lane) - handover.dims.begin()) {}

void SumEpilogue::emit(Value sums) {
  auto vector = dyn_cast<VectorType>(sums.getType());
  count = vector ? vector.getNumElements() : 1;
  for (auto [own, dim] : llvm::enumerate(handover.dims))
    if (dim >= 0)
      frame.indices[own] = contraction.indices[dim];
  IRMapping values = contraction.values;
  Value buffer = contraction.compute.getAccs()[0];
  for (Operation &op : handover.reader.getBodyBlock().without_terminator()) {
    if (auto loadOp = dyn_cast<LoadOp>(op))
      values.map(loadOp.getValue(), loadOp.getSlice() == buffer ? sums : load(loadOp));
    else if (auto storeOp = dyn_cast<StoreOp>(op))
      store(storeOp, values.lookupOrDefault(storeOp.getValue()));
    else if (op.hasTrait<OpTrait::ConstantLike>())
      frame.builder.clone(op, values);
    else
      emitElementwise(op, values);
  }
}

/// One value for all neighbours, or one for each.
Value SumEpilogue::toShape(Value value) {
  if (count == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(frame.builder, frame.loc, VectorType::get({count}, value.getType()), value);
}

Value SumEpilogue::load(LoadOp load) {
  OpBuilder &builder = frame.builder;
  Value memory = frame.values.lookup(load.getSlice());
  AffineMap map = load.getMap();
  SliceType type = load.getSlice().getType();
  if (count == 1 || !map.isFunctionOfDim(lane))
    return memref::LoadOp::create(builder, frame.loc, memory, frame.at(map));
  auto vector = VectorType::get({count}, type.getElementType());
  if (strideAlong(map, denseStrides(type.getShape()), lane) == 1) {
    auto loaded = vector::LoadOp::create(builder, frame.loc, vector, memory, frame.at(map));
    loaded.setAlignment(frame.alignedRun(type, map, lane, count) * elementBytes(type.getElementType()));
    return loaded;
  }
  SmallVector<Value> elements;
  Value first = frame.indices[lane];
  for (int64_t i = 0; i < count; ++i) {
    frame.indices[lane] = frame.add(first, i);
    elements.push_back(memref::LoadOp::create(builder, frame.loc, memory, frame.at(map)));
  }
  frame.indices[lane] = first;
  return vector::FromElementsOp::create(builder, frame.loc, vector, elements);
}

void SumEpilogue::store(StoreOp store, Value value) {
  OpBuilder &builder = frame.builder;
  Value memory = frame.values.lookup(store.getSlice());
  AffineMap map = store.getMap();
  SliceType type = store.getSlice().getType();
  value = toShape(value);
  if (count > 1 && strideAlong(map, denseStrides(type.getShape()), lane) == 1) {
    auto stored = vector::StoreOp::create(builder, frame.loc, value, memory, frame.at(map));
    stored.setAlignment(frame.alignedRun(type, map, lane, count) * elementBytes(type.getElementType()));
    return;
  }
  if (count == 1) {
    memref::StoreOp::create(builder, frame.loc, value, memory, frame.at(map));
    return;
  }
  Value first = frame.indices[lane];
  for (int64_t i = 0; i < count; ++i) {
    frame.indices[lane] = frame.add(first, i);
    Value element = vector::ExtractOp::create(builder, frame.loc, value, i);
    memref::StoreOp::create(builder, frame.loc, element, memory, frame.at(map));
  }
  frame.indices[lane] = first;
}

/// A scalar op on neighbours: the same op with vector types.
void SumEpilogue::emitElementwise(Operation &op, IRMapping &values) {
  OpBuilder &builder = frame.builder;
  OperationState state(frame.loc, op.getName());
  for (Value operand : op.getOperands())
    state.addOperands(toShape(values.lookupOrDefault(operand)));
  for (Type type : op.getResultTypes())
    state.addTypes(count == 1 ? type : VectorType::get({count}, type));
  state.attributes = op.getDiscardableAttrDictionary();
  state.propertiesAttr = op.getPropertiesAsAttribute();
  values.map(op.getResults(), builder.create(state)->getResults());
}
