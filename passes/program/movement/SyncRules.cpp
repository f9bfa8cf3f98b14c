// Implements synchronization insertion between the phases of a program (PowerFusion 5.1). Phases start out with a grid
// barrier between them, the widest sync there is; these rules narrow it to the scope that the hand-overs need. Their
// memory follows: a tensor that one block both writes and reads becomes a buffer of the block.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/program/PartBuffers.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/PartWork.h"
#include "passes/program/gpu/ScratchOffsets.h"
#include "passes/program/movement/Handovers.h"
#include "passes/program/movement/MovementRules.h"
#include "passes/program/movement/SliceUses.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
//===----------------------------------------------------------------------===//
// Hand-overs between parts
//===----------------------------------------------------------------------===//

/// Returns, for each index of a slice, the number of the grid dim that it walks, or -1 if tiles do not cut it; none if
/// an index is neither.
std::optional<SmallVector<int64_t>> tileOf(ComputeOp compute, AffineMap map) {
  SmallVector<int64_t> tile;
  for (AffineExpr expr : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool isLocal = llvm::none_of(compute.getOffsetDims(), [&](int64_t cut) { return expr.isFunctionOfDim(cut); });
    const auto *place = dim ? llvm::find(compute.getOffsetDims(), dim.getPosition()) : nullptr;
    if (isLocal)
      tile.push_back(-1);
    else if (dim && place != compute.getOffsetDims().end())
      tile.push_back(cast<BlockArgument>(compute.getOffsets()[place - compute.getOffsetDims().begin()]).getArgNumber());
    else
      return std::nullopt;
  }
  return tile;
}

struct PartAccess {
  Value slice;
  bool writes;
  std::optional<SmallVector<int64_t>> tile; ///< none means any tile
};

/// Returns the accesses of a part to bindings, with tiles as in `tileOf`.
SmallVector<PartAccess> bindingAccesses(ParallelOp part) {
  SmallVector<PartAccess> accesses;
  auto add = [&](Value slice, bool writes, std::optional<SmallVector<int64_t>> tile) {
    if (isa<BlockArgument>(slice))
      accesses.push_back({slice, writes, std::move(tile)});
  };
  part.walk([&](MoveOp move) {
    add(move.getSource(), false, std::nullopt);
    add(move.getTarget(), true, std::nullopt);
  });
  part.walk([&](ComputeOp compute) {
    bool whole = visitsAll(compute);
    auto tile = [&](AffineMap map) { return whole ? tileOf(compute, map) : std::nullopt; };
    for (auto load : compute.getBodyBlock().getOps<LoadOp>())
      add(load.getSlice(), false, tile(load.getMap()));
    for (auto store : compute.getBodyBlock().getOps<StoreOp>())
      add(store.getSlice(), true, tile(store.getMap()));
    for (auto [slice, map] : llvm::zip(compute.getAccs(), compute.getAccMaps().getAsValueRange<AffineMapAttr>()))
      add(slice, true, tile(map));
  });
  return accesses;
}

/// Returns the bytes of shared memory that operands of contractions pass through; 0 on a CPU.
int64_t scratchOf(ParallelOp part, const Target &target) {
  int64_t threads = threadsOf(part->getParentOfType<ProgramOp>());
  return part->hasAttr(kThreadsAttr) ? scratchOffsets(part, threads, target).bytes : 0;
}

enum class SyncPoint { nowhere, tile, grid };

/// Returns where the units of two parts synchronise that touch the same element of a binding, if one of them writes it.
SyncPoint syncPointOf(ParallelOp before, ParallelOp after) {
  auto several = [&](int64_t dim) { return before.getTiles()[dim] < before.getExtents()[dim]; };
  auto sameTile = [&](const PartAccess &a, const PartAccess &b) {
    return a.tile && b.tile && *a.tile == *b.tile &&
           llvm::all_of(llvm::seq<int64_t>(0, before.getTiles().size()),
                        [&](int64_t dim) { return !several(dim) || llvm::is_contained(*a.tile, dim); });
  };
  SyncPoint meeting = SyncPoint::nowhere;
  SmallVector<PartAccess> first = bindingAccesses(before), second = bindingAccesses(after);
  for (const PartAccess &a : first)
    for (const PartAccess &b : second)
      if (a.slice == b.slice && (a.writes || b.writes))
        meeting = std::max(meeting, sameTile(a, b) ? SyncPoint::tile : SyncPoint::grid);
  return meeting;
}

