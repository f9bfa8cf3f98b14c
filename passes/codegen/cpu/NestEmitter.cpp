#include "passes/codegen/cpu/NestEmitter.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

MemRefType tilewright::memrefOf(SliceType slice, Attribute space) {
  Type element = slice.getElementType();
  if (element.isInteger(1))
    element = IntegerType::get(slice.getContext(), 8);
  return MemRefType::get(slice.getShape(), element, MemRefLayoutAttrInterface(), space);
}

static std::optional<int64_t> strideOf(AffineExpr expr, unsigned dim) {
  if (!expr.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> lhs = strideOf(binary.getLHS(), dim), rhs = strideOf(binary.getRHS(), dim);
  if (!lhs || !rhs)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return *lhs + *rhs;
  if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()); factor && expr.getKind() == AffineExprKind::Mul)
    return *lhs * factor.getValue();
  return std::nullopt;
}

std::optional<int64_t> tilewright::strideAlong(AffineMap map, ArrayRef<int64_t> strides, unsigned dim) {
  int64_t total = 0;
  for (auto [expr, stride] : llvm::zip(map.getResults(), strides)) {
    std::optional<int64_t> step = strideOf(expr, dim);
    if (!step)
      return std::nullopt;
    total += *step * stride;
  }
  return total;
}

SmallVector<int64_t> tilewright::denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

/// Lanes per vector: several registers' worth, for instruction-level parallelism, but fewer where the body keeps many
/// values alive, and no wider than the loop.
static int64_t chooseLanes(ComputeOp compute, VectorShape shape) {
  int64_t size = compute.getSizes()[compute.getVector()];
  int64_t native = shape.bytes / 4;
  int64_t work = 0;
  compute.getBody().walk([&](Operation *op) { work += isa_and_nonnull<math::MathDialect>(op->getDialect()) ? 8 : 1; });
  int64_t unroll = work <= 12 ? 4 : work <= 40 ? 2 : 1;
  while (unroll > 1 && native * unroll > size)
    unroll /= 2;
  if (size >= native)
    return native * unroll;
  return std::max<int64_t>(2, llvm::PowerOf2Ceil(size));
}

namespace {
constexpr int64_t kLineBytes = 64;

class NestEmitter {
public:
  NestEmitter(OpBuilder &builder, ComputeOp compute, const IRMapping &values, VectorShape shape, NestThreads *threads)
      : builder(builder), compute(compute), outer(values), loc(compute.getLoc()), rank(compute.getExtents().size()),
        shape(shape), threads(threads), indices(rank), offsets(rank) {
    vectorDim = compute.getVector();
    bool opaque = llvm::is_contained(compute.getKinds().getAsValueRange<StringAttr>(), "none");
    if (vectorDim >= 0 && (compute.getSizes()[vectorDim] == 1 || (opaque && compute.isReduced(vectorDim))))
      vectorDim = -1;
    if (vectorDim >= 0)
      lanes = threads ? threads->lanes() : chooseLanes(compute, shape);
    if (lanes == 1)
      vectorDim = -1;
    orderLoops();
    findDependences();
    if (!threads) {
      findExtrema(); // GPUs have instructions for what becomes of NaN
      findNextOutputs();
    }
  }

