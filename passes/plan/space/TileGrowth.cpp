#include "passes/plan/space/TileGrowth.h"

#include "llvm/ADT/STLExtras.h"
#include <map>
#include <set>
#include <vector>

using namespace tilewright;
using Place = std::vector<size_t>;

/// Returns the next larger tiles, ordered by traffic.
static std::vector<Place> largerTiles(const Place &from, llvm::ArrayRef<size_t> counts,
                                      llvm::function_ref<double(TilePlace)> traffic) {
  std::vector<std::pair<double, Place>> larger;
  for (size_t dim = 0; dim < counts.size(); ++dim) {
    if (from[dim] + 1 >= counts[dim])
      continue;
    Place next = from;
    ++next[dim];
    larger.push_back({traffic(next), next});
  }
  llvm::sort(larger);
  std::vector<Place> places;
  for (auto &[bytes, place] : larger)
    places.push_back(std::move(place));
  return places;
}

size_t tilewright::growTiles(llvm::ArrayRef<size_t> counts, size_t most, llvm::function_ref<double(TilePlace)> traffic,
                             llvm::function_ref<VisitedTile(TilePlace)> visit) {
  std::set<Place> visited;
  std::multimap<double, Place> growing; ///< tiles still to be grown, by predicted seconds
  auto look = [&](const Place &place) {
    if (visited.size() >= most || !visited.insert(place).second)
      return;
    if (VisitedTile tile = visit(place); tile.fits)
      growing.insert({tile.seconds, place});
  };
  look(Place(counts.size(), 0));
  while (!growing.empty() && visited.size() < most) {
    Place quickest = growing.begin()->second;
    growing.erase(growing.begin());
    for (const Place &next : largerTiles(quickest, counts, traffic))
      look(next);
  }
  return visited.size();
}