/// Returns true if two parts have the same parallel structure, so that each tile belongs to the same workgroup in both,
/// and nothing runs before their walks.
bool sameStructure(ParallelOp a, ParallelOp b) {
  return a.getExtents() == b.getExtents() && a.getTiles() == b.getTiles() && a.getWorkgroups() == b.getWorkgroups() &&
         a->getDiscardableAttrDictionary() == b->getDiscardableAttrDictionary() &&
         llvm::hasSingleElement(a.getBody().front()) && llvm::hasSingleElement(b.getBody().front());
}

/// Return the parts of the phase that ends (phaseBefore) or begins (phaseAfter) at a barrier.
SmallVector<ParallelOp> phaseBefore(SyncOp sync) {
  SmallVector<ParallelOp> parts;
  for (Operation *op = sync->getPrevNode(); isa_and_nonnull<ParallelOp>(op); op = op->getPrevNode())
    parts.push_back(cast<ParallelOp>(op));
  return parts;
}
SmallVector<ParallelOp> phaseAfter(SyncOp sync) {
  SmallVector<ParallelOp> parts;
  for (Operation *op = sync->getNextNode(); isa_and_nonnull<ParallelOp>(op); op = op->getNextNode())
    parts.push_back(cast<ParallelOp>(op));
  return parts;
}

bool isGridSync(SyncOp sync) { return isa<ProgramOp>(sync->getParentOp()); }

/// Merges phases that do not depend on each other.
struct DropBarrier : OpRewritePattern<SyncOp> {
  DropBarrier(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(SyncOp sync, PatternRewriter &rewriter) const override {
    if (!isGridSync(sync))
      return rewriter.notifyMatchFailure(sync, "the sync is inside a tile");
    for (ParallelOp before : phaseBefore(sync))
      for (ParallelOp after : phaseAfter(sync))
        if (syncPointOf(before, after) != SyncPoint::nowhere)
          return rewriter.notifyMatchFailure(sync, "one phase depends on the other");
    rewriter.eraseOp(sync);
    ++state.counts.dropped;
    return success();
  }

  MovementState &state;
};

/// Joins two phases of one part each, whose tiles hand over only to themselves, to one part with a sync of the needed
/// scope inside.
struct JoinPhases : OpRewritePattern<SyncOp> {
  JoinPhases(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(SyncOp sync, PatternRewriter &rewriter) const override {
    if (!isGridSync(sync))
      return rewriter.notifyMatchFailure(sync, "the sync is inside a tile");
    SmallVector<ParallelOp> before = phaseBefore(sync), after = phaseAfter(sync);
    if (before.size() != 1 || after.size() != 1 || !sameStructure(before.front(), after.front()))
      return rewriter.notifyMatchFailure(sync, "the phases differ in their parallel structure");
    ParallelOp first = before.front(), second = after.front();
    if (syncPointOf(first, second) != SyncPoint::tile)
      return rewriter.notifyMatchFailure(sync, "the phases hand over between blocks");
    if (!hasRoom(first, second, sync))
      return rewriter.notifyMatchFailure(sync, "a block has no room for the buffers of one beside the operands of the "
                                               "other");
    Block &tile = first.getWalk().getBody().front(), &rest = second.getWalk().getBody().front();
    rewriter.setInsertionPointToEnd(&tile);
    auto inside = SyncOp::create(rewriter, sync.getLoc(), Scope::block);
    rewriter.inlineBlockBefore(&rest, &tile, tile.end(), tile.getArguments());
    rewriter.eraseOp(second);
    rewriter.eraseOp(sync);
    rewriter.modifyOpInPlace(inside, [&] { inside.setScope(scopeAt(inside)); });
    ++state.counts.joined;
    return success();
  }

  /// Returns true if blocks of the program wait for each other even without the barrier.
  static bool syncsBesides(ProgramOp program, SyncOp barrier) {
    return llvm::any_of(program.getBody().getOps<SyncOp>(), [&](SyncOp other) { return other != barrier; }) ||
           llvm::any_of(program.getBody().getOps<ParallelOp>(),
                        [](ParallelOp part) { return part.getSteps().has_value(); });
  }

  /// Returns true if a block has room for both parts. Operands of contractions pass through memory behind all buffers
  /// of a part, so that a block may need more for the joined part than for either.
  bool hasRoom(ParallelOp first, ParallelOp second, SyncOp sync) const {
    auto program = cast<ProgramOp>(sync->getParentOp());
    PartBuffers before = buffersOf(first), after = buffersOf(second);
    int64_t scratch = scratchOf(first, *state.target), next = scratchOf(second, *state.target);
    int64_t alignment = std::max(scratchAlignment(first), scratchAlignment(second));
    auto bytesOf = [&](int64_t buffers, int64_t scratch) {
      return scratch > 0 ? llvm::alignTo(buffers, alignment) + scratch : buffers;
    };
    int64_t apart =
        std::max(bytesOf(placeByBestFit(before.ranges).end, scratch), bytesOf(placeByBestFit(after.ranges).end, next));
    int64_t joined = bytesOf(joinedBufferBytes(before, after), std::max(scratch, next));
    bool fits = joined <= state.target->blockBytes &&
                (!syncsBesides(program, sync) || staysResident(program, joined, *state.target));
    return joined <= apart || fits;
  }

  /// Returns the innermost scope that orders the ops before the sync and those after it.
  static Scope scopeAt(SyncOp sync) {
    auto part = sync->getParentOfType<ParallelOp>();
    BlockShape shape{threadsOf(sync->getParentOfType<ProgramOp>()), blockShapeOf(part).group};
    UnitLevels levels;
    levels.warps = std::max<int64_t>(1, shape.threads / levels.lanes);
    Scope scope = Scope::thread;
    for (Operation &before : *sync->getBlock()) {
      if (&before == sync)
        break;
      for (Operation *after = sync->getNextNode(); after; after = after->getNextNode())
        for (const SliceAccess &a : accessesOf(before, shape))
          for (const SliceAccess &b : accessesOf(*after, shape))
            scope = std::max(scope, scopeBetween(a, b, levels).value_or(Scope::thread));
    }
    return scope;
  }

  MovementState &state;
};

//===----------------------------------------------------------------------===//
// Memory spaces
//===----------------------------------------------------------------------===//

/// Turns a hand-over that only one part writes and reads, tile by tile, into a buffer of its block.
struct RaiseToBlock : OpRewritePattern<ParallelOp> {
  RaiseToBlock(MLIRContext *context, MovementState &state) : OpRewritePattern(context), state(state) {}