  void emit() {
    Value zero = constantIndex(0);
    for (int64_t dim = 0; dim < rank; ++dim)
      offsets[dim] = zero;
    for (auto [dim, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
      offsets[dim] = outer.lookup(offset);
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

private:
  struct Extremum {
    Operation *op; ///< in the body
    BlockArgument accumulator;
    Value value;
    bool takesNaN; ///< a NaN wins over every number; otherwise it loses
  };

  // --- structure ---------------------------------------------------------------------------------------------------

  /// Parallel loops outside, reduced ones inside, the vector dim last of its kind.
  void orderLoops() {
    auto add = [&](bool reduced) {
      for (int64_t dim = 0; dim < rank; ++dim)
        if (compute.isReduced(dim) == reduced && dim != vectorDim)
          order.push_back(dim);
      if (vectorDim >= 0 && compute.isReduced(vectorDim) == reduced)
        order.push_back(vectorDim);
    };
    add(/*reduced=*/false);
    numParallel = order.size();
    add(/*reduced=*/true);
  }

  /// For each body value the dims it changes along; from them the level (number of loops around it) it belongs to.
  void findDependences() {
    Block &body = compute.getBodyBlock();
    for (BlockArgument arg : body.getArguments()) {
      llvm::SmallBitVector dims(rank);
      for (int64_t dim : compute.getReductions())
        dims.set(dim);
      if (vectorDim >= 0)
        dims.set(vectorDim);
      varies[arg] = dims;
    }
    for (Operation &op : body.without_terminator()) {
      llvm::SmallBitVector dims(rank);
      auto addMap = [&](AffineMap map) {
        for (int64_t dim = 0; dim < rank; ++dim)
          if (map.isFunctionOfDim(dim))
            dims.set(dim);
      };
      auto addSet = [&](IntegerSet set) {
        for (AffineExpr expr : set.getConstraints())
          addMap(AffineMap::get(set.getNumDims(), set.getNumSymbols(), expr));
      };
      if (auto load = dyn_cast<LoadOp>(op)) {
        addMap(load.getMap());
        if (load.getGuard())
          addSet(*load.getGuard());
      } else if (auto store = dyn_cast<StoreOp>(op)) {
        addMap(store.getMap());
      } else if (auto index = dyn_cast<IndexOp>(op)) {
        addMap(index.getMap());
      } else if (auto within = dyn_cast<WithinOp>(op)) {
        addSet(within.getSet());
      }
      for (Value operand : op.getOperands())
        if (auto known = varies.find(operand); known != varies.end())
          dims |= known->second;
      for (Value result : op.getResults())
        varies[result] = dims;
      int64_t level = 0;
      for (auto [depth, dim] : llvm::enumerate(order))
        if (dims.test(dim))
          level = depth + 1;
      levels[&op] = level;
      vectorised[&op] = vectorDim >= 0 && dims.test(vectorDim);
    }
  }

  /// The accumulators that take the larger or smaller of two floats. With what is asked of NaN such an op is three
  /// instructions that wait for each other; apart, the extremum of what can be ordered is one, and whether there was a
  /// NaN, where it matters, another.
  void findExtrema() {
    if (vectorDim < 0)
      return;
    auto yield = cast<YieldOp>(compute.getBodyBlock().getTerminator());
    for (auto [arg, yielded, init] :
         llvm::zip(compute.getBodyBlock().getArguments(), yield.getValues(), compute.getInits())) {
      Operation *op = yielded.getDefiningOp();
      bool takesNaN = isa_and_nonnull<arith::MaximumFOp, arith::MinimumFOp>(op);
      bool losesNaN =
          isa_and_nonnull<arith::MaxNumFOp, arith::MinNumFOp>(op) && !cast<FloatAttr>(init).getValue().isNaN();
      if ((takesNaN || losesNaN) && llvm::is_contained(op->getOperands(), Value(arg)))
        extrema.push_back({op, arg, op->getOperand(op->getOperand(0) == arg ? 1 : 0), takesNaN});
    }
    // Those with a flag first: flags are carried in their order.
    llvm::stable_sort(extrema, [](const Extremum &a, const Extremum &b) { return a.takesNaN > b.takesNaN; });
    numFlags = llvm::count_if(extrema, [](const Extremum &extremum) { return extremum.takesNaN; });
  }

  /// What the next nest will store to bindings, where it visits the same points.
  void findNextOutputs() {
    auto next = dyn_cast_or_null<ComputeOp>(nextNest());
    if (vectorDim < 0 || !next || next.getMicroKernel() || next.getVector() != compute.getVector() ||
        next.getExtents() != compute.getExtents() || next.getSizes() != compute.getSizes() ||
        next.getOffsetDims() != compute.getOffsetDims() || next.getOffsets() != compute.getOffsets())
      return;
    for (auto storeOp : next.getBody().getOps<StoreOp>())
      if (storeOp.getSlice().getType().getSpace() == Space::global && !storeOp.getStreamed() &&
          lanesOf(storeOp.getSlice().getType(), storeOp.getMap()) == Lanes::contiguous)
        nextOutputs.push_back(storeOp);
  }

  Operation *nextNest() {
    Operation *next = compute->getNextNode();
    while (isa_and_nonnull<SyncOp>(next))
      next = next->getNextNode();
    return next;
  }

  // --- loops -------------------------------------------------------------------------------------------------------

  void emitLevel(unsigned level, IRMapping &values, Value mask) {
    if (level == numParallel && !compute.getAccs().empty()) {
      emitReductions(values, mask);
      return;
    }
    emitOps(level, values, mask);
    if (level < order.size())
      emitLoop(level, values, mask, {}, [&](IRMapping &inner, Value innerMask, ValueRange) {
        emitLevel(level + 1, inner, innerMask);
        return SmallVector<Value>();
      });
  }

  using LoopBody = llvm::function_ref<SmallVector<Value>(IRMapping &, Value mask, ValueRange carried)>;

  /// The loop over order[level], with values carried around it; the vector dim's becomes a loop over whole vectors and
  /// a masked tail.
  SmallVector<Value> emitLoop(unsigned level, const IRMapping &values, Value mask, ValueRange carried, LoopBody body) {
    int64_t dim = order[level], size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
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
        now = emitPoint(dim, add(low, whole), values, tailMask(constantIndex(size - whole)), now, body);
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

  /// The part of a loop that falls to this thread: every so many vectors from its own first one. Lanes divide the
  /// extents, so no vector is partial.
  SmallVector<Value> emitShare(unsigned level, const IRMapping &values, ValueRange carried, LoopBody body) {
    int64_t dim = order[level], size = compute.getSizes()[dim], extent = compute.getExtents()[dim];
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
    if (level >= numParallel || !threads->combines() || count == 1)
      return emitFor(dim, first, high, step, values, Value(), carried, body);
    // All threads come by as often, because they meet inside; past the end they work on the first point and store
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
    emitOps(numParallel, values, mask);
    SmallVector<Value> carried;
    for (auto [i, arg] : llvm::enumerate(compute.getBodyBlock().getArguments()))
      carried.push_back(startValue(i, arg.getType()));
    carried.append(numFlags, toVector(constant(builder.getBoolAttr(false))));
    carried = emitReductionLoop(numParallel, values, mask, carried);
    ArrayRef<Value> sawNaN = ArrayRef(carried).take_back(numFlags);
    for (auto [i, value] : llvm::enumerate(ArrayRef(carried).drop_back(numFlags)))
      storeAccumulator(i,
                       isShared(i)      ? combine(i, value)
                       : reducesLanes() ? reduceLanes(i, value)
                                        : value,
                       flagsOf(i, sawNaN), mask);
  }

  /// Which lanes saw a NaN, if it wins in accumulator `i`.
  Value flagsOf(unsigned i, ArrayRef<Value> sawNaN) {
    for (auto [extremum, flags] : llvm::zip(extrema, sawNaN))
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
    if (llvm::any_of(extrema, [&](const Extremum &extremum) { return extremum.accumulator.getArgNumber() == i; })) {
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
    ValueRange accumulators = carried.drop_back(numFlags);
    for (auto [arg, value] : llvm::zip_equal(compute.getBodyBlock().getArguments(), accumulators))
      values.map(arg, value);
  }

  SmallVector<Value> emitReductionLoop(unsigned level, IRMapping &values, Value mask, ValueRange carried) {
    if (level == order.size()) {
      mapAccumulators(values, carried);
      return nextValues(values, mask, carried);
    }
    // Sums of sums: the rounding error grows with the lengths of the loops, not with their product.
    bool apart = level + 1 == order.size() && level > numParallel;
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
      if (level + 1 < order.size())
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
    for (auto [extremum, before] : llvm::zip(extrema, carried.take_back(numFlags))) {
      Value seen = toVector(values.lookupOrDefault(extremum.value));
      Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, seen, seen);
      if (mask && reducesLanes())
        isNaN = arith::AndIOp::create(builder, loc, isNaN, mask);
      next.push_back(arith::OrIOp::create(builder, loc, before, isNaN));
    }
    return next;
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

  TypedAttr neutralElement(vector::CombiningKind kind, Type type) {
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
    if (level == order.size())
      prefetchNextOutputs();
    for (Operation &op : compute.getBodyBlock().without_terminator())
      if (levels.lookup(&op) == level)
        emitOp(op, values, mask);
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
                 vectorised.lookup(&op) ? vectorIndex(expr, builder.getIndexType()) : scalarIndex(expr));
    } else if (auto within = dyn_cast<WithinOp>(op)) {
      values.map(within.getResult(), emitWithin(within.getSet(), vectorised.lookup(&op)));
    } else if (auto extremum = llvm::find_if(extrema, [&](const Extremum &e) { return e.op == &op; });
               extremum != extrema.end()) {
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
      if (vectorised.lookup(&op))
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
  bool isNumberOfLanes(arith::IndexCastOp op) { return op.getIn().getDefiningOp<IndexOp>() && vectorised.lookup(op); }

  /// Whether all lanes, and further iterations, divide by one number, and may multiply by its reciprocal.
  bool dividesByUniform(Operation &op) {
    auto division = dyn_cast<arith::DivFOp>(op);
    if (!division || !bitEnumContainsAll(division.getFastmath(), arith::FastMathFlags::arcp) ||
        !vectorised.lookup(&op) || !(op.getResult(0).getType().isF32() || op.getResult(0).getType().isF64()))
      return false;
    auto known = varies.find(op.getOperand(1));
    return known == varies.end() || !known->second.test(vectorDim);
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
    Value product = arith::MulFOp::create(builder, loc, toVector(dividend), toVector(scale));
    return arith::MulFOp::create(builder, loc, product, toVector(reciprocal));
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

  Value emitWithin(IntegerSet set, bool onLanes) {
    Value all;
    for (auto [expr, equality] : llvm::zip(set.getConstraints(), set.getEqFlags())) {
      bool lane = onLanes && expr.isFunctionOfDim(vectorDim);
      Value value = lane ? vectorIndex(expr, builder.getIndexType()) : scalarIndex(expr);
      Value zero = constantIndex(0);
      auto predicate = equality ? arith::CmpIPredicate::eq : arith::CmpIPredicate::sge;
      Value holds = arith::CmpIOp::create(builder, loc, predicate, value, lane ? toVector(zero) : zero);
      if (!all)
        all = holds;
      else if (isa<VectorType>(all.getType()) || isa<VectorType>(holds.getType()))
        all = arith::AndIOp::create(builder, loc, toVector(all), toVector(holds));
      else
        all = arith::AndIOp::create(builder, loc, all, holds);
    }
    if (!all)
      all = constant(builder.getBoolAttr(true));
    return onLanes ? toVector(all) : all;
  }

  // --- movement ----------------------------------------------------------------------------------------------------

  /// Where the lanes of an access lie.
  enum class Lanes { uniform, contiguous, scattered };

  Lanes lanesOf(SliceType type, AffineMap map) {
    if (vectorDim < 0)
      return Lanes::uniform;
    std::optional<int64_t> stride = strideAlong(map, denseStrides(type.getShape()), vectorDim);
    if (stride && *stride == 0 && !map.isFunctionOfDim(vectorDim))
      return Lanes::uniform;
    return stride && *stride == 1 ? Lanes::contiguous : Lanes::scattered;
  }

  SmallVector<Value> scalarIndices(AffineMap map) {
    return llvm::map_to_vector(map.getResults(), [&](AffineExpr expr) { return scalarIndex(expr); });
  }

  Value emitLoad(LoadOp load, Value mask) {
    SliceType type = load.getSlice().getType();
    Value memory = outer.lookup(load.getSlice());
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    Value guard, laneGuard;
    if (std::optional<IntegerSet> set = load.getGuard()) {
      bool onLanes = vectorDim >= 0 && llvm::any_of(set->getConstraints(),
                                                    [&](AffineExpr expr) { return expr.isFunctionOfDim(vectorDim); });
      (onLanes ? laneGuard : guard) = emitWithin(*set, onLanes);
    }
    Lanes kind = lanesOf(type, load.getMap());
    Value value;
    if (kind == Lanes::uniform && !laneGuard) {
      value = loadScalar(memory, element, load.getMap(), guard);
    } else {
      Value lanesRead = mask;
      auto restrict = [&](Value condition) {
        if (condition)
          lanesRead =
              lanesRead ? arith::AndIOp::create(builder, loc, lanesRead, toVector(condition)) : toVector(condition);
      };
      restrict(guard);
      restrict(laneGuard);
      if (kind == Lanes::contiguous)
        prefetchNextTile(load, memory, element);
      value = kind == Lanes::contiguous ? loadContiguous(memory, element, load.getMap(), lanesRead)
                                        : gather(memory, element, type, load.getMap(), lanesRead);
    }
    return fromStorage(value, load.getValue().getType());
  }

  Value loadScalar(Value memory, Type element, AffineMap map, Value guard) {
    SmallVector<Value> at = scalarIndices(map);
    if (!guard)
      return memref::LoadOp::create(builder, loc, memory, at);
    // Where the guard fails, read the first element instead: always there, and cheaper than a branch.
    for (Value &index : at)
      index = arith::SelectOp::create(builder, loc, guard, index, constantIndex(0));
    Value value = memref::LoadOp::create(builder, loc, memory, at);
    return arith::SelectOp::create(builder, loc, guard, value, constant(cast<TypedAttr>(builder.getZeroAttr(element))));
  }

  /// Asks for what the same load will read at the next tile. Later nests of this tile leave memory idle, and the
  /// hardware has stopped looking ahead when its stream begins again.
  void prefetchNextTile(LoadOp load, Value memory, Type element) {
    int64_t dim = load.getSlice().getType().getSpace() == Space::global ? fastestWalkedDim(load.getMap()) : -1;
    if (dim < 0 || threads)
      return;
    Value here = indices[dim];
    indices[dim] = add(here, compute.getSizes()[dim]);
    SmallVector<Value> at = scalarIndices(load.getMap());
    indices[dim] = here;
    unsigned locality = tileBytes(load.getMap(), element) <= shape.cacheBytes / 4 ? 3 : 2;
    prefetchLanes(memory, element, at, /*forWrite=*/false, locality);
  }

  /// Asks for the lines that the next nest will write. This one computes from what the caches hold and leaves memory
  /// idle, while a store would wait for its line.
  void prefetchNextOutputs() {
    for (StoreOp storeOp : nextOutputs) {
      Value memory = outer.lookup(storeOp.getSlice());
      Type element = cast<MemRefType>(memory.getType()).getElementType();
      prefetchLanes(memory, element, scalarIndices(storeOp.getMap()), /*forWrite=*/true, /*locality=*/3);
    }
  }

  void prefetchLanes(Value memory, Type element, ArrayRef<Value> first, bool forWrite, unsigned locality) {
    int64_t perLine = kLineBytes / elementBytes(element);
    for (int64_t lane = 0; lane < lanes; lane += perLine) {
      SmallVector<Value> line(first);
      line.back() = add(line.back(), lane);
      memref::PrefetchOp::create(builder, loc, memory, line, forWrite, locality, /*isDataCache=*/true);
    }
  }

  /// The dim that a map depends on whose tile changes first along the walk, if there are more nests in a tile.
  int64_t fastestWalkedDim(AffineMap map) {
    auto walk = compute->getParentOfType<WalkOp>();
    if (!walk || llvm::hasSingleElement(walk.getBody().getOps<ComputeOp>()))
      return -1;
    int64_t dim = -1, fastest = -1;
    for (auto [place, offset] : llvm::zip(compute.getOffsetDims(), compute.getOffsets()))
      if (int64_t number = cast<BlockArgument>(offset).getArgNumber(); number > fastest && map.isFunctionOfDim(place)) {
        dim = place;
        fastest = number;
      }
    return dim;
  }

  int64_t tileBytes(AffineMap map, Type element) {
    int64_t bytes = elementBytes(element);
    for (int64_t dim = 0; dim < rank; ++dim)
      bytes *= map.isFunctionOfDim(dim) ? compute.getSizes()[dim] : 1;
    return bytes;
  }

  Value loadContiguous(Value memory, Type element, AffineMap map, Value lanesRead) {
    auto type = VectorType::get({lanes}, element);
    SmallVector<Value> at = scalarIndices(map);
    if (!lanesRead) {
      auto whole = vector::LoadOp::create(builder, loc, type, memory, at);
      if (threads)
        whole.setAlignment(vectorBytes(element));
      return whole;
    }
    return vector::MaskedLoadOp::create(builder, loc, type, memory, at, lanesRead, zeros(type));
  }

  Value gather(Value memory, Type element, SliceType type, AffineMap map, Value lanesRead) {
    auto vectorType = VectorType::get({lanes}, element);
    SmallVector<Value> zeroIndices(type.getRank(), constantIndex(0));
    Value all = lanesRead ? lanesRead : toVector(constant(builder.getBoolAttr(true)));
    return vector::GatherOp::create(builder, loc, vectorType, memory, zeroIndices, linearIndex(type, map), all,
                                    zeros(vectorType));
  }

  void store(Value value, Value slice, SliceType type, AffineMap map, Value mask, bool streamed = false) {
    Value memory = outer.lookup(slice);
    Type element = cast<MemRefType>(memory.getType()).getElementType();
    Lanes kind = lanesOf(type, map);
    if (kind == Lanes::uniform) {
      memref::StoreOp::create(builder, loc, toStorage(value, element), memory, scalarIndices(map));
      return;
    }
    value = toStorage(toVector(value), element);
    if (kind == Lanes::scattered) {
      SmallVector<Value> zeroIndices(type.getRank(), constantIndex(0));
      Value all = mask ? mask : toVector(constant(builder.getBoolAttr(true)));
      vector::ScatterOp::create(builder, loc, Type(), memory, zeroIndices, linearIndex(type, map), all, value);
    } else if (mask) {
      vector::MaskedStoreOp::create(builder, loc, memory, scalarIndices(map), mask, value);
    } else {
      auto whole = vector::StoreOp::create(builder, loc, value, memory, scalarIndices(map));
      if (threads)
        whole.setAlignment(vectorBytes(element));
      else if (streamed && fillsRegisters(type, map)) {
        whole.setNontemporal(true);
        whole.setAlignment(shape.bytes);
      }
    }
  }

  /// What the threads' vectors are aligned to: their lanes were chosen so.
  int64_t vectorBytes(Type element) const { return std::min<int64_t>(16, lanes * elementBytes(element)); }

  /// Whether every whole vector of the access starts at a multiple of the register's bytes, as the machine wants it of
  /// stores past the caches. Bindings do: IREE aligns them for its own code.
  bool fillsRegisters(SliceType type, AffineMap map) {
    int64_t bytes = elementBytes(type.getElementType());
    SmallVector<int64_t> strides = denseStrides(type.getShape()), origin(map.getNumInputs(), 0);
    int64_t start = 0;
    for (auto [index, stride] : llvm::zip(map.compose(origin), strides))
      start += index * stride;
    if (start * bytes % shape.bytes != 0)
      return false;
    for (int64_t dim = 0; dim < rank; ++dim) {
      std::optional<int64_t> stride = strideAlong(map, strides, dim);
      int64_t step = dim != vectorDim                                       ? 1
                     : compute.getSizes()[dim] == compute.getExtents()[dim] ? lanes
                                                                            : std::gcd(lanes, compute.getSizes()[dim]);
      if (!stride || *stride * step * bytes % shape.bytes != 0)
        return false;
    }
    return true;
  }

  /// i1 is a byte in memory, zero or one.
  Value fromStorage(Value value, Type type) {
    if (!type.isInteger(1))
      return value;
    Value zero = constant(IntegerAttr::get(getElementTypeOrSelf(value.getType()), 0));
    if (isa<VectorType>(value.getType()))
      zero = toVector(zero);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, zero);
  }

  Value toStorage(Value value, Type element) {
    if (getElementTypeOrSelf(value.getType()) == element)
      return value;
    return arith::ExtUIOp::create(builder, loc, withShape(value, element), value);
  }

  // --- indices -----------------------------------------------------------------------------------------------------

  Value scalarIndex(AffineExpr expr) { return affine::expandAffineExpr(builder, loc, expr, indices, offsets); }

  /// Element offsets of the lanes from the slice's start.
  Value linearIndex(SliceType type, AffineMap map) {
    AffineExpr linear = builder.getAffineConstantExpr(0);
    for (auto [expr, stride] : llvm::zip(map.getResults(), denseStrides(type.getShape())))
      linear = linear + expr * stride;
    bool fits = type.getNumElements() < std::numeric_limits<int32_t>::max();
    Type index = fits ? builder.getI32Type() : builder.getI64Type();
    return toVector(vectorIndex(linear, index));
  }

  /// A quasi-affine expression on lanes of an integer type; parts that do not depend on the lane stay scalar.
  Value vectorIndex(AffineExpr expr, Type type) {
    if (!expr.isFunctionOfDim(vectorDim)) {
      Value value = scalarIndex(expr);
      return type.isIndex() ? value : arith::IndexCastOp::create(builder, loc, type, value).getResult();
    }
    if (isa<AffineDimExpr>(expr))
      return arith::AddIOp::create(builder, loc, toVector(castIndex(indices[vectorDim], type)), laneNumbers(type));
    auto binary = cast<AffineBinaryOpExpr>(expr);
    Value lhs = toVector(vectorIndex(binary.getLHS(), type)), rhs = toVector(vectorIndex(binary.getRHS(), type));
    switch (expr.getKind()) {
    case AffineExprKind::Add:
      return arith::AddIOp::create(builder, loc, lhs, rhs);
    case AffineExprKind::Mul:
      return arith::MulIOp::create(builder, loc, lhs, rhs);
    case AffineExprKind::FloorDiv:
      return arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
    case AffineExprKind::CeilDiv:
      return arith::CeilDivSIOp::create(builder, loc, lhs, rhs);
    case AffineExprKind::Mod: {
      Value quotient = arith::FloorDivSIOp::create(builder, loc, lhs, rhs);
      return arith::SubIOp::create(builder, loc, lhs, arith::MulIOp::create(builder, loc, quotient, rhs));
    }
    default:
      llvm_unreachable("not a binary affine expression");
    }
  }

  Value castIndex(Value value, Type type) {
    return type.isIndex() ? value : arith::IndexCastOp::create(builder, loc, type, value).getResult();
  }

  Value laneNumbers(Type type) {
    auto vectorType = VectorType::get({lanes}, type);
    SmallVector<Attribute> numbers;
    for (int64_t lane = 0; lane < lanes; ++lane)
      numbers.push_back(IntegerAttr::get(type, lane));
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(vectorType, numbers));
  }

  Value tailMask(Value length) {
    return vector::CreateMaskOp::create(builder, loc, VectorType::get({lanes}, builder.getI1Type()), length);
  }

  // --- small values ------------------------------------------------------------------------------------------------

  Value toVector(Value value) {
    if (isa<VectorType>(value.getType()))
      return value;
    return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, value.getType()), value);
  }
  static Type withShape(Value value, Type element) {
    auto type = dyn_cast<VectorType>(value.getType());
    return type ? type.clone(element) : element;
  }
  Value zeros(VectorType type) { return constant(cast<TypedAttr>(builder.getZeroAttr(type))); }
  Value constant(TypedAttr value) { return arith::ConstantOp::create(builder, loc, value); }
  Value constantIndex(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value value, int64_t amount) { return addValues(value, constantIndex(amount)); }
  Value addValues(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value clampedEnd(Value low, int64_t size, int64_t extent) {
    return arith::MinUIOp::create(builder, loc, add(low, size), constantIndex(extent));
  }

  OpBuilder &builder;
  ComputeOp compute;
  const IRMapping &outer;
  Location loc;
  int64_t rank;
  VectorShape shape;
  NestThreads *threads; ///< null: one thread runs the nest
  Value stores;         ///< whether this thread stores, an i1; null: it does
  int64_t vectorDim, lanes = 1;
  SmallVector<int64_t> order; ///< loops, outermost first
  unsigned numParallel = 0;   ///< how many of them, from the outside, are not reduced
  DenseMap<Value, llvm::SmallBitVector> varies;
  DenseMap<Operation *, unsigned> levels;
  DenseMap<Operation *, bool> vectorised;
  SmallVector<StoreOp> nextOutputs;
  SmallVector<Extremum> extrema;
  unsigned numFlags = 0;               ///< extrema that a NaN wins
  SmallVector<Value> indices, offsets; ///< current index and offset per dim
};
} // namespace

void tilewright::emitNest(OpBuilder &builder, ComputeOp compute, const IRMapping &values, VectorShape shape,
                          NestThreads *threads) {
  NestEmitter(builder, compute, values, shape, threads).emit();
}
