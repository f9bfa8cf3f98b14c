// Connections, and the memory cost of a propagated tile graph: Welder's SetConnect, MemFootprint and MemTraffic.
#include "passes/graph/TilePropagation.h"
#include "passes/support/BestFit.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/raw_ostream.h"

namespace tilewright {

std::vector<unsigned> TileGraph::subgraph(unsigned expr, unsigned level) const {
  llvm::SetVector<unsigned> found;
  found.insert(expr);
  for (size_t next = 0; next < found.size(); ++next) {
    for (unsigned edge : graph_.inEdges(found[next]))
      if (levels_[edge] > level)
        found.insert(graph_.edges()[edge].producer);
    for (unsigned edge : graph_.outEdges(found[next]))
      if (levels_[edge] > level)
        found.insert(graph_.edges()[edge].consumer);
  }
  std::vector<unsigned> sorted(found.begin(), found.end());
  llvm::sort(sorted);
  return sorted;
}

const ExprTile *TilePropagation::tileOf(unsigned expr) const {
  auto found = llvm::find_if(exprs, [&](const ExprTile &tile) { return tile.expr == expr; });
  return found == exprs.end() ? nullptr : &*found;
}

int64_t memFootprint(const TilePropagation &tiles) {
  return placeByBestFit(llvm::map_to_vector(tiles.tensors, [](const TensorTile &tile) {
           return LiveBuffer{tile.residentBytes, tile.first, tile.last};
         })).end;
}

int64_t memTraffic(const TilePropagation &tiles) {
  int64_t bytes = 0;
  for (const TensorTile &tile : tiles.tensors)
    bytes += tile.role == TileRole::reuse ? 0 : tile.bytes;
  return bytes * tiles.numTiles;
}

void TilePropagation::print(llvm::raw_ostream &os) const {
  os << numTiles << " tiles, footprint " << memFootprint(*this) << " B, traffic " << memTraffic(*this) << " B";
  for (const TensorTile &tile : tensors) {
    os << "; "
       << (tile.role == TileRole::input   ? "in"
           : tile.role == TileRole::reuse ? "reuse"
                                          : "out")
       << (tile.exact ? " [" : " at most [");
    llvm::interleaveComma(tile.shape, os);
    os << "] " << tile.bytes << " B";
  }
}

} // namespace tilewright
