// Clones the body op by op. Loads of slices in registers become the registers, other loads are emitted at the current
// point, and ops on several neighbours become vector ops. Loads that are constant along a row are hoisted to the row,
// and divisions by them become multiplications by a reciprocal where that is allowed.
#include "passes/codegen/gpu/gemm/Epilogue.h"

#include "passes/program/RegisterHandover.h"
#include "passes/program/Slices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

Epilogue::Epilogue(ContractionFrame &contraction, const EpilogueNest &reader, int64_t lane)
    : contraction(contraction), frame(contraction.builder, reader.nest, contraction.values, contraction.thread,
                                      contraction.threads, contraction.scratch, contraction.costs),
      reader(reader), lane(llvm::find(reader.dims, lane) - reader.dims.begin()) {}

void Epilogue::enterPoint() {
  for (auto [own, dim] : llvm::enumerate(reader.dims))
    if (dim >= 0)
      frame.indices[own] = contraction.indices[dim];
}

void Epilogue::enterRow() {
  enterPoint();
  ofRow.clear();
  auto isHeld = [](LoadOp load) {
    auto buffer = load.getSlice().getDefiningOp<AllocOp>();
    return buffer && staysInRegisters(buffer);
  };
  for (LoadOp load : reader.nest.getBodyBlock().getOps<LoadOp>())
    if (!load.getMap().isFunctionOfDim(lane) && !isHeld(load))
      ofRow[load] = memref::LoadOp::create(frame.builder, frame.loc, frame.values.lookup(load.getSlice()),
                                           frame.at(load.getMap()));
  divisors.clear();
  for (auto division : reader.nest.getBodyBlock().getOps<arith::DivFOp>())
    if (Value divisor = ofRow.lookup(division.getRhs().getDefiningOp()); divisor && allowsReciprocal(division))
      divisors[division] = reciprocalOf(frame.builder, frame.loc, divisor);
}

void Epilogue::storeAccumulator(unsigned i, Value value) {
  enterPoint();
  Value slice = reader.nest.getAccs()[i];
  Type stored = cast<SliceType>(slice.getType()).getElementType();
  if (stored != value.getType())
    value = arith::TruncFOp::create(frame.builder, frame.loc, stored, value);
  AffineMap map = cast<AffineMapAttr>(reader.nest.getAccMaps()[i]).getValue();
  memref::StoreOp::create(frame.builder, frame.loc, value, frame.values.lookup(slice), frame.at(map));
}

SmallVector<Value> Epilogue::emit(SliceValues &registers, ValueRange accumulators) {
  auto vector = dyn_cast<VectorType>(registers.front().second.getType());
  count = vector ? vector.getNumElements() : 1;
  enterPoint();
  IRMapping values = contraction.values;
  values.map(reader.nest.getBodyBlock().getArguments(), accumulators);
  for (Operation &op : reader.nest.getBodyBlock().without_terminator()) {
    if (auto loadOp = dyn_cast<LoadOp>(op))
      values.map(loadOp.getValue(),
                 registers.contains(loadOp.getSlice()) ? registers[loadOp.getSlice()] : load(loadOp));
    else if (auto storeOp = dyn_cast<StoreOp>(op); storeOp && registers.contains(storeOp.getSlice()))
      registers[storeOp.getSlice()] = toShape(values.lookupOrDefault(storeOp.getValue()));
    else if (storeOp)
      store(storeOp, values.lookupOrDefault(storeOp.getValue()));
    else if (auto index = dyn_cast<IndexOp>(op))
      values.map(index.getResult(), indexAt(index.getMap()));
    else if (op.hasTrait<OpTrait::ConstantLike>())
      frame.builder.clone(op, values);
    else
      emitElementwise(op, values);
  }
  return llvm::map_to_vector(reader.nest.getBodyBlock().getTerminator()->getOperands(),
                             [&](Value value) { return toShape(values.lookupOrDefault(value)); });
}

/// Returns the index of all neighbours.
Value Epilogue::indexAt(AffineMap map) {
  if (count == 1 || !map.isFunctionOfDim(lane))
    return frame.at(map).front();
  SmallVector<Value> places;
  Value first = frame.indices[lane];
  for (int64_t i = 0; i < count; ++i) {
    frame.indices[lane] = frame.add(first, i);
    places.push_back(frame.at(map).front());
  }
  frame.indices[lane] = first;
  return vector::FromElementsOp::create(frame.builder, frame.loc, VectorType::get({count}, places[0].getType()),
                                        places);
}

/// Broadcasts a value that all neighbours share, unless there is already one for each.
Value Epilogue::toShape(Value value) {
  if (count == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(frame.builder, frame.loc, VectorType::get({count}, value.getType()), value);
}

Value Epilogue::load(LoadOp load) {
  if (Value known = ofRow.lookup(load))
    return known;
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

void Epilogue::store(StoreOp store, Value value) {
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

/// Emits a scalar op for all neighbours: the same op with vector types.
void Epilogue::emitElementwise(Operation &op, IRMapping &values) {
  OpBuilder &builder = frame.builder;
  if (auto divisor = divisors.find(&op); divisor != divisors.end()) {
    Value dividend = toShape(values.lookupOrDefault(op.getOperand(0)));
    Value scaled = arith::MulFOp::create(builder, frame.loc, dividend, toShape(divisor->second.scale));
    values.map(op.getResult(0),
               arith::MulFOp::create(builder, frame.loc, scaled, toShape(divisor->second.reciprocal)).getResult());
    return;
  }
  OperationState state(frame.loc, op.getName());
  for (Value operand : op.getOperands())
    state.addOperands(toShape(values.lookupOrDefault(operand)));
  for (Type type : op.getResultTypes())
    state.addTypes(count == 1 ? type : VectorType::get({count}, type));
  state.attributes = op.getDiscardableAttrDictionary();
  state.propertiesAttr = op.getPropertiesAsAttribute();
  Operation *emitted = builder.create(state);
  // With fast-math flags, LLVM would use reciprocal estimates that are off by more than one unit in the last place.
  if (auto division = dyn_cast<arith::DivFOp>(emitted))
    division.setFastmath(arith::FastMathFlags::none);
  values.map(op.getResults(), emitted->getResults());
}
