// A step of some micro kernels multiplies two or four neighbouring elements of K for each lane. A buffer that is
// transposed for such a kernel is laid out with groups of them as elements of the transposed matrix. Otherwise every
// reader would have to interleave rows of lanes again.
#include "passes/program/cpu/InterleaveK.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/MatchContraction.h"
#include "passes/layout/BlockingChoice.h"
#include "passes/program/Slices.h"
#include "passes/target/LaneBytes.h"
#include "passes/target/MicroKernel.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// Returns the position of the index that is the dim, if no other index of the map depends on the dim; else -1.
int64_t indexOf(AffineMap map, int64_t dim) {
  int64_t found = -1;
  for (auto [position, index] : llvm::enumerate(map.getResults())) {
    if (!index.isFunctionOfDim(dim))
      continue;
    auto own = dyn_cast<AffineDimExpr>(index);
    if (!own || found >= 0)
      return -1;
    found = position;
  }
  return found;
}

/// Returns true if the nest covers the whole dim from its beginning.
bool goesOverWhole(ComputeOp compute, int64_t dim) {
  return compute.getSizes()[dim] == compute.getExtents()[dim] && !llvm::is_contained(compute.getOffsetDims(), dim);
}

/// The new layout of a buffer.
struct KGroups {
  int64_t index; ///< index of the buffer along which K runs
  int64_t depth;
};

/// Returns the groups of K that a step of the contraction takes, if it reads the buffer along N one row of lanes after
/// another.
std::optional<KGroups> groupsFor(LoadOp load, const Target &target) {
  auto compute = cast<ComputeOp>(load->getParentOp());
  std::optional<Contraction> contraction = matchContraction(compute);
  if (!contraction || !compute.getMicroKernel() || contraction->rhs != load || contraction->reduced.size() != 1 ||
      innermostDim(load.getSlice().getType(), load.getMap()) != contraction->n)
    return std::nullopt;
  std::optional<MicroKernel> kernel =
      findMicroKernel(target, contraction->types, {/*packedDepth=*/1, /*tiles=*/true}, *compute.getMicroKernel());
  int64_t k = contraction->reduced.front();
  if (!kernel || kernel->depth == 1 || !goesOverWhole(compute, k))
    return std::nullopt;
  // Tile registers take whole steps of packed data.
  bool whole = compute.getExtents()[k] % kernel->stepK() == 0;
  int64_t index = indexOf(load.getMap(), k);
  return whole && index >= 0 ? std::optional(KGroups{index, kernel->depth}) : std::nullopt;
}

/// Returns true if the store ends a copy whose source is contiguous along K and whose destination has rows of lanes.
bool turnsK(StoreOp store, int64_t index) {
  auto compute = cast<ComputeOp>(store->getParentOp());
  auto load = store.getValue().getDefiningOp<LoadOp>();
  auto dim = dyn_cast<AffineDimExpr>(store.getMap().getResult(index));
  if (!dim || !load || load.getGuard() || !compute.getAccs().empty() || !llvm::hasNItems(compute.getBodyBlock(), 3))
    return false;
  int64_t k = dim.getPosition(), n = innermostDim(store.getSlice().getType(), store.getMap());
  return goesOverWhole(compute, k) && indexOf(store.getMap(), k) == index && n >= 0 && n != k &&
         innermostDim(load.getSlice().getType(), load.getMap()) == k;
}

/// Returns the layout on which all readers and writers of the buffer agree, or none.
std::optional<KGroups> decide(AllocOp buffer, const Target &target) {
  std::optional<KGroups> agreed;
  for (Operation *user : buffer->getUsers())
    if (auto load = dyn_cast<LoadOp>(user)) {
      std::optional<KGroups> own = groupsFor(load, target);
      if (!own || (agreed && (own->index != agreed->index || own->depth != agreed->depth)))
        return std::nullopt;
      agreed = own;
    }
  bool copied = agreed && llvm::all_of(buffer->getUsers(), [&](Operation *user) {
                  auto store = dyn_cast<StoreOp>(user);
                  return isa<LoadOp>(user) || (store && turnsK(store, agreed->index));
                });
  return copied ? agreed : std::nullopt;
}

AffineMap inGroups(AffineMap map, KGroups groups) {
  SmallVector<AffineExpr> indices(map.getResults());
  AffineExpr k = indices[groups.index];
  indices[groups.index] = k.floorDiv(groups.depth);
  indices.push_back(k % groups.depth);
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), indices, map.getContext());
}

/// Pads rows of lanes to whole vectors, so that they are read without masks.
SliceType inGroups(SliceType type, KGroups groups, int64_t lanes) {
  SmallVector<int64_t> shape(type.getShape());
  shape[groups.index] /= groups.depth;
  shape.back() = llvm::alignTo(shape.back(), lanes);
  shape.push_back(groups.depth);
  return SliceType::get(type.getContext(), shape, type.getElementType(), type.getSpace());
}

/// Says that a contraction reads panels that are in a buffer already, so that it neither copies nor prefetches any.
void readFromBuffer(Operation *contraction) {
  auto stated = contraction->getAttrOfType<BlockingAttr>(kBlockingAttr);
  if (!stated)
    return;
  BlockingChoice own = choiceOf(stated);
  own.panelK = own.prefetch = 0;
  contraction->setAttr(kBlockingAttr, attrOf(own, contraction->getContext()));
}

void layOut(AllocOp buffer, SliceType type, KGroups groups) {
  buffer.getResult().setType(type);
  for (Operation *user : buffer->getUsers())
    if (auto load = dyn_cast<LoadOp>(user)) {
      load.setMap(inGroups(load.getMap(), groups));
      readFromBuffer(load->getParentOp());
    } else {
      cast<StoreOp>(user).setMap(inGroups(cast<StoreOp>(user).getMap(), groups));
    }
}
} // namespace

unsigned tilewright::interleaveK(ParallelOp part, const Target &target) {
  SmallVector<AllocOp> buffers;
  part.walk([&](AllocOp buffer) { buffers.push_back(buffer); });
  int64_t bytes = 0;
  for (AllocOp buffer : buffers)
    bytes += buffer.getType().getNumBytes();
  unsigned count = 0;
  for (AllocOp buffer : buffers) {
    std::optional<KGroups> groups = decide(buffer, target);
    if (!groups)
      continue;
    SliceType type = inGroups(buffer.getType(), *groups, target.vectorBytes / kLaneBytes);
    int64_t more = type.getNumBytes() - buffer.getType().getNumBytes();
    if (bytes + more > target.blockBytes)
      continue;
    bytes += more;
    layOut(buffer, type, *groups);
    ++count;
  }
  return count;
}
