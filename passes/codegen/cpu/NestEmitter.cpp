#include "passes/codegen/cpu/NestMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

static TypedAttr neutralElement(vector::CombiningKind kind, Type type) {
  using Kind = vector::CombiningKind;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
    switch (kind) {
    case Kind::MUL:
      return FloatAttr::get(type, 1.0);
    case Kind::MAXIMUMF:
    case Kind::MAXNUMF:
      return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
    case Kind::MINIMUMF:
    case Kind::MINNUMF:
      return FloatAttr::get(type, APFloat::getInf(semantics));
    default:
      return FloatAttr::get(type, APFloat::getZero(semantics, /*Negative=*/true));
    }
  }
  unsigned width = type.getIntOrFloatBitWidth();
  switch (kind) {
  case Kind::MUL:
    return IntegerAttr::get(type, APInt(width, 1));
  case Kind::AND:
  case Kind::MINUI:
    return IntegerAttr::get(type, APInt::getAllOnes(width));
  case Kind::MAXSI:
    return IntegerAttr::get(type, APInt::getSignedMinValue(width));
  case Kind::MINSI:
    return IntegerAttr::get(type, APInt::getSignedMaxValue(width));
  default:
    return IntegerAttr::get(type, APInt::getZero(width));
  }
}

namespace {
class NestEmitter : NestMemory {
public:
  NestEmitter(OpBuilder &builder, ComputeOp compute, const NestStructure &nest, const IRMapping &values,
              VectorShape shape, NestThreads *threads)
      : NestMemory(builder, compute, nest, values, shape, threads), nest(nest), registerBytes(shape.bytes) {}

  void emit() {
    findOffsets();
    IRMapping values = outer;
    if (threads)
      stores = threads->leads(builder, /*accumulator=*/false);
    if (!stores || threads->combines())
      return emitLevel(0, values, Value());
    auto branch = scf::IfOp::create(builder, loc, std::exchange(stores, Value()));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emitLevel(0, values, Value());
  }

  /// Emits both; what the other one does to memory goes on all the time.
  void emitWith(NestEmitter &other) {
    beside = &other;
    leavesMemoryIdle = false;
    other.findOffsets();
    emit();
  }

private:
  void findOffsets() {
    offsets.assign(offsets.size(), constantIndex(0));
    for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
      offsets[dim] = outer.lookup(offset);
  }

  /// The ops of the nest that shares these loops, at the same point of its own tile.
  void emitBeside(unsigned level, IRMapping &values, Value mask) {
    if (!beside)
      return;
    beside->indices = indices;
    for (int64_t dim : compute.getOffsetDims())
      if (llvm::is_contained(ArrayRef(nest.order).take_front(level), dim))
        beside->indices[dim] = addValues(beside->offsets[dim], sub(indices[dim], offsets[dim]));
    beside->emitOps(level, values, mask);
  }

  // --- loops -------------------------------------------------------------------------------------------------------

  void emitLevel(unsigned level, IRMapping &values, Value mask) {
    if (level == nest.numParallel && !compute.getAccs().empty()) {
      emitReductions(values, mask);
      return;
    }
    emitOps(level, values, mask);
    if (level < nest.order.size())
      emitLoop(level, values, mask, {}, [&](IRMapping &inner, Value innerMask, ValueRange) {
        emitLevel(level + 1, inner, innerMask);
        return SmallVector<Value>();
      });
  }

  using LoopBody = llvm::function_ref<SmallVector<Value>(IRMapping &, Value mask, ValueRange carried)>;

