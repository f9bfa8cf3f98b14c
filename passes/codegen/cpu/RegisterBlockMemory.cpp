// Loads and stores of register blocks. A micro kernel that takes several K per step reads them side by side in each
// lane: rhs is packed that way, or its rows are interleaved when they are loaded.
#include "passes/codegen/cpu/RegisterBlockMemory.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/codegen/common/EmitLoops.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/target/KBlocking.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
Type shaped(Type scalar, Value like) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? Type(vector.clone(scalar)) : scalar;
}
} // namespace

BlockedContraction tilewright::blockedContraction(const ContractionNest &nest) {
  ComputeOp compute = nest.compute;
  auto accessOf = [&](LoadOp load) {
    SliceType type = load.getSlice().getType();
    return OperandAccess{load.getMap(), type.getShape(), type.getElementBytes(), compute.getSizes(),
                         compute.getExtents(), load.getGuard().value_or(IntegerSet())};
  };
  Type element = compute.getBodyBlock().getArgument(0).getType();
  LoadOp lhs = nest.contraction.lhs, rhs = nest.contraction.rhs;
  BlockedContraction contraction{accessOf(lhs),
                                 accessOf(rhs),
                                 nest.contraction.m,
                                 nest.contraction.n,
                                 nest.layout.dim,
                                 nest.contraction.reduced.size() == 1,
                                 rhs.getSlice().getType().getSpace() == Space::global,
                                 cast<SliceType>(compute.getAccs()[0].getType()).getElementType() == element,
                                 nest.layout.rhs.packedDepth,
                                 elementBytes(element),
                                 nest.target.vectorBytes / elementBytes(element),
                                 nest.kernel,
                                 nest.kernel.blockFor(nest.target),
                                 kBlocking(compute.getMicroKernel().value_or("")),
                                 nest.target.costs.cpu};
  contraction.hasFactors = multipliesFactors(contraction, compute->getAttr(kFactorsAttr));
  return contraction;
}

RegisterBlockMemory::RegisterBlockMemory(OpBuilder &builder, ContractionNest nest, const BlockingChoice &blocking)
    : RegisterBlockIndex(builder, nest.compute.getLoc(), nest.compute.getExtents().size(),
                         {nest.contraction.m, nest.contraction.n, nest.layout.dim, nest.kernel.depth}),
      compute(nest.compute), contraction(nest.contraction), layout(nest.layout), kernel(nest.kernel),
      outer(nest.values), depth(kernel.depth), element(compute.getBodyBlock().getArgument(0).getType()),
      own(blockedContraction(nest)), blocking(blocking), lanes(own.lanes), block{own.block.rows, blocking.vectors} {
  // The loop over steps is the innermost one.
  llvm::erase(contraction.reduced, layout.dim);
  contraction.reduced.push_back(layout.dim);
  // If tiles have whole panels, the index along N counts panels, so that indices into packed layouts simplify.
  panel = std::max(width(), packedWidth());
  int64_t size = compute.getSizes()[contraction.n];
  aligned = size % panel == 0 || size == compute.getExtents()[contraction.n];
}

int64_t RegisterBlockMemory::packedWidth() {
  std::optional<int64_t> packed = panelWidth(contraction.rhs.getMap(), contraction.n);
  return packed && *packed % width() == 0 ? *packed : 1;
}

TypedAttr RegisterBlockMemory::init() {
  return isa<UnitAttr>(compute.getInits()[0]) ? TypedAttr() : dyn_cast<TypedAttr>(compute.getInits()[0]);
}

Type RegisterBlockMemory::storedRhs() {
  return cast<MemRefType>(outer.lookup(contraction.rhs.getSlice()).getType()).getElementType();
}

// --- layout of the operands ------------------------------------------------------------------------------------------

/// Returns true if the elements of each vector of a block are evenly spaced, `apart` elements from each other.
bool RegisterBlockMemory::liesAlongN(SliceType type, AffineMap map, int64_t count, int64_t apart) {
  for (int64_t n = 0; n < count; ++n)
    if (distance(type, map, 0, {n / lanes * lanes, n}, {0, 0}) != n % lanes * apart)
      return false;
  return true;
}

bool RegisterBlockMemory::liesAlongN(int64_t count) {
  return liesAlongN(contraction.rhs.getSlice().getType(), contraction.rhs.getMap(), count,
                    isPackedInDepth() ? depth : 1) &&
         liesAlongN(accumulatorType(), accumulatorMap(), count, 1);
}

bool RegisterBlockMemory::lieSideBySide(LoadOp load, int64_t row) {
  if (load == contraction.lhs && own.lhs.alignedElements(layout.dim, depth) == depth)
    return true;
  for (int64_t k = 1; k < depth; ++k)
    if (distance(load.getSlice().getType(), load.getMap(), row, {0, 0}, {0, k}) != k)
      return false;
  return true;
}