  LogicalResult matchAndRewrite(ParallelOp part, PatternRewriter &rewriter) const override {
    for (Value slice : part->getParentOfType<ProgramOp>().getBody().getArguments())
      if (state.handovers.contains(slice) && succeeded(raise(part, slice, rewriter))) {
        ++state.counts.raised;
        return success();
      }
    return rewriter.notifyMatchFailure(part, "no hand-over stays within a tile");
  }

private:
  struct Use {
    Operation *op; ///< a load, a store, or the nest that accumulates in the slice
    ComputeOp nest;
    AffineMap map;
    unsigned accumulator = 0;
  };

  static std::optional<SmallVector<Use>> usesIn(Value slice) {
    SmallVector<Use> uses;
    for (OpOperand &use : slice.getUses()) {
      Operation *user = use.getOwner();
      if (auto load = dyn_cast<LoadOp>(user))
        uses.push_back({load, cast<ComputeOp>(load->getParentOp()), load.getMap()});
      else if (auto store = dyn_cast<StoreOp>(user))
        uses.push_back({store, cast<ComputeOp>(store->getParentOp()), store.getMap()});
      else if (auto compute = dyn_cast<ComputeOp>(user)) {
        unsigned number = use.getOperandNumber() - compute.getOffsets().size();
        auto map = cast<AffineMapAttr>(compute.getAccMaps()[number]).getValue();
        uses.push_back({compute, compute, map, number});
      } else {
        return std::nullopt;
      }
    }
    return uses;
  }

  /// Returns the shape of a tile's part of the slice: the tile size along the dims that tiles cut, else the whole dim.
  static SmallVector<int64_t> boxOf(ArrayRef<int64_t> tile, ParallelOp part, SliceType type) {
    SmallVector<int64_t> shape(type.getShape());
    for (auto [size, dim] : llvm::zip(shape, tile))
      if (dim >= 0)
        size = part.getTiles()[dim];
    return shape;
  }