  /// The loop over nest.order[level], with values carried around it; the vector dim's becomes a loop over whole vectors
  /// and a masked tail.
  SmallVector<Value> emitLoop(unsigned level, const IRMapping &values, Value mask, ValueRange carried, LoopBody body) {
    int64_t dim = nest.order[level], size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
    Value low = offsets[dim];
    bool partial = extent % size != 0;
    if (threads)
      return emitShare(level, values, carried, body);
    if (dim != vectorDim) {
      if (size == 1)
        return emitPoint(dim, low, values, mask, carried, body);
      Value high = partial ? clampedEnd(low, size, extent) : add(low, size);
      return emitFor(dim, low, high, 1, values, mask, carried, body);
    }
    if (!partial) {
      int64_t whole = size / lanes * lanes;
      SmallVector<Value> now(carried);
      if (whole == lanes)
        now = emitPoint(dim, low, values, mask, now, body);
      else if (whole > 0)
        now = emitFor(dim, low, add(low, whole), lanes, values, mask, now, body);
      if (whole < size)
        now = emitTail(dim, add(low, whole), size - whole, values, now, body);
      return now;
    }
    // The last tile of the grid is shorter: its length is known at run time only.
    Value length = sub(clampedEnd(low, size, extent), low);
    Value remainder = arith::RemUIOp::create(builder, loc, length, constantIndex(lanes));
    Value whole = sub(length, remainder);
    SmallVector<Value> now = emitFor(dim, low, addValues(low, whole), lanes, values, mask, carried, body);
    Value some = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, remainder, constantIndex(0));
    auto branch = scf::IfOp::create(builder, loc, ValueRange(now).getTypes(), some, /*withElseRegion=*/!now.empty());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> tail = emitPoint(dim, addValues(low, whole), values, tailMask(remainder), now, body);
    if (now.empty())
      return {};
    scf::YieldOp::create(builder, loc, tail);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, now);
    return SmallVector<Value>(branch.getResults());
  }

  /// The last points of a row, in no more registers than they take: of what is accumulated, in the first lanes.
  SmallVector<Value> emitTail(int64_t dim, Value first, int64_t points, const IRMapping &values, ValueRange carried,
                              LoopBody body) {
    int64_t all = lanes;
    if (!beside && nest.running < 0)
      lanes = std::min(all, lanesFor(points, registerBytes));
    Value mask = points == lanes ? Value() : tailMask(constantIndex(points));
    SmallVector<Value> now;
    for (auto [i, value] : llvm::enumerate(carried))
      now.push_back(firstLanes(value, carriedLanes(i)));
    now = emitPoint(dim, first, values, mask, now, body);
    lanes = all;
    for (auto [value, whole] : llvm::zip(now, carried))
      if (value.getType() != whole.getType())
        value = vector::InsertStridedSliceOp::create(builder, loc, value, whole, 0, 1);
    return now;
  }

  Value firstLanes(Value vector, int64_t count) {
    if (cast<VectorType>(vector.getType()).getNumElements() == count)
      return vector;
    return vector::ExtractStridedSliceOp::create(builder, loc, vector, 0, count, 1);
  }

  /// Of what a reduction along the lanes carries, first the accumulators, then what saw a NaN.
  int64_t carriedLanes(size_t i) {
    size_t accumulators = compute.getAccs().size();
    return i >= accumulators && nest.running < 0 && asksHalves(nest.extrema[i - accumulators]) ? lanes / 2 : lanes;
  }

  /// The part of a loop that falls to this thread: every so many vectors from its own first one. Lanes divide the
  /// extents, so no vector is partial.
  SmallVector<Value> emitShare(unsigned level, const IRMapping &values, ValueRange carried, LoopBody body) {
    int64_t dim = nest.order[level], size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
    int64_t count = threads->threadsAlong(dim), width = dim == vectorDim ? lanes : 1, step = count * width;
    Value low = offsets[dim];
    bool partial = extent % size != 0;
    Value first = low;
    if (count > 1) {
      Value own = threads->indexAlong(builder, dim);
      if (width > 1)
        own = arith::MulIOp::create(builder, loc, own, constantIndex(width));
      first = addValues(low, own);
    }
    auto at = [&](Value turn) {
      return addValues(first, arith::MulIOp::create(builder, loc, turn, constantIndex(step)));
    };
    if (!partial && size % step == 0) {
      if (size == step)
        return emitPoint(dim, first, values, Value(), carried, body);
      return emitCounted(size / step, carried, [&](Value turn, ValueRange now) {
        return emitPoint(dim, at(turn), values, Value(), now, body);
      });
    }
    Value high = partial ? clampedEnd(low, size, extent) : add(low, size);
    if (level >= nest.numParallel || !threads->combines() || count == 1)
      return emitFor(dim, first, high, step, values, Value(), carried, body);
    // All threads come by as often, because they meet inside; past the end they are at the first point and store
    // nothing.
    return emitCounted(llvm::divideCeil(size, step), carried, [&](Value turn, ValueRange now) {
      Value index = at(turn), outside = stores;
      Value valid = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, index, high);
      stores = outside ? arith::AndIOp::create(builder, loc, outside, valid) : valid;
      index = arith::SelectOp::create(builder, loc, valid, index, low);
      SmallVector<Value> next = emitPoint(dim, index, values, Value(), now, body);
      stores = outside;
      return next;
    });
  }

  SmallVector<Value> emitCounted(int64_t count, ValueRange carried,
                                 llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    if (count == 1)
      return body(constantIndex(0), carried);
    auto loop = scf::ForOp::create(builder, loc, constantIndex(0), constantIndex(count), constantIndex(1), carried);
    OpBuilder::InsertionGuard guard(builder);
    if (carried.empty())
      builder.setInsertionPoint(loop.getBody()->getTerminator());
    else
      builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
    if (!carried.empty())
      scf::YieldOp::create(builder, loc, next);
    return SmallVector<Value>(loop.getResults());
  }

  SmallVector<Value> emitPoint(int64_t dim, Value index, const IRMapping &values, Value mask, ValueRange carried,
                               LoopBody body) {
    indices[dim] = index;
    IRMapping inner = values;
    return body(inner, mask, carried);
  }

  SmallVector<Value> emitFor(int64_t dim, Value low, Value high, int64_t step, const IRMapping &values, Value mask,
                             ValueRange carried, LoopBody body) {
    auto loop = scf::ForOp::create(builder, loc, low, high, constantIndex(step), carried);
    OpBuilder::InsertionGuard guard(builder);
    if (carried.empty())
      builder.setInsertionPoint(loop.getBody()->getTerminator());
    else
      builder.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next = emitPoint(dim, loop.getInductionVar(), values, mask, loop.getRegionIterArgs(), body);
    if (!carried.empty())
      scf::YieldOp::create(builder, loc, next);
    return SmallVector<Value>(loop.getResults());
  }

  // --- reductions --------------------------------------------------------------------------------------------------

  bool reducesLanes() { return vectorDim >= 0 && compute.isReduced(vectorDim); }

  void emitReductions(IRMapping &values, Value mask) {
    emitOps(nest.numParallel, values, mask);
    SmallVector<Value> carried;
    for (auto [i, arg] : llvm::enumerate(compute.getBodyBlock().getArguments()))
      carried.push_back(startValue(i, arg.getType()));
    for (const Extremum &extremum : ArrayRef(nest.extrema).take_front(nest.numFlags))
      carried.push_back(noNaN(extremum));
    Value correction;
    if (nest.running >= 0)
      std::tie(carried, correction) = emitRunning(values, carried);
    else
      carried = emitOwnReduction(values, mask, carried);
    ArrayRef<Value> sawNaN = ArrayRef(carried).take_back(nest.numFlags);
    for (auto [i, value] : llvm::enumerate(ArrayRef(carried).drop_back(nest.numFlags))) {
      Value result = isShared(i) ? combine(i, value) : reducesLanes() ? reduceLanes(i, value) : value;
      if (isRelative(i))
        result = arith::MulFOp::create(builder, loc, result, correction);
      storeAccumulator(i, result, flagsOf(i, sawNaN), mask);
    }
  }

  /// A thread that stores nothing reads nothing: it meets the others with what it started from.
  SmallVector<Value> emitOwnReduction(IRMapping &values, Value mask, ValueRange carried) {
    if (!stores)
      return emitReductionLoop(nest.numParallel, values, mask, carried);
    Value own = std::exchange(stores, Value());
    auto branch = scf::IfOp::create(builder, loc, carried.getTypes(), own, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, loc, carried);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, emitReductionLoop(nest.numParallel, values, mask, carried));
    stores = own;
    return SmallVector<Value>(branch.getResults());
  }

  /// Which lanes saw a NaN, if it wins in accumulator `i`.
  Value flagsOf(unsigned i, ArrayRef<Value> sawNaN) {
    for (auto [extremum, flags] : llvm::zip(nest.extrema, sawNaN))
      if (extremum.accumulator.getArgNumber() == i)
        return reducesLanes() ? vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, flags) : flags;
    return {};
  }

  /// Whether several threads accumulate it: each starts from the neutral element, and the initial value joins at the
  /// end.
  bool isShared(unsigned) const { return threads && threads->combines(); }

  Value combine(unsigned i, Value value) {
    vector::CombiningKind kind = kindOf(i);
    if (reducesLanes())
      value = vector::ReductionOp::create(builder, loc, kind, value, regrouped(value));
    value = threads->combine(builder, i, kind, value);
    Value init = constant(cast<TypedAttr>(compute.getInits()[i]));
    return vector::makeArithReduction(builder, loc, kind, value, toVectorLike(init, value));
  }

  static arith::FastMathFlags regrouped(Value value) {
    return isa<FloatType>(getElementTypeOrSelf(value.getType())) ? arith::FastMathFlags::reassoc
                                                                 : arith::FastMathFlags::none;
  }

  Value reduceLanes(unsigned i, Value value) {
    Value init = constant(cast<TypedAttr>(compute.getInits()[i]));
    auto flags = isa<FloatType>(init.getType()) ? arith::FastMathFlags::reassoc : arith::FastMathFlags::none;
    vector::CombiningKind kind = kindOf(i);
    if (llvm::any_of(nest.extrema,
                     [&](const Extremum &extremum) { return extremum.accumulator.getArgNumber() == i; })) {
      using Kind = vector::CombiningKind;
      kind = kind == Kind::MAXIMUMF || kind == Kind::MAXNUMF ? Kind::MAXNUMF : Kind::MINNUMF;
      flags = arith::FastMathFlags::nnan | arith::FastMathFlags::nsz; // NaN is in no lane: flagged, or lost
    }
    return vector::ReductionOp::create(builder, loc, kind, value, init, flags);
  }

  Value notANumber(Type type) {
    auto element = cast<FloatType>(getElementTypeOrSelf(type));
    Value scalar = constant(builder.getFloatAttr(element, APFloat::getNaN(element.getFloatSemantics())));
    return isa<VectorType>(type) ? toVector(scalar) : scalar;
  }

  void mapAccumulators(IRMapping &values, ValueRange carried) {
    ValueRange accumulators = carried.drop_back(nest.numFlags);
    for (auto [arg, value] : llvm::zip_equal(compute.getBodyBlock().getArguments(), accumulators))
      values.map(arg, value);
  }

  SmallVector<Value> emitReductionLoop(unsigned level, IRMapping &values, Value mask, ValueRange carried) {
    if (level == nest.order.size()) {
      mapAccumulators(values, carried);
      return nextValues(values, mask, carried);
    }
    // Sums of sums: the rounding error grows with the lengths of the loops, not with their product.
    bool apart = level + 1 == nest.order.size() && level > nest.numParallel;
    SmallVector<Value> sums(carried), start(carried);
    if (apart)
      for (unsigned i : floatSums())
        start[i] = toVectorLike(constant(neutralElement(vector::CombiningKind::ADD, elementOf(i))), carried[i]);
    SmallVector<Value> next = emitReducedLoop(level, values, mask, start);
    if (apart)
      for (unsigned i : floatSums())
        next[i] = arith::AddFOp::create(builder, loc, sums[i], next[i]);
    return next;
  }

  Type elementOf(unsigned i) { return compute.getBodyBlock().getArgument(i).getType(); }

  Value toVectorLike(Value scalar, Value other) { return isa<VectorType>(other.getType()) ? toVector(scalar) : scalar; }

  SmallVector<unsigned> floatSums() {
    SmallVector<unsigned> sums;
    for (unsigned i = 0; i < compute.getKinds().size(); ++i)
      if (isa<FloatType>(elementOf(i)) && cast<StringAttr>(compute.getKinds()[i]).getValue() == "add")
        sums.push_back(i);
    return sums;
  }

  SmallVector<Value> emitReducedLoop(unsigned level, IRMapping &values, Value mask, ValueRange carried) {
    return emitLoop(level, values, mask, carried, [&](IRMapping &inner, Value innerMask, ValueRange now) {
      if (level + 1 < nest.order.size())
        emitOps(level + 1, inner, innerMask);
      else {
        mapAccumulators(inner, now);
        emitOps(level + 1, inner, innerMask);
        return nextValues(inner, innerMask, now);
      }
      return emitReductionLoop(level + 1, inner, innerMask, now);
    });
  }

  /// The yielded accumulators; lanes past the end of a reduced vector dim keep what they had.
  SmallVector<Value> nextValues(IRMapping &values, Value mask, ValueRange carried) {
    SmallVector<Value> next;
    auto yield = cast<YieldOp>(compute.getBodyBlock().getTerminator());
    for (auto [yielded, before] : llvm::zip(yield.getValues(), carried)) {
      Value value = values.lookupOrDefault(yielded);
      if (isa<VectorType>(before.getType()))
        value = toVector(value);
      if (mask && reducesLanes())
        value = arith::SelectOp::create(builder, loc, mask, value, before);
      next.push_back(value);
    }
    for (auto [extremum, before] : llvm::zip(nest.extrema, carried.take_back(nest.numFlags))) {
      Value seen = toVector(values.lookupOrDefault(extremum.value));
      if (mask && reducesLanes())
        seen = arith::SelectOp::create(builder, loc, mask, seen, neutralLanes(extremum));
      next.push_back(arith::OrIOp::create(builder, loc, before, isNaN(extremum, seen)));
    }
    return next;
  }

  Value neutralLanes(const Extremum &extremum) {
    unsigned i = extremum.accumulator.getArgNumber();
    return toVector(constant(neutralElement(kindOf(i), elementOf(i))));
  }

  /// Whether two registers of an extremum are asked at once, of a tail if its lanes are more than those flags.
  bool asksHalves(const Extremum &extremum) {
    int64_t bytes = elementBytes(elementOf(extremum.accumulator.getArgNumber()));
    return nest.running < 0 && reducesLanes() && nest.lanes * bytes >= 2 * registerBytes && 2 * lanes > nest.lanes;
  }

  Value noNaN(const Extremum &extremum) {
    Value none = toVector(constant(builder.getBoolAttr(false)));
    return asksHalves(extremum) ? half(none, 0) : none;
  }

  Value half(Value vector, int64_t which) {
    return vector::ExtractStridedSliceOp::create(builder, loc, vector, {which * lanes / 2}, {lanes / 2}, {1});
  }

  /// Which lanes hold a NaN, in one half or the other where those are asked at once.
  Value isNaN(const Extremum &extremum, Value seen) {
    bool halves = asksHalves(extremum);
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, halves ? half(seen, 0) : seen,
                                 halves ? half(seen, 1) : seen);
  }

  // --- running maxima ----------------------------------------------------------------------------------------------
  //
  // A block of vectors stays in registers: first its maximum, then what is relative to the reference. The reference is
  // one number for all lanes. It moves to the maximum when that has left it behind by more than kLag, which hardly ever
  // happens after the first block, so that blocks neither wait for each other nor rescale what they add to.

  static constexpr double kLag = 8; ///< exp of it is no large number, in f16 either

  Value yielded(unsigned i) { return compute.getBodyBlock().getTerminator()->getOperand(i); }
  bool isRelative(unsigned i) { return nest.relative.contains(yielded(i).getDefiningOp()); }

  SmallVector<unsigned> relativeSums() {
    return llvm::filter_to_vector(llvm::seq<unsigned>(compute.getAccs().size()),
                                  [&](unsigned i) { return isRelative(i); });
  }

  /// The accumulators over all blocks, and what takes relative sums from the last reference to the maximum.
  std::pair<SmallVector<Value>, Value> emitRunning(IRMapping &values, ValueRange carried) {
    int64_t block = compute.getRunning()->getBlock(), size = compute.getSizes()[vectorDim];
    int64_t whole = size / block * block;
    Type type = elementOf(nest.running);
    const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
    SmallVector<Value> now(carried);
    now.push_back(toVector(constant(FloatAttr::get(type, APFloat::getLargest(semantics, /*Negative=*/true)))));
    Value low = offsets[vectorDim];
    if (whole > 0)
      now = emitFor(vectorDim, low, add(low, whole), block, values, Value(), now,
                    [&](IRMapping &inner, Value, ValueRange before) { return emitBlock(inner, block, before); });
    if (whole < size) {
      indices[vectorDim] = add(low, whole);
      now = emitBlock(values, size - whole, now);
    }
    Value reference = vector::ExtractOp::create(builder, loc, now.pop_back_val(), 0);
    return {now, factorBetween(reference, reduceLanes(nest.running, now[nest.running]))};
  }

  /// exp(from - to), and one where they are equal, infinities too.
  Value factorBetween(Value from, Value to) {
    Value difference = arith::SubFOp::create(builder, loc, from, to);
    Value factor = math::ExpOp::create(builder, loc, difference);
    Value same = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, from, to);
    Value one = constant(builder.getFloatAttr(getElementTypeOrSelf(from.getType()), 1.0));
    return arith::SelectOp::create(builder, loc, same, toVectorLike(one, from), factor);
  }

  /// One vector of a block.
  struct Vector {
    Value index, mask;
    IRMapping values;
  };

  /// `before` holds the accumulators, the flags of extrema and the reference. The block starts at the current index.
  SmallVector<Value> emitBlock(const IRMapping &values, int64_t points, ValueRange before) {
    SmallVector<Value> now(before);
    SmallVector<Vector> vectors;
    Value start = indices[vectorDim];
    for (int64_t point = 0; point < points; point += lanes) {
      Value mask = points - point < lanes ? tailMask(constantIndex(points - point)) : Value();
      vectors.push_back({point == 0 ? start : add(start, point), mask, values});
      emitIndependent(vectors.back(), now);
    }
    flagNaNs(vectors, now);
    now[nest.running] = largestOf(vectors, now[nest.running]);
    moveReference(now);
    storeReference(start, now.back());
    // In front of this nest's stores, which nothing says are apart from what the other one loads.
    if (beside)
      for (Vector &vector : vectors) {
        indices[vectorDim] = vector.index;
        emitBeside(nest.order.size(), vector.values, vector.mask);
      }
    // Sums of sums: their errors grow with the number of blocks, and a block does not wait for the one before.
    SmallVector<Value> sums(now);
    for (unsigned i : relativeSums())
      sums[i] = toVector(constant(neutralElement(vector::CombiningKind::ADD, elementOf(i))));
    for (Vector &vector : vectors)
      emitRelative(vector, sums);
    for (unsigned i : relativeSums())
      now[i] = arith::AddFOp::create(builder, loc, now[i], sums[i]);
    return now;
  }

  /// What does not depend on the maximum, other accumulators with it.
  void emitIndependent(Vector &vector, SmallVector<Value> &now) {
    indices[vectorDim] = vector.index;
    mapAccumulators(vector.values, ArrayRef(now).drop_back());
    prefetchNextOutputs();
    Operation *maximum = yielded(nest.running).getDefiningOp();
    for (Operation &op : compute.getBodyBlock().without_terminator())
      if (nest.levels.lookup(&op) == nest.order.size() && !nest.relative.contains(&op) && &op != maximum)
        emitOp(op, vector.values, vector.mask);
    for (unsigned i = 0; i < compute.getAccs().size(); ++i)
      if (static_cast<int64_t>(i) != nest.running && !isRelative(i))
        now[i] = keepPastEnd(vector.mask, vector.values.lookupOrDefault(yielded(i)), now[i]);
  }

  void emitRelative(Vector &vector, SmallVector<Value> &now) {
    indices[vectorDim] = vector.index;
    vector.values.map(yielded(nest.running), now.back());
    mapAccumulators(vector.values, ArrayRef(now).drop_back());
    for (Operation *op : nest.relative)
      if (auto store = dyn_cast<StoreOp>(op); !store || store.getValue() != yielded(nest.running))
        emitRelativeOp(*op, vector);
    for (unsigned i : relativeSums())
      now[i] = keepPastEnd(vector.mask, vector.values.lookup(yielded(i)), now[i]);
  }

  void emitRelativeOp(Operation &op, Vector &vector) {
    emitOp(op, vector.values, vector.mask);
    // No value is larger than the reference by more than kLag.
    if (auto exp = dyn_cast<math::ExpOp>(op); exp && exp.getOperand().getDefiningOp<arith::SubFOp>())
      vector.values.lookup(exp.getResult()).getDefiningOp()->setAttr(kSmallArgumentAttr, builder.getUnitAttr());
  }

  Value keepPastEnd(Value mask, Value value, Value before) {
    value = toVector(value);
    return mask ? arith::SelectOp::create(builder, loc, mask, value, before).getResult() : value;
  }

  /// The value of an extremum, or the neutral element in lanes past the end.
  Value valueOf(const Extremum &extremum, const Vector &vector) {
    return keepPastEnd(vector.mask, vector.values.lookupOrDefault(extremum.value), neutralLanes(extremum));
  }

  /// Two vectors are asked at once.
  void flagNaNs(ArrayRef<Vector> vectors, SmallVector<Value> &now) {
    unsigned firstFlag = compute.getAccs().size();
    for (auto [flag, extremum] : llvm::enumerate(ArrayRef(nest.extrema).take_front(nest.numFlags)))
      for (size_t i = 0; i < vectors.size(); i += 2) {
        const Vector &next = vectors[std::min(i + 1, vectors.size() - 1)];
        Value one = valueOf(extremum, vectors[i]), other = valueOf(extremum, next);
        Value either = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, one, other);
        now[firstFlag + flag] = arith::OrIOp::create(builder, loc, now[firstFlag + flag], either);
      }
  }

  Value larger(Value value, Value before) {
    Value wins = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, value, before);
    return arith::SelectOp::create(builder, loc, wins, value, before);
  }

  /// In two chains, each half as long.
  Value largestOf(ArrayRef<Vector> vectors, Value before) {
    const Extremum &extremum =
        *llvm::find_if(nest.extrema, [&](const Extremum &e) { return e.accumulator.getArgNumber() == nest.running; });
    Value largest[2] = {before, before};
    for (auto [i, vector] : llvm::enumerate(vectors))
      largest[i % 2] = larger(valueOf(extremum, vector), largest[i % 2]);
    return larger(largest[0], largest[1]);
  }

  /// Moves the reference, the last of `now`, and the sums that are relative to it, where it lags too far behind.
  void moveReference(SmallVector<Value> &now) {
    Value maximum = now[nest.running], reference = now.back();
    Value lag = toVector(constant(builder.getFloatAttr(elementOf(nest.running), kLag)));
    Value limit = arith::AddFOp::create(builder, loc, reference, lag);
    Value beyond = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, maximum, limit);
    Value any = vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, beyond);
    SmallVector<unsigned> moved = relativeSums();
    SmallVector<Value> stay = llvm::map_to_vector(moved, [&](unsigned i) { return now[i]; }), moves;
    stay.push_back(reference);
    auto branch = scf::IfOp::create(builder, loc, ValueRange(stay).getTypes(), any, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(builder, loc, stay);
      builder.setInsertionPointToStart(branch.thenBlock());
      Value target = toVector(reduceLanes(nest.running, maximum));
      Value factor = factorBetween(reference, target);
      for (unsigned i : moved)
        moves.push_back(arith::MulFOp::create(builder, loc, now[i], factor));
      moves.push_back(target);
      scf::YieldOp::create(builder, loc, moves);
    }
    for (auto [i, result] : llvm::zip(moved, branch.getResults().drop_back()))
      now[i] = result;
    now.back() = branch.getResults().back();
  }

  void storeReference(Value start, Value reference) {
    indices[vectorDim] = start;
    for (Operation *op : nest.relative)
      if (auto storeOp = dyn_cast<StoreOp>(op); storeOp && storeOp.getValue() == yielded(nest.running))
        store(vector::ExtractOp::create(builder, loc, reference, 0), storeOp.getSlice(), storeOp.getSlice().getType(),
              storeOp.getMap(), Value());
  }

  vector::CombiningKind kindOf(unsigned i) {
    return *vector::symbolizeCombiningKind(cast<StringAttr>(compute.getKinds()[i]).getValue());
  }

  Value startValue(unsigned i, Type type) {
    auto init = cast<TypedAttr>(compute.getInits()[i]);
    if (isShared(i)) {
      Value neutral = constant(neutralElement(kindOf(i), type));
      return vectorDim < 0 ? neutral : toVector(neutral);
    }
    if (vectorDim < 0)
      return constant(init);
    if (!reducesLanes())
      return toVector(constant(init));
    return toVector(constant(neutralElement(kindOf(i), type)));
  }

  void storeAccumulator(unsigned i, Value value, Value sawNaN, Value mask) {
    Type type = compute.getBodyBlock().getArgument(i).getType();
    if (sawNaN)
      value = arith::SelectOp::create(builder, loc, sawNaN, notANumber(value.getType()), value);
    Value slice = compute.getAccs()[i];
    auto sliceType = cast<SliceType>(slice.getType());
    Type stored = sliceType.getElementType();
    if (stored != type)
      value = arith::TruncFOp::create(builder, loc, withShape(value, stored), value);
    AffineMap map = cast<AffineMapAttr>(compute.getAccMaps()[i]).getValue();
    Value leads = threads ? threads->leads(builder, /*accumulator=*/true) : Value();
    if (leads && stores)
      leads = arith::AndIOp::create(builder, loc, leads, stores);
    onlyIf(leads ? leads : stores, [&] { store(value, slice, sliceType, map, mask); });
  }

  // --- ops ---------------------------------------------------------------------------------------------------------

  void emitOps(unsigned level, IRMapping &values, Value mask) {
    if (level == nest.order.size())
      prefetchNextOutputs();
    for (Operation &op : compute.getBodyBlock().without_terminator())
      if (nest.levels.lookup(&op) == level)
        emitOp(op, values, mask);
    emitBeside(level, values, mask);
  }

  void emitOp(Operation &op, IRMapping &values, Value mask) {
    if (auto load = dyn_cast<LoadOp>(op)) {
      values.map(load.getValue(), emitLoad(load, mask));
    } else if (auto storeOp = dyn_cast<StoreOp>(op)) {
      Value value = values.lookupOrDefault(storeOp.getValue());
      onlyIf(stores, [&] {
        store(value, storeOp.getSlice(), storeOp.getSlice().getType(), storeOp.getMap(), mask, storeOp.getStreamed());
      });
    } else if (auto index = dyn_cast<IndexOp>(op)) {
      AffineExpr expr = index.getMap().getResult(0);
      values.map(index.getResult(),
                 nest.vectorised.lookup(&op) ? vectorIndex(expr, builder.getIndexType()) : scalarIndex(expr));
    } else if (auto within = dyn_cast<WithinOp>(op)) {
      values.map(within.getResult(), emitWithin(within.getSet(), nest.vectorised.lookup(&op)));
    } else if (auto extremum = llvm::find_if(nest.extrema, [&](const Extremum &e) { return e.op == &op; });
               extremum != nest.extrema.end()) {
      values.map(op.getResult(0), emitOrdered(*extremum, values));
    } else if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && isNumberOfLanes(cast)) {
      AffineExpr expr = cast.getIn().getDefiningOp<IndexOp>().getMap().getResult(0);
      values.map(cast.getResult(), toVector(vectorIndex(expr, cast.getType())));
    } else if (dividesByUniform(op)) {
      values.map(op.getResult(0), multiplyByReciprocal(values.lookupOrDefault(op.getOperand(0)),
                                                       values.lookupOrDefault(op.getOperand(1))));
    } else {
      IRMapping operands = values;
      if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
              arith::CeilDivUIOp>(op))
        operands.map(op.getOperand(1), safeDivisor(values.lookupOrDefault(op.getOperand(1))));
      if (nest.vectorised.lookup(&op))
        emitElementwise(op, operands);
      else
        builder.clone(op, operands);
      for (Value result : op.getResults())
        values.map(result, operands.lookup(result));
      // LLVM would take estimates of reciprocals that are off by more than the last place.
      if (isa<arith::DivFOp>(op))
        operands.lookup(op.getResult(0)).getDefiningOp<arith::DivFOp>().setFastmath(arith::FastMathFlags::none);
    }
  }

  void onlyIf(Value condition, llvm::function_ref<void()> emit) {
    if (!condition)
      return emit();
    auto branch = scf::IfOp::create(builder, loc, condition);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emit();
  }

  /// An index that is wanted as an integer is computed as one: lanes of index would be twice as wide.
  bool isNumberOfLanes(arith::IndexCastOp op) {
    return op.getIn().getDefiningOp<IndexOp>() && nest.vectorised.lookup(op);
  }

  /// Whether all lanes, and further iterations, divide by one number, and may multiply by its reciprocal.
  bool dividesByUniform(Operation &op) {
    auto division = dyn_cast<arith::DivFOp>(op);
    if (!division || !bitEnumContainsAll(division.getFastmath(), arith::FastMathFlags::arcp) ||
        !nest.vectorised.lookup(&op) || !(op.getResult(0).getType().isF32() || op.getResult(0).getType().isF64()))
      return false;
    auto known = nest.varies.find(op.getOperand(1));
    return known == nest.varies.end() || !known->second.test(vectorDim);
  }

  /// x / d as (x * scale) * (1 / (d * scale)): wrong by one unit in the last place at most, in a tenth of the time. The
  /// scale is a power of two that keeps the reciprocal clear of overflow and of denormal numbers.
  Value multiplyByReciprocal(Value dividend, Value divisor) {
    Type type = divisor.getType();
    int exponent = type.isF64() ? 900 : 100;
    auto power = [&](int e) -> Value { return constant(builder.getFloatAttr(type, std::ldexp(1.0, e))); };
    Value size = math::AbsFOp::create(builder, loc, divisor);
    Value isSmall = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, size, power(-exponent));
    Value isLarge = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, size, power(exponent));
    Value scale = arith::SelectOp::create(builder, loc, isLarge, power(-exponent), power(0));
    scale = arith::SelectOp::create(builder, loc, isSmall, power(exponent), scale);
    Value scaled = arith::MulFOp::create(builder, loc, divisor, scale);
    Value reciprocal = arith::DivFOp::create(builder, loc, power(0), scaled);
    if (auto [lanes, factor] = splitUniformFactor(dividend); factor) {
      Value both = arith::MulFOp::create(builder, loc, arith::MulFOp::create(builder, loc, factor, scale), reciprocal);
      return arith::MulFOp::create(builder, loc, lanes, toVector(both));
    }
    Value product = arith::MulFOp::create(builder, loc, toVector(dividend), toVector(scale));
    return arith::MulFOp::create(builder, loc, product, toVector(reciprocal));
  }

  /// A product by a number that all lanes share, if it may be multiplied in another order: its lanes and that number.
  static std::pair<Value, Value> splitUniformFactor(Value value) {
    auto product = value.getDefiningOp<arith::MulFOp>();
    if (!product || !bitEnumContainsAll(product.getFastmath(), arith::FastMathFlags::reassoc))
      return {};
    auto broadcast = product.getRhs().getDefiningOp<vector::BroadcastOp>();
    bool uniform = broadcast && !isa<VectorType>(broadcast.getSource().getType());
    return uniform ? std::pair(product.getLhs(), broadcast.getSource()) : std::pair<Value, Value>();
  }

  /// The larger or smaller of the accumulator and the value; the accumulator if the value is NaN.
  Value emitOrdered(const Extremum &extremum, IRMapping &values) {
    Value before = toVector(values.lookupOrDefault(extremum.accumulator));
    Value value = toVector(values.lookupOrDefault(extremum.value));
    auto predicate =
        isa<arith::MaximumFOp, arith::MaxNumFOp>(extremum.op) ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
    Value wins = arith::CmpFOp::create(builder, loc, predicate, value, before);
    return arith::SelectOp::create(builder, loc, wins, value, before);
  }

  /// Lanes past the end and unread elements are zero, and an integer division by zero would trap: divide by one there.
  Value safeDivisor(Value divisor) {
    Type element = getElementTypeOrSelf(divisor.getType());
    auto splat = [&](int64_t value) {
      Value scalar = constant(cast<TypedAttr>(builder.getIntegerAttr(element, value)));
      return isa<VectorType>(divisor.getType()) ? toVector(scalar) : scalar;
    };
    Value isZero = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, divisor, splat(0));
    return arith::SelectOp::create(builder, loc, isZero, splat(1), divisor);
  }

  /// A scalar op on lanes: the same op with vector types.
  void emitElementwise(Operation &op, IRMapping &values) {
    OperationState state(loc, op.getName());
    for (Value operand : op.getOperands())
      state.addOperands(toVector(values.lookupOrDefault(operand)));
    for (Type type : op.getResultTypes())
      state.addTypes(VectorType::get({lanes}, type));
    state.attributes = op.getDiscardableAttrDictionary();
    state.propertiesAttr = op.getPropertiesAsAttribute();
    Operation *copy = builder.create(state);
    values.map(op.getResults(), copy->getResults());
  }

  const NestStructure &nest;
  int64_t registerBytes;
  Value stores;                  ///< whether this thread stores, an i1; null: it does
  NestEmitter *beside = nullptr; ///< the nest that shares the loops of this one
};
} // namespace