/// An operand that is packed in K is loaded without masks.
bool RegisterBlockMemory::holdsWholeVectors() {
  ArrayRef<int64_t> shape = contraction.rhs.getSlice().getType().getShape();
  return !isPackedInDepth() || (shape[shape.size() - 2] % lanes == 0 && lieSideBySide(contraction.rhs, 0));
}

// --- operands --------------------------------------------------------------------------------------------------------

/// Returns the place of an element. Outside of the guard, that is in a line of zeros: a choice of the address, which the
/// steps of an iteration share, takes less time than a mask of each element.
RegisterBlockMemory::Place RegisterBlockMemory::lhsPlace(int64_t row, int64_t k) {
  Place place{outer.lookup(contraction.lhs.getSlice()), at(contraction.lhs.getMap(), row, 0, k)};
  std::optional<IntegerSet> guard = contraction.lhs.getGuard();
  if (!guard)
    return place;
  GuardedRow &known = guardedRows[row];
  if (inTogether == 0 || !own.lhs.isGuardedByRuns(layout.dim, together)) {
    known.isInside = isInGuard(*guard, row, k);
    Value line = lineOfZeros(cast<MemRefType>(place.memory.getType()));
    known.memory = arith::SelectOp::create(builder, loc, known.isInside, place.memory, line);
  }
  place.memory = known.memory;
  Value zero = constantIndex(0);
  MutableArrayRef<Value> chosen(place.index);
  for (Value &index : lastIndexIsInside() ? chosen.drop_back() : chosen)
    index = arith::SelectOp::create(builder, loc, known.isInside, index, zero);
  return place;
}

/// Returns true if the last index of lhs is one of the slice outside of the guard, too.
bool RegisterBlockMemory::lastIndexIsInside() {
  AffineMap map = contraction.lhs.getMap();
  AffineExpr last = map.getResults().back();
  for (unsigned symbol = 0; symbol < map.getNumSymbols(); ++symbol)
    if (last.isFunctionOfSymbol(symbol))
      return false;
  Interval range = boundExpr(last, domainRanges(compute.getExtents()));
  return range.low >= 0 && range.high < contraction.lhs.getSlice().getType().getShape().back();
}

Value RegisterBlockMemory::isInGuard(IntegerSet guard, int64_t row, int64_t k) {
  AffineMap constraints = AffineMap::get(guard.getNumDims(), guard.getNumSymbols(), guard.getConstraints(),
                                         builder.getContext());
  Value all;
  for (auto [value, equality] : llvm::zip_equal(at(constraints, row, 0, k), guard.getEqFlags())) {
    auto predicate = equality ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;
    Value holds = arith::CmpIOp::create(builder, loc, predicate, value, constantIndex(0));
    all = all ? arith::AndIOp::create(builder, loc, all, holds).getResult() : holds;
  }
  return all;
}

Value RegisterBlockMemory::lineOfZeros(MemRefType type) {
  if (outside)
    return outside;
  Type stored = type.getElementType();
  int64_t perVector = lanes * depth, length = llvm::alignTo(type.getShape().back(), perVector);
  Value line = allocateOnStack({length}, stored);
  OpBuilder::InsertionGuard back(builder);
  builder.setInsertionPointAfterValue(line);
  Value none = zeros(VectorType::get({perVector}, stored));
  emitFor(builder, loc, constantIndex(0), constantIndex(length), constantIndex(perVector),
          [&](Value at) { vector::StoreOp::create(builder, loc, none, line, at); });
  auto [strides, offset] = type.getStridesAndOffset();
  return outside = memref::ReinterpretCastOp::create(builder, loc, type, line, offset, type.getShape(), strides);
}

Value RegisterBlockMemory::loadLhs(int64_t row, int64_t k) {
  Place first = lhsPlace(row);
  if (depth == 1)
    return broadcast(
        widen(memref::LoadOp::create(builder, loc, first.memory, first.index), contraction.lhsWidening));
  Type stored = cast<MemRefType>(first.memory.getType()).getElementType();
  auto type = VectorType::get({depth}, stored);
  Value together;
  if (k == depth && lieSideBySide(contraction.lhs, row)) {
    together = vector::LoadOp::create(builder, loc, type, first.memory, first.index);
  } else {
    together = zeros(type);
    for (int64_t i = 0; i < k; ++i) {
      Place place = lhsPlace(row, i);
      Value value = memref::LoadOp::create(builder, loc, place.memory, place.index);
      together = vector::InsertOp::create(builder, loc, value, together, i);
    }
  }
  auto bits = builder.getIntegerType(depth * stored.getIntOrFloatBitWidth());
  Value scalar = vector::BitCastOp::create(builder, loc, VectorType::get({1}, bits), together);
  scalar = vector::ExtractOp::create(builder, loc, scalar, 0);
  return vector::BitCastOp::create(builder, loc, VectorType::get({lanes * depth}, stored), broadcast(scalar));
}