  /// Returns the index within the tile's part of the slice.
  static AffineMap inTile(Use &use) {
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : use.map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      bool cut = dim && llvm::is_contained(use.nest.getOffsetDims(), static_cast<int64_t>(dim.getPosition()));
      exprs.push_back(cut ? expr - getAffineSymbolExpr(dim.getPosition(), expr.getContext()) : expr);
    }
    unsigned rank = use.map.getNumDims();
    return AffineMap::get(rank, rank, exprs, use.map.getContext());
  }

  LogicalResult raise(ParallelOp part, Value slice, PatternRewriter &rewriter) const {
    std::optional<SmallVector<Use>> uses = usesIn(slice);
    if (!uses || uses->empty())
      return failure();
    std::optional<SmallVector<int64_t>> tile;
    for (const Use &use : *uses) {
      if (!visitsAll(use.nest) || use.nest->getParentOfType<ParallelOp>() != part)
        return failure();
      std::optional<SmallVector<int64_t>> own = tileOf(use.nest, use.map);
      if (!own || (tile && *own != *tile))
        return failure();
      tile = own;
    }
    for (int64_t dim = 0; dim < static_cast<int64_t>(part.getTiles().size()); ++dim)
      if (part.getTiles()[dim] < part.getExtents()[dim] && !llvm::is_contained(*tile, dim))
        return failure();
    auto type = cast<SliceType>(slice.getType());
    auto buffer = SliceType::get(type.getContext(), boxOf(*tile, part, type), type.getElementType(), Space::block);
    if (bytesOf(part, *uses) + buffer.getNumBytes() > state.target->blockBytes)
      return failure();
    rewriter.setInsertionPointToStart(&part.getWalk().getBody().front());
    Value alloc = AllocOp::create(rewriter, part.getLoc(), buffer, IntegerAttr());
    for (Use &use : *uses)
      rewriter.modifyOpInPlace(use.op, [&] { redirect(use, slice, alloc); });
    return success();
  }

  /// Returns true if raising the slice forces accumulators out of registers: a nest also reads accumulators of the
  /// raised slice, or their contraction reads it.
  static bool losesRegisters(AllocOp sums, ArrayRef<Use> raised) {
    auto isSummed = [](Use use) { return isa<ComputeOp>(use.op) && use.nest.getMicroKernel(); };
    bool addsUp = llvm::any_of(raised, isSummed);
    return llvm::any_of(raised, [&](Use use) {
      if (!isa<LoadOp>(use.op))
        return false;
      bool takesBoth = addsUp && llvm::any_of(use.nest.getBodyBlock().getOps<LoadOp>(),
                                              [&](LoadOp load) { return load.getSlice() == sums.getSlice(); });
      return takesBoth || (use.nest.getMicroKernel() && llvm::is_contained(use.nest.getAccs(), sums.getSlice()));
    });
  }

  /// Returns an upper bound on the bytes: all buffers live at once, beside the memory that operands of contractions
  /// pass through.
  int64_t bytesOf(ParallelOp part, ArrayRef<Use> raised) const {
    int64_t bytes = 0;
    part.walk([&](AllocOp alloc) {
      bool isBuffer = !staysInRegisters(alloc) || losesRegisters(alloc, raised);
      bytes += isBuffer ? llvm::alignTo(alloc.getType().getNumBytes(), kBufferAlignment) : 0;
    });
    int64_t scratch = scratchOf(part, *state.target);
    return scratch > 0 ? llvm::alignTo(bytes, scratchAlignment(part)) + scratchAlignment(part) + scratch : bytes;
  }

  static void redirect(Use &use, Value slice, Value alloc) {
    use.op->replaceUsesOfWith(slice, alloc);
    auto map = AffineMapAttr::get(inTile(use));
    if (auto load = dyn_cast<LoadOp>(use.op))
      load.setMapAttr(map);
    else if (auto store = dyn_cast<StoreOp>(use.op))
      store.setMapAttr(map), store.setStreamed(false);
    else {
      SmallVector<Attribute> maps(use.nest.getAccMaps().getValue());
      maps[use.accumulator] = map;
      use.nest.setAccMapsAttr(ArrayAttr::get(use.nest.getContext(), maps));
    }
  }

  MovementState &state;
};
} // namespace

void tilewright::populateSyncRules(RewritePatternSet &patterns, MovementState &state) {
  patterns.add<DropBarrier, JoinPhases>(patterns.getContext(), state);
}

void tilewright::populateRaiseRules(RewritePatternSet &patterns, MovementState &state) {
  patterns.add<RaiseToBlock>(patterns.getContext(), state);
}
