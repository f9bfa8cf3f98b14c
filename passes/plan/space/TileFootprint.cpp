#include "passes/plan/space/TileFootprint.h"

#include "passes/graph/ElementBytes.h"
#include "passes/graph/OnlineSoftmax.h"
#include "passes/layout/BufferedSlice.h"
#include "passes/plan/space/LiveBuffers.h"
#include "passes/plan/space/Work.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/BestFit.h"

using namespace mlir;
using namespace tilewright;

static int64_t aligned(int64_t bytes) { return llvm::alignTo(bytes, kBufferAlignment); }

int64_t TileFootprint::bytes() const {
  int64_t bytes = sharesMemory() ? liveBufferBytes(graph, space, walkPhases()) : resultBytes();
  std::vector<Value> resident = workgroupStaged();
  for (Value tensor : resident)
    bytes += aligned(tensorBytes(tensor));
  for (auto [root, access] : keptForTile())
    if (!llvm::is_contained(resident, access->tensor))
      bytes += aligned(sliceBytes(*root, *access));
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

bool TileFootprint::mayBeKept(const GroupRoot &root, const RootAccess &access) const {
  return access.producer < 0 && !isContraction(root) && access.guard == IntegerSet() &&
         isKeptByPoints(inSpace(root, access), space.extents,
                        cast<RankedTensorType>(access.tensor.getType()).getShape());
}

std::vector<TileFootprint::Access> TileFootprint::readAgain() const {
  std::vector<Access> first, again;
  for (const GroupRoot &root : space.roots)
    for (const RootAccess &access : root.accesses) {
      if (!mayBeKept(root, access))
        continue;
      auto same = [&](const Access &other) {
        return other.second->tensor == access.tensor && inSpace(*other.first, *other.second) == inSpace(root, access);
      };
      auto known = llvm::find_if(first, same);
      if (known == first.end())
        first.push_back({&root, &access});
      else if (known->first->nest != root.nest && llvm::none_of(again, same))
        again.push_back(*known);
    }
  return again;
}

std::vector<TileFootprint::Access> TileFootprint::keptForTile() const {
  std::vector<Access> kept = readAgain();
  if (!target.traits.buffersRepeatedReads)
    return kept;
  for (const GroupRoot &root : space.roots)
    for (const RootAccess &access : root.accesses) {
      AffineMap map = inSpace(root, access);
      auto isKept = [&](const Access &other) {
        return other.second->tensor == access.tensor && inSpace(*other.first, *other.second) == map;
      };
      if (mayBeKept(root, access) && repeatsInTile(root, map) && llvm::none_of(kept, isKept))
        kept.push_back({&root, &access});
    }
  return kept;
}

bool TileFootprint::repeatsInTile(const GroupRoot &reader, AffineMap map) const {
  SmallVector<int64_t> places; // tiled dims of the nest
  for (const GroupRoot &root : space.roots)
    for (int64_t place : root.dims)
      if (root.nest == reader.nest && place >= 0 && space.tiles[place] > 1)
        places.push_back(place);
  llvm::sort(places);
  return isReadAgain(map, places);
}

AffineMap TileFootprint::inSpace(const GroupRoot &root, const RootAccess &access) const {
  return overSpace(access.map, root.dims, space.extents.size());
}

std::vector<Value> TileFootprint::tileStaged() const {
  std::vector<Value> staged;
  for (auto [root, access] : readAgain())
    if (!llvm::is_contained(staged, access->tensor))
      staged.push_back(access->tensor);
  return staged;
}

int64_t TileFootprint::sliceBytes(const GroupRoot &root, const RootAccess &access) const {
  int64_t bytes = elementBytesOf(access.tensor);
  for (int64_t size :
       bufferedSliceShape(inSpace(root, access), space.extents, space.tiles, bytes, sharesMemory()))
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