void tilewright::emitNest(OpBuilder &builder, ComputeOp compute, const IRMapping &values, VectorShape shape,
                          NestThreads *threads) {
  NestStructure nest(compute, shape, threads);
  NestEmitter(builder, compute, nest, values, shape, threads).emit();
}

bool tilewright::canShareLoops(ComputeOp compute, ComputeOp beside, VectorShape shape) {
  bool isWhole = llvm::all_of(llvm::zip(compute.getExtents(), compute.getSizes()), [](auto pair) {
    auto [extent, size] = pair;
    return extent % size == 0;
  });
  if (!isWhole || !beside.getAccs().empty() || compute.getMicroKernel() || beside.getMicroKernel() ||
      compute.getExtents() != beside.getExtents() || compute.getSizes() != beside.getSizes() ||
      compute.getOffsetDims() != beside.getOffsetDims() || compute.getOffsets() != beside.getOffsets())
    return false;
  NestStructure nest(compute, shape, /*threads=*/nullptr), other(beside, shape, /*threads=*/nullptr);
  return nest.vectorDim >= 0 && nest.vectorDim == other.vectorDim && nest.order == other.order &&
         nest.lanes % other.lanes == 0;
}

void tilewright::emitNestsTogether(OpBuilder &builder, ComputeOp compute, const IRMapping &values, ComputeOp beside,
                                   const IRMapping &besideValues, VectorShape shape) {
  NestStructure nest(compute, shape, /*threads=*/nullptr), other(beside, shape, /*threads=*/nullptr, nest.lanes);
  NestEmitter second(builder, beside, other, besideValues, shape, /*threads=*/nullptr);
  NestEmitter(builder, compute, nest, values, shape, /*threads=*/nullptr).emitWith(second);
}
