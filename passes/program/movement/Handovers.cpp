// Goes through the ops in order: for each op, the widest scope at which it conflicts with an earlier op that no placed
// sync orders yet becomes a sync in front of it.
#include "passes/program/movement/Handovers.h"

#include "dialects/tile/BufferOffsets.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/TileCopy.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

/// Returns true if mapNest() maps the points of the nest to threads. A nest that reads the accumulators of a
/// contraction runs with the contraction's mapping.
static bool isDealt(ComputeOp compute) {
  return !compute.getMicroKernel() && !compute.getRunning() && !contractionHandedTo(compute) && !grownBeside(compute) &&
         !isTileCopy(compute);
}

SmallVector<SliceAccess> tilewright::accessesOf(Operation &op, BlockShape shape) {
  SmallVector<SliceAccess> accesses;
  ElementUnits anyone;
  anyone.bits.resize(llvm::Log2_64(shape.threads));
  if (auto move = dyn_cast<MoveOp>(op)) {
    accesses.push_back({move.getSource(), false, anyone});
    accesses.push_back({move.getTarget(), true, anyone});
    return accesses;
  }
  auto compute = dyn_cast<ComputeOp>(op);
  if (!compute)
    return accesses;
  NestMapping mapping = mapNest(compute, shape);
  auto add = [&](Value slice, AffineMap map, AccessKind kind) {
    accesses.push_back(
        {slice, kind != AccessKind::load, isDealt(compute) ? unitsOf(compute, mapping, map, kind) : anyone});
  };
  for (Operation &inner : compute.getBodyBlock()) {
    if (auto load = dyn_cast<LoadOp>(inner))
      add(load.getSlice(), load.getMap(), AccessKind::load);
    if (auto store = dyn_cast<StoreOp>(inner))
      add(store.getSlice(), store.getMap(), AccessKind::store);
    if (auto gather = dyn_cast<GatherOp>(inner)) // any thread may read any element
      accesses.push_back({gather.getTable(), false, anyone});
  }
  for (auto [slice, map] : llvm::zip(compute.getAccs(), compute.getAccMaps().getAsValueRange<AffineMapAttr>()))
    add(slice, map, AccessKind::accumulator);
  return accesses;
}

namespace {
enum class Sharing { none, same, overlapping };

/// Returns how two slices of a tile share memory. Bindings do not; buffers may, once they have offsets.
Sharing sharing(Value a, Value b) {
  if (a == b)
    return Sharing::same;
  auto first = a.getDefiningOp<AllocOp>(), second = b.getDefiningOp<AllocOp>();
  if (!first || !second || !first.getOffset() || !second.getOffset())
    return Sharing::none;
  int64_t start = *first.getOffset(), other = *second.getOffset();
  SliceType type = first.getType(), otherType = second.getType();
  if (start >= other + bufferBytes(second) || other >= start + bufferBytes(first))
    return Sharing::none;
  // A buffer that is aligned to a run of memory starts a few bytes further in, which differs from tile to tile.
  bool alike = start == other && type.getShape() == otherType.getShape() &&
               type.getElementBytes() == otherType.getElementBytes() &&
               first->getAttr(kAlignedAsAttr) == second->getAttr(kAlignedAsAttr);
  return alike ? Sharing::same : Sharing::overlapping;
}
} // namespace

std::optional<Scope> tilewright::scopeBetween(const SliceAccess &before, const SliceAccess &after,
                                              const UnitLevels &levels) {
  if (!before.writes && !after.writes)
    return std::nullopt;
  switch (sharing(before.slice, after.slice)) {
  case Sharing::none:
    return std::nullopt;
  case Sharing::same:
    return handoverScope(before.units, after.units, levels);
  case Sharing::overlapping:
    return Scope::block;
  }
  llvm_unreachable("the switch covers all cases");
}

