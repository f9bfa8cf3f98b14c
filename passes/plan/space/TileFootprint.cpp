#include "passes/plan/space/TileFootprint.h"

#include "passes/graph/ElementBytes.h"
#include "passes/graph/OnlineSoftmax.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/space/Work.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/BestFit.h"

using namespace mlir;
using namespace tilewright;

static int64_t aligned(int64_t bytes) { return llvm::alignTo(bytes, kBufferAlignment); }

int64_t TileFootprint::bytes() const {
  int64_t bytes = sharesMemory() ? liveBufferBytes(graph, space, walkPhases(), target) : resultBytes();
  std::vector<Value> resident = workgroupStaged();
  for (Value tensor : resident)
    bytes += aligned(tensorBytes(tensor));
  for (const Read *read : keptForTile())
    if (!llvm::is_contained(resident, read->access->tensor))
      bytes += aligned(sliceBytes(*read));
  return bytes;
}

ArrayRef<WalkPhase> TileFootprint::walkPhases() const {
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  if (walked < 0)
    return {};
  auto [entry, isNew] = phases.try_emplace(walked);
  if (isNew)
    entry->second = walkAlong(graph, group, space.roots, walked).phases;
  return entry->second;
}

int64_t TileFootprint::resultBytes() const {
  int64_t bytes = 0, walked = walkedDim(space.extents, space.tiles, space.grid);
  for (const GroupRoot &root : space.roots) {
    const TensorExpr &expr = graph.exprs()[root.expr];
    for (auto [result, map] : llvm::zip(expr.op->getResults(), expr.results)) {
      bool grows =
          llvm::any_of(expr.reductions, [&](int64_t reduced) { return walked >= 0 && root.dims[reduced] == walked; });
      if (space.readingNests(result).empty() && !grows)
        continue;
      int64_t elements = 1;
      for (AffineExpr index : map.getResults())
        if (int64_t dim = pureDim(index); dim >= 0 && root.dims[dim] >= 0)
          elements *= space.tiles[root.dims[dim]];
      bytes += aligned(elements * elementBytesOf(result)) * (grows ? 2 : 1);
      if (root.reference >= 0)
        bytes += aligned(llvm::divideCeil(elements, pointsPerReference(target.vectorBytes, target.vectorRegisters)) *
                         elementBytesOf(result));
    }
  }
  return bytes;
}

ArrayRef<TileFootprint::Read> TileFootprint::reads() const {
  if (found)
    return *found;
  found.emplace();
  for (const GroupRoot &root : space.roots)
    for (const RootAccess &access : root.accesses) {
      if (access.producer >= 0 || isContraction(root) || access.guard != IntegerSet())
        continue;
      AffineMap map = overSpace(access.map, root.dims, space.extents.size());
      Read read{&root, &access, map, BufferedSlice(map, space.extents)};
      if (!read.slice.isKeptByPoints(space.extents, cast<RankedTensorType>(access.tensor.getType()).getShape()))
        continue;
      auto first = llvm::find_if(*found, [&](const Read &other) { return other.isSame(read); });
      if (first == found->end())
        found->push_back(std::move(read));
      else
        first->isAgain |= first->root->nest != root.nest;
    }
  return *found;
}

SmallVector<const TileFootprint::Read *> TileFootprint::keptForTile() const {
  SmallVector<const Read *> kept;
  for (const Read &read : reads())
    if (read.isAgain || (target.traits.buffersRepeatedReads && repeatsInTile(read)))
      kept.push_back(&read);
  return kept;
}

bool TileFootprint::repeatsInTile(const Read &read) const {
  SmallVector<int64_t> places; // tiled dims of the nest
  for (const GroupRoot &root : space.roots)
    for (int64_t place : root.dims)
      if (root.nest == read.root->nest && place >= 0 && space.tiles[place] > 1)
        places.push_back(place);
  llvm::sort(places);
  return isReadAgain(read.map, places);
}

std::vector<Value> TileFootprint::tileStaged() const {
  std::vector<Value> staged;
  for (const Read &read : reads())
    if (read.isAgain && !llvm::is_contained(staged, read.access->tensor))
      staged.push_back(read.access->tensor);
  return staged;
}

int64_t TileFootprint::sliceBytes(const Read &read) const {
  int64_t bytes = elementBytesOf(read.access->tensor);
  for (int64_t size : read.slice.shape(space.tiles, bytes, sharesMemory()))
    bytes *= size;
  return bytes;
}

bool TileFootprint::usesGrid(const GroupRoot &root, AffineMap map) const {
  for (auto [dim, place] : llvm::enumerate(root.dims))
    if (place >= 0 && llvm::is_contained(space.grid, place) && map.isFunctionOfDim(dim))
      return true;
  return false;
}

std::vector<Value> TileFootprint::workgroupStaged() const {
  std::vector<Value> staged;
  int64_t bytes = 0;
  if (!target.traits.stagesForWorkgroup || space.numTiles() <= space.workgroups)
    return staged;
  for (const GroupRoot &root : space.roots)
    for (const RootAccess &access : root.accesses) {
      int64_t own = tensorBytes(access.tensor);
      bool scalar = cast<RankedTensorType>(access.tensor.getType()).getNumElements() == 1;
      if (access.producer >= 0 || isContraction(root) || scalar || usesGrid(root, access.map) ||
          bytes + own > target.costs.cpu.stagedInputBytes || llvm::is_contained(staged, access.tensor))
        continue;
      staged.push_back(access.tensor);
      bytes += own;
    }
  return staged;
}

std::vector<Value> TileFootprint::streamed() const {
  if (!target.traits.streamsStores)
    return {};
  int64_t cache = 0;
  for (const MemoryLevel &level : target.levels)
    cache = std::max(cache, level.capacityBytes);
  double bytes = workOf(graph, space, target).globalBytes();
  std::vector<Value> outputs;
  for (Value tensor : space.outputs)
    if (bytes > static_cast<double>(cache) && tensorBytes(tensor) > cache / target.costs.cpu.tensorsInOuterCache)
      outputs.push_back(tensor);
  return outputs;
}
