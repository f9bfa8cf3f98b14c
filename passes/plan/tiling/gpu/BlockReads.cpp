#include "passes/plan/tiling/gpu/BlockReads.h"

#include "passes/cost/Clusters.h"
#include "passes/graph/ElementBytes.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/space/Work.h"
#include "passes/support/BestFit.h"
#include "passes/target/AccessBytes.h"

using namespace mlir;
using namespace tilewright;

static constexpr int64_t kCopyPadding = kBufferAlignment; ///< padding of a copied tile in bytes, at most

BlockReads::BlockReads(const TensorGraph &graph, const IterationSpace &space, const Target &target)
    : space(space), hardlyRepeated(target.costs.gpu.hardlyRepeated),
      touchedBytes(workOf(graph, space, target).globalBytes()) {
  collect(graph);
  order();
}

/// Returns the dim of the space along which the access is contiguous; -1: none.
static int64_t innerPlace(const GroupRoot &root, const RootAccess &access) {
  unsigned rank = access.map.getNumResults();
  int64_t dim = rank == 0 ? -1 : unitStrideDim(access.map.getResult(rank - 1));
  return dim < 0 ? -1 : root.dims[dim];
}

void BlockReads::collect(const TensorGraph &graph) {
  for (const GroupRoot &root : space.roots)
    for (const RootAccess &access : root.accesses) {
      if (access.producer >= 0)
        continue;
      if (tensorBytes(access.tensor) <= kSectorBytes) {
        small.insert(access.tensor);
        continue;
      }
      int64_t inner = innerPlace(root, access);
      auto known = llvm::find_if(reads, [&](const Read &read) { return read.tensor == access.tensor; });
      if (known == reads.end()) {
        reads.push_back({access.tensor, llvm::SmallBitVector(space.extents.size()), inner, 0});
        known = std::prev(reads.end());
      }
      known->inner = known->inner == inner ? inner : -1;
      double touched = elementBytesOf(access.tensor);
      for (auto [dim, extent] : llvm::enumerate(graph.exprs()[root.expr].domain))
        touched *= access.map.isFunctionOfDim(dim) ? extent : 1;
      known->bytes = std::max(known->bytes, std::min<double>(tensorBytes(access.tensor), touched));
      for (auto [dim, place] : llvm::enumerate(root.dims))
        if (place >= 0 && access.map.isFunctionOfDim(dim))
          known->along.set(place);
    }
}

void BlockReads::order() {
  SmallVector<int64_t> inner(llvm::reverse(space.grid));
  growth.push_back(inner);
  for (int64_t dim : inner) {
    bool spares = llvm::any_of(reads, [&](const Read &read) {
      return !read.along.test(dim) && read.bytes * (space.extents[dim] - 1) > (hardlyRepeated - 1) * touchedBytes;
    });
    if (!spares || dim == inner.front())
      continue;
    SmallVector<int64_t> order = {dim};
    llvm::copy_if(inner, std::back_inserter(order), [&](int64_t other) { return other != dim; });
    growth.push_back(std::move(order));
  }
}

bool BlockReads::isCommon(const Read &read) const {
  return llvm::none_of(space.grid, [&](int64_t dim) { return read.along.test(dim); });
}

int64_t BlockReads::cluster(const Target &target) const {
  double common = 0;
  for (const Read &read : reads)
    common += isCommon(read) ? read.bytes : 0;
  return clusterOfBlocks(target, space.numTiles(), touchedBytes, common);
}

/// Returns the bytes of whole sectors relative to the bytes of the elements. A tile whose lines are shorter than a
/// sector is not copied as a whole. Threads that are neighbours along another dim then request the sector again for
/// each of its elements.
double BlockReads::sectorShare(const Read &read) const {
  int64_t inner = read.inner, element = elementBytesOf(read.tensor);
  bool isCut = inner >= 0 && inner != space.vector && llvm::is_contained(space.grid, inner) &&
               space.tiles[inner] < space.extents[inner];
  return isCut && space.tiles[inner] * element < kSectorBytes ? static_cast<double>(kSectorBytes) / element : 1;
}

double BlockReads::movedBytes(int64_t cluster) const {
  double moved = touchedBytes;
  for (const Read &read : reads) {
    double times = 1;
    for (int64_t dim : space.grid)
      times *= read.along.test(dim) ? 1 : llvm::divideCeil(space.extents[dim], space.tiles[dim]);
    if (isCommon(read))
      times /= static_cast<double>(cluster);
    moved += (times * sectorShare(read) - 1) * read.bytes;
  }
  return moved + static_cast<double>(small.size()) * (space.numTiles() - 1) * kSectorBytes;
}

int64_t BlockReads::stagedBytes(int64_t cluster) const {
  double staged = 0;
  for (const Read &read : reads) {
    double share = read.bytes;
    bool several = cluster > 1 && isCommon(read);
    for (int64_t dim : space.grid) {
      share *= read.along.test(dim) ? static_cast<double>(space.tiles[dim]) / space.extents[dim] : 1;
      several |= !read.along.test(dim) && space.tiles[dim] > 1;
    }
    staged += several ? share + kCopyPadding : 0;
  }
  return static_cast<int64_t>(staged);
}
