// Implements gOperator merging (PowerFusion 5.1). Read after write: a nest that reads a hand-over which was only copied
// there reads the source of the copy instead; a concatenation is several copies, and the point decides between them.
// Nests over the same points become one nest, which hands a value over in a register. Read after read: a nest loads an
// element only once.
#include "passes/program/RegisterHandover.h"
#include "passes/program/movement/MovementRules.h"
#include "passes/program/movement/SliceUses.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/Declined.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

//===----------------------------------------------------------------------===//
// Read after write
//===----------------------------------------------------------------------===//

namespace {
/// One of the copies that wrote a hand-over, as seen by its reader.
struct Source {
  LoadOp from;
  AffineMap map;    ///< index of the element in the source, over the reader's dims
  IntegerSet guard; ///< points at which the source has the element and this copy wrote it; null means all points
  IntegerSet wrote; ///< points at which this copy wrote the element; null means all points
};

/// Returns the map without symbols, or none if it depends on them: bindings are indexed by dims alone.
std::optional<AffineMap> overDims(AffineMap map) {
  for (unsigned symbol = 0; symbol < map.getNumSymbols(); ++symbol)
    if (map.isFunctionOfSymbol(symbol))
      return std::nullopt;
  return AffineMap::get(map.getNumDims(), 0, map.getResults(), map.getContext());
}

std::optional<IntegerSet> overDims(IntegerSet set) {
  for (AffineExpr expr : set.getConstraints())
    for (unsigned symbol = 0; symbol < set.getNumSymbols(); ++symbol)
      if (expr.isFunctionOfSymbol(symbol))
        return std::nullopt;
  return IntegerSet::get(set.getNumDims(), 0, set.getConstraints(), set.getEqFlags());
}

AffineMap withSymbols(AffineMap map, unsigned symbols) {
  return AffineMap::get(map.getNumDims(), symbols, map.getResults(), map.getContext());
}

IntegerSet withSymbols(IntegerSet set, unsigned symbols) {
  return IntegerSet::get(set.getNumDims(), symbols, set.getConstraints(), set.getEqFlags());
}

/// The point at which a copy wrote the element at given indices, and the constraints under which it wrote any.
struct Inverse {
  SmallVector<AffineExpr> point;
  SmallVector<AffineExpr> constraints;
  SmallVector<bool> isEquality;
};

/// Inverts a map whose results are constants, or dims plus constants, with each dim occurring once.
std::optional<Inverse> invert(AffineMap written, ArrayRef<AffineExpr> indices, ArrayRef<int64_t> extents) {
  Inverse inverse;
  inverse.point.resize(extents.size());
  for (auto [expr, index] : llvm::zip(written.getResults(), indices)) {
    AffineExpr rest = expr;
    int64_t dim = -1;
    if (auto sum = dyn_cast<AffineBinaryOpExpr>(expr); sum && expr.getKind() == AffineExprKind::Add)
      if (isa<AffineDimExpr>(sum.getLHS()))
        rest = sum.getLHS();
    if (auto plain = dyn_cast<AffineDimExpr>(rest))
      dim = plain.getPosition();
    AffineExpr constant = dim < 0 ? expr : expr - rest;
    if (!isa<AffineConstantExpr>(constant) || (dim >= 0 && inverse.point[dim]))
      return std::nullopt;
    if (dim < 0) {
      inverse.constraints.push_back(index - constant);
      inverse.isEquality.push_back(true);
      continue;
    }
    inverse.point[dim] = index - constant;
    inverse.constraints.push_back(inverse.point[dim]);
    inverse.constraints.push_back(-inverse.point[dim] + (extents[dim] - 1));
    inverse.isEquality.append(2, false);
  }
  for (auto [dim, expr] : llvm::enumerate(inverse.point)) {
    if (!expr && extents[dim] != 1)
      return std::nullopt;
    if (!expr)
      expr = getAffineConstantExpr(0, written.getContext());
  }
  return inverse;
}

/// Returns the source that the reader of a hand-over can read instead of what `store` copied.
OrDeclined<Source> sourceOf(StoreOp store, LoadOp reader) {
  auto refuse = [](std::string why) { return Declined{std::move(why), "a plain copy"}; };
  auto copy = cast<ComputeOp>(store->getParentOp()), nest = cast<ComputeOp>(reader->getParentOp());
  auto from = store.getValue().getDefiningOp<LoadOp>();
  if (!from)
    return refuse("its value is computed, not copied");
  if (cast<SliceType>(from.getSlice().getType()).getSpace() != Space::global)
    return refuse("its value is copied from a buffer of the block");
  if (!comesBefore(copy, nest))
    return refuse("its copy runs after the read");
  if (!visitsAll(copy))
    return refuse("its copy does not visit each point once over all tiles");
  for (Operation *user : from.getSlice().getUsers())
    if (!isa<LoadOp>(user) && !comesBefore(user, copy))
      return refuse("the source of its copy is written again");
  std::optional<AffineMap> written = overDims(store.getMap()), read = overDims(reader.getMap()),
                           source = overDims(from.getMap());
  std::optional<IntegerSet> readGuard, sourceGuard;
  bool plainGuards = (!reader.getGuard() || (readGuard = overDims(*reader.getGuard()))) &&
                     (!from.getGuard() || (sourceGuard = overDims(*from.getGuard())));
  if (!written || !read || !source || !plainGuards)
    return refuse("an index depends on the tile");
  std::optional<Inverse> inverse = invert(*written, read->getResults(), copy.getExtents());
  if (!inverse)
    return refuse("several points may have written an element");

  unsigned dims = read->getNumDims();
  ArrayRef<int64_t> extents = nest.getExtents();
  auto point = AffineMap::get(dims, 0, inverse->point, store.getContext());
  Source found;
  found.from = from;
  found.map = composeInDomain(*source, point, extents);
  if (!inverse->constraints.empty())
    found.wrote = conjoin(IntegerSet(), IntegerSet::get(dims, 0, inverse->constraints, inverse->isEquality), extents);
  found.guard = conjoin(found.wrote, readGuard.value_or(IntegerSet()), extents);
  if (sourceGuard)
    found.guard = conjoin(found.guard, composeInDomain(*sourceGuard, point, extents), extents);
  return found;
}

OrDeclined<SmallVector<Source>> sourcesOf(LoadOp reader) {
  SliceUses uses = usesOf(reader.getSlice());
  if (cast<ComputeOp>(reader->getParentOp()).getMicroKernel())
    return Declined{"a micro kernel reads it", "a nest without"};
  if (uses.others)
    return Declined{"a reduction or a move writes it", "a plain copy"};
  if (uses.stores.empty())
    return Declined{"nothing writes it", "a plain copy"};
  SmallVector<Source> sources;
  for (StoreOp store : uses.stores) {
    OrDeclined<Source> source = sourceOf(store, reader);
    if (!source)
      return source.why();
    sources.push_back(*source);
  }
  return sources;
}

struct MergeReadAfterWrite : OpRewritePattern<LoadOp> {
  MergeReadAfterWrite(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(LoadOp load, PatternRewriter &rewriter) const override {
    if (!state.handovers.contains(load.getSlice()))
      return rewriter.notifyMatchFailure(load, "no hand-over");
    OrDeclined<SmallVector<Source>> sources = sourcesOf(load);
    if (!sources)
      return rewriter.notifyMatchFailure(load, sources.why().reason);
    Location loc = load.getLoc();
    unsigned symbols = load.getMap().getNumSymbols();
    Value value;
    for (Source &source : *sources) { // later copies overwrite earlier ones
      IntegerSetAttr guard;
      if (source.guard)
        guard = IntegerSetAttr::get(withSymbols(source.guard, symbols));
      Value own = LoadOp::create(rewriter, loc, load.getType(), source.from.getSlice(),
                                 withSymbols(source.map, symbols), guard);
      if (value && source.wrote) {
        Value here = WithinOp::create(rewriter, loc, rewriter.getI1Type(), source.wrote);
        own = arith::SelectOp::create(rewriter, loc, here, own, value);
      }
      value = own;
    }
    rewriter.replaceOp(load, value);
    ++state.counts.readAfterWrite;
    return success();
  }

  MovementState &state;
};

//===----------------------------------------------------------------------===//
// Nests over the same points
//===----------------------------------------------------------------------===//

/// Returns the nest that runs just before `nest`, with only syncs inside the block in between, or null.
ComputeOp nestBefore(ComputeOp nest) {
  Operation *op = nest->getPrevNode();
  while (isa_and_nonnull<SyncOp, AllocOp>(op))
    op = op->getPrevNode();
  return dyn_cast_or_null<ComputeOp>(op);
}

bool samePoints(ComputeOp a, ComputeOp b) {
  return a.getExtents() == b.getExtents() && a.getSizes() == b.getSizes() && a.getOffsetDims() == b.getOffsetDims() &&
         llvm::equal(a.getOffsets(), b.getOffsets()) && a.getVector() == b.getVector();
}

/// Returns true if different points access different elements.
bool isInjective(AffineMap map, ArrayRef<int64_t> sizes) {
  return llvm::all_of(llvm::seq<int64_t>(0, sizes.size()), [&](int64_t dim) {
    return sizes[dim] == 1 || llvm::any_of(map.getResults(), [&](AffineExpr expr) {
             return expr == getAffineDimExpr(dim, map.getContext()) ||
                    expr == getAffineDimExpr(dim, map.getContext()) - getAffineSymbolExpr(dim, map.getContext());
           });
  });
}

bool touches(ComputeOp nest, Value slice) {
  return llvm::any_of(slice.getUsers(), [&](Operation *user) { return nest->isAncestor(user); });
}

/// Returns true if each point of the two nests hands over only its own element of the slice, which one of them writes,
/// or if they hand over nothing.
bool eachPointHasItsOwn(ComputeOp first, ComputeOp second, Value slice) {
  if (!touches(first, slice) || !touches(second, slice))
    return true;
  AffineMap map;
  auto agrees = [&](AffineMap own) {
    if (!map)
      map = own;
    return map == own && isInjective(own, first.getSizes());
  };
  for (Operation *user : slice.getUsers()) {
    if (!first->isAncestor(user) && !second->isAncestor(user))
      continue;
    auto load = dyn_cast<LoadOp>(user);
    auto store = dyn_cast<StoreOp>(user);
    if ((!load && !store) || (load && (load.getGuard() || !agrees(load.getMap()))) ||
        (store && !agrees(store.getMap())))
      return false;
  }
  return true;
}

/// Merges two nests over the same points into one, if each point has its own elements of the values handed over.
struct MergeNests : OpRewritePattern<ComputeOp> {
  MergeNests(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(ComputeOp second, PatternRewriter &rewriter) const override {
    ComputeOp first = nestBefore(second);
    if (!first || !samePoints(first, second) || !first.getAccs().empty() || !isa<WalkOp>(second->getParentOp()) ||
        first.getMicroKernel() || second.getMicroKernel() || second.getRunning())
      return rewriter.notifyMatchFailure(second, "no nest over the same points is right before it");
    if (startsAccumulators(first) || startsAccumulators(second))
      return rewriter.notifyMatchFailure(second, "sums that grow in registers begin in a nest of their own");
    llvm::SetVector<Value> written;
    for (ComputeOp nest : {first, second}) {
      for (auto store : nest.getBodyBlock().getOps<StoreOp>())
        written.insert(store.getSlice());
      written.insert(nest.getAccs().begin(), nest.getAccs().end());
    }
    for (Value slice : written)
      if (!eachPointHasItsOwn(first, second, slice))
        return rewriter.notifyMatchFailure(second, "one point reads what another point writes");

    Operation *start = &second.getBodyBlock().front();
    for (Operation &op : llvm::make_early_inc_range(first.getBodyBlock().without_terminator()))
      rewriter.moveOpBefore(&op, start);
    rewriter.eraseOp(first);
    forwardStores(second, rewriter);
    return success();
  }

  static bool startsAccumulators(ComputeOp nest) {
    std::optional<GrowingAccumulators> grown = grownBeside(nest);
    return grown && grown->starting == nest;
  }

  /// Replaces loads of values that the first nest stored by the values themselves. All its accesses use one map.
  void forwardStores(ComputeOp nest, PatternRewriter &rewriter) const {
    llvm::DenseMap<Value, Value> stored;
    for (Operation &op : llvm::make_early_inc_range(nest.getBodyBlock())) {
      if (auto store = dyn_cast<StoreOp>(op))
        stored[store.getSlice()] = store.getValue();
      auto load = dyn_cast<LoadOp>(op);
      if (Value value = load ? stored.lookup(load.getSlice()) : Value()) {
        rewriter.replaceOp(load, value);
        ++state.counts.readAfterWrite;
      }
    }
  }

  MovementState &state;
};

//===----------------------------------------------------------------------===//
// Read after read
//===----------------------------------------------------------------------===//

struct MergeReadAfterRead : OpRewritePattern<LoadOp> {
  MergeReadAfterRead(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(LoadOp load, PatternRewriter &rewriter) const override {
    for (Operation *op = load->getPrevNode(); op; op = op->getPrevNode()) {
      if (auto store = dyn_cast<StoreOp>(op); store && store.getSlice() == load.getSlice())
        break;
      auto earlier = dyn_cast<LoadOp>(op);
      if (!earlier || earlier.getSlice() != load.getSlice() || earlier.getMap() != load.getMap() ||
          earlier.getGuard() != load.getGuard())
        continue;
      rewriter.replaceOp(load, earlier.getValue());
      ++state.counts.readAfterRead;
      return success();
    }
    return rewriter.notifyMatchFailure(load, "the nest loads the element only once");
  }

  MovementState &state;
};

//===----------------------------------------------------------------------===//
// Dead code
//===----------------------------------------------------------------------===//

/// Erases stores that nothing reads.
struct DropStore : OpRewritePattern<StoreOp> {
  DropStore(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(StoreOp store, PatternRewriter &rewriter) const override {
    Value slice = store.getSlice();
    if (!state.handovers.contains(slice) && !slice.getDefiningOp<AllocOp>())
      return rewriter.notifyMatchFailure(store, "code outside the program may read the slice");
    if (!llvm::all_of(slice.getUsers(), [](Operation *user) { return isa<StoreOp>(user); }))
      return rewriter.notifyMatchFailure(store, "the slice is read");
    rewriter.eraseOp(store);
    return success();
  }

  MovementState &state;
};

/// Erases nests that store nothing.
struct DropNest : OpRewritePattern<ComputeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ComputeOp nest, PatternRewriter &rewriter) const override {
    if (!nest.getAccs().empty() || !nest.getBodyBlock().getOps<StoreOp>().empty())
      return rewriter.notifyMatchFailure(nest, "the nest stores a result");
    rewriter.eraseOp(nest);
    return success();
  }
};

/// Erases parts without nests and moves, and the barrier of a phase that has no other part.
struct DropPart : OpRewritePattern<ParallelOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ParallelOp part, PatternRewriter &rewriter) const override {
    WalkResult busy = part.walk(
        [](Operation *op) { return isa<ComputeOp, MoveOp>(op) ? WalkResult::interrupt() : WalkResult::advance(); });
    auto isSync = [](Operation *op) { return !op || isa<SyncOp>(op); };
    Operation *before = part->getPrevNode(), *after = part->getNextNode();
    if (busy.wasInterrupted() || (!before && !after))
      return rewriter.notifyMatchFailure(part, "the part still has work");
    if (isSync(before) && isSync(after))
      rewriter.eraseOp(after ? after : before);
    rewriter.eraseOp(part);
    return success();
  }
};
} // namespace

std::string tilewright::whyNotMerged(LoadOp load) { return sourcesOf(load).why().reason; }

void tilewright::populateMergeRules(RewritePatternSet &patterns, MovementState &state) {
  patterns.add<MergeReadAfterWrite, MergeNests, MergeReadAfterRead, DropStore>(patterns.getContext(), state);
  patterns.add<DropNest, DropPart>(patterns.getContext());
}