Value RegisterBlockMemory::loadRhs(int64_t vector, int64_t count, int64_t k) {
  Value memory = outer.lookup(contraction.rhs.getSlice());
  AffineMap map = contraction.rhs.getMap();
  if (isPackedInDepth()) // panels are whole, because zeros pad them
    return vector::LoadOp::create(builder, loc, VectorType::get({lanes * depth}, storedRhs()), memory,
                                  at(map, 0, vector * lanes));
  if (depth == 1)
    return widen(load(memory, at(map, 0, vector * lanes), vector, count), contraction.rhsWidening);
  SmallVector<Value> rows;
  for (int64_t i = 0; i < depth; ++i)
    rows.push_back(i < k ? load(memory, at(map, 0, vector * lanes, i), vector, count)
                         : zeros(VectorType::get({lanes}, storedRhs())));
  return sideBySide(rows);
}

/// Interleaves the elements of several vectors, whose number is a power of two.
Value RegisterBlockMemory::sideBySide(ArrayRef<Value> rows) {
  if (rows.size() == 1)
    return rows[0];
  SmallVector<Value> even, odd;
  for (auto [i, row] : llvm::enumerate(rows))
    (i % 2 == 0 ? even : odd).push_back(row);
  return vector::InterleaveOp::create(builder, loc, sideBySide(even), sideBySide(odd));
}

// --- accumulators ----------------------------------------------------------------------------------------------------

Value RegisterBlockMemory::loadAccumulators(int64_t row, int64_t vector, int64_t count) {
  SmallVector<Value> index = at(accumulatorMap(), row, vector * lanes);
  return widen(load(outer.lookup(compute.getAccs()[0]), index, vector, count), element);
}

void RegisterBlockMemory::storeAccumulators(Value accumulators, int64_t row, int64_t vector, int64_t count) {
  if (!keepsAccumulators())
    accumulators = arith::TruncFOp::create(builder, loc, VectorType::get({lanes}, accumulatorType().getElementType()),
                                           accumulators);
  Value memory = outer.lookup(compute.getAccs()[0]);
  SmallVector<Value> index = at(accumulatorMap(), row, vector * lanes);
  if (Value mask = maskOf(vector, count))
    vector::MaskedStoreOp::create(builder, loc, memory, index, mask, accumulators);
  else
    vector::StoreOp::create(builder, loc, accumulators, memory, index);
}

// --- vectors ---------------------------------------------------------------------------------------------------------

Value RegisterBlockMemory::load(Value memory, ArrayRef<Value> index, int64_t vector, int64_t count) {
  auto type = VectorType::get({lanes}, cast<MemRefType>(memory.getType()).getElementType());
  if (Value mask = maskOf(vector, count))
    return vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask, zeros(type));
  return vector::LoadOp::create(builder, loc, type, memory, index);
}

/// Returns the mask of the lanes in use, or null if all are.
Value RegisterBlockMemory::maskOf(int64_t vector, int64_t count) {
  int64_t left = count - vector * lanes;
  if (left >= lanes)
    return {};
  return vector::ConstantMaskOp::create(builder, loc, VectorType::get({lanes}, builder.getI1Type()),
                                        ArrayRef<int64_t>{left});
}

Value RegisterBlockMemory::widen(Value value, Type type) {
  if (getElementTypeOrSelf(value.getType()) == type)
    return value;
  return arith::ExtFOp::create(builder, loc, shaped(type, value), value);
}

/// Widens a value with the op that the graph uses.
Value RegisterBlockMemory::widen(Value value, Operation *widening) {
  if (isa_and_nonnull<arith::ExtSIOp>(widening))
    return arith::ExtSIOp::create(builder, loc, shaped(element, value), value);
  if (isa_and_nonnull<arith::ExtUIOp>(widening))
    return arith::ExtUIOp::create(builder, loc, shaped(element, value), value);
  return widen(value, element);
}

Value RegisterBlockMemory::allocateOnStack(ArrayRef<int64_t> shape, Type stored) {
  OpBuilder::InsertionGuard guard(builder);
  auto function = builder.getInsertionBlock()->getParentOp();
  while (!isa<FunctionOpInterface>(function))
    function = function->getParentOp();
  builder.setInsertionPointToStart(&function->getRegion(0).front());
  return memref::AllocaOp::create(builder, loc, MemRefType::get(shape, stored), builder.getI64IntegerAttr(64));
}

Value RegisterBlockMemory::constant(TypedAttr value) { return arith::ConstantOp::create(builder, loc, value); }
Value RegisterBlockMemory::constantIndex(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
Value RegisterBlockMemory::add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
Value RegisterBlockMemory::broadcast(Value scalar) {
  return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, scalar.getType()), scalar);
}