std::string SyncPlan::verify() const {
  for (unsigned i = 0; i < syncs.size(); ++i) {
    if (i > 0 && syncs[i].before <= syncs[i - 1].before)
      return "two syncs at one place";
    if (syncs[i].scope > Scope::block)
      return "the threads of a tile are in one block";
  }
  return "";
}

void SyncPlan::print(llvm::raw_ostream &os) const {
  llvm::interleaveComma(syncs, os,
                        [&](const PlacedSync &sync) { os << stringifyScope(sync.scope) << " before " << sync.before; });
}

namespace {
class SyncPlanner {
public:
  SyncPlanner(ParallelOp part, BlockShape shape) : part(part) {
    levels.warps = std::max<int64_t>(1, shape.threads / levels.lanes);
    for (Operation &op : part.getWalk().getBody().front())
      if (!isa<SyncOp>(op))
        touched.push_back(accessesOf(op, shape));
  }

  SyncPlan plan() {
    for (unsigned at = 0; at < touched.size(); ++at)
      if (std::optional<Scope> scope = neededBefore(at))
        result.syncs.push_back({at, *scope});
    if (part.getNumTiles() > static_cast<int64_t>(part.getWorkgroups()))
      result.syncs.push_back({static_cast<unsigned>(touched.size()), neededBetweenTiles()});
    return std::move(result);
  }

private:
  /// Returns the scope at which threads must synchronise between the accesses `a` and `b`, or none if their order does
  /// not matter.
  std::optional<Scope> between(ArrayRef<SliceAccess> a, ArrayRef<SliceAccess> b, bool buffersOnly) {
    std::optional<Scope> scope;
    for (const SliceAccess &before : a)
      for (const SliceAccess &after : b)
        if (!buffersOnly || cast<SliceType>(before.slice.getType()).getSpace() == Space::block)
          if (std::optional<Scope> own = scopeBetween(before, after, levels))
            scope = std::max(scope.value_or(*own), *own);
    return scope;
  }

  bool isThere(Scope scope, llvm::function_ref<bool(unsigned)> at) {
    return llvm::any_of(result.syncs, [&](const PlacedSync &sync) { return at(sync.before) && sync.scope >= scope; });
  }

  std::optional<Scope> neededBefore(unsigned at) {
    std::optional<Scope> needed;
    for (unsigned before = 0; before < at; ++before) {
      std::optional<Scope> scope = between(touched[before], touched[at], /*buffersOnly=*/false);
      if (scope && !isThere(*scope, [&](unsigned place) { return place > before; }))
        needed = std::max(needed.value_or(*scope), *scope);
    }
    return needed;
  }

  /// Returns the scope of the sync between tiles, because the next tile writes the buffers that this one reads.
  /// Elements of bindings belong to one tile each.
  Scope neededBetweenTiles() {
    Scope needed = Scope::thread;
    for (unsigned now = 0; now < touched.size(); ++now)
      for (unsigned next = 0; next < touched.size(); ++next) {
        std::optional<Scope> scope = between(touched[now], touched[next], /*buffersOnly=*/true);
        if (scope && !isThere(*scope, [&](unsigned place) { return place > now || place <= next; }))
          needed = std::max(needed, *scope);
      }
    return needed;
  }

  ParallelOp part;
  UnitLevels levels;
  std::vector<SmallVector<SliceAccess>> touched; ///< accesses of each op of the walk that is not a sync
  SyncPlan result;
};
} // namespace

OrDeclined<SyncPlan> tilewright::planSyncs(ParallelOp part, BlockShape shape) {
  if (!llvm::hasSingleElement(part.getBody().front()))
    return Declined{"buffers serve all tiles of a workgroup", "buffers of a tile"};
  for (Operation &op : part.getWalk().getBody().front())
    if (op.getNumRegions() > 0 && !isa<ComputeOp>(op))
      return Declined{"nests run inside " + op.getName().getStringRef().str(), "nests alone"};
  SyncPlan plan = SyncPlanner(part, shape).plan();
  assert(plan.verify().empty() && "syncs in order");
  return plan;
}
