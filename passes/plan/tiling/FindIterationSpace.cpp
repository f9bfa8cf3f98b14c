#include "passes/plan/tiling/FindIterationSpace.h"

#include "passes/backend/Backend.h"
#include "passes/cost/Confidence.h"
#include "passes/plan/space/TileFootprint.h"
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/TileSizes.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace mlir;
using namespace tilewright;

/// Returns what would let the smallest tile fit, which is one point of the dims that workgroups divide and all of the
/// others: the longest row that does, or more memory.
static std::string whatWouldFit(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                IterationSpace space) {
  int64_t row = -1;
  for (auto [dim, extent] : llvm::enumerate(space.extents)) {
    bool isGrid = llvm::is_contained(space.grid, dim);
    space.tiles[dim] = isGrid ? 1 : extent;
    if (!isGrid && (row < 0 || extent > space.extents[row]))
      row = dim;
  }
  auto bytesOf = [&](int64_t points) {
    space.extents[row] = space.tiles[row] = points;
    return TileFootprint(graph, group, target, space).bytes();
  };
  int64_t longest = row < 0 ? 0 : space.extents[row], needed = row < 0 ? 0 : bytesOf(longest), points = longest;
  if (needed <= target.blockBytes)
    return kRoomierTarget.str();
  for (int64_t bytes = needed; bytes > target.blockBytes; bytes = bytesOf(points))
    if (points = std::min(points - 1, points * target.blockBytes / bytes); points == 0)
      break;
  std::string memory = llvm::formatv("{0} KiB more memory for a workgroup",
                                     llvm::divideCeil(needed - target.blockBytes, 1024));
  return points == 0 ? memory
                     : llvm::formatv("rows of at most about {0} points in place of {1}, or {2}", points, longest,
                                     memory);
}

OrDeclined<IterationSpace> tilewright::findIterationSpace(const TensorGraph &graph, const GroupChoice &group,
                                                          const Target &target, NumericsMode numerics,
                                                          RowPlacement rows) {
  std::vector<IterationSpace> spaces = placeIterationSpaces(graph, group, target, rows);
  if (spaces.empty())
    return Declined{"the group falls into components that share neither edges nor inputs",
                    "an op or an input that the components share"};
  std::optional<IterationSpace> best;
  double least = std::numeric_limits<double>::infinity();
  std::optional<Declined> first;
  for (IterationSpace &space : spaces) {
    space.numerics = numerics;
    if (std::string why = chooseTiles(graph, group, target, space); !why.empty()) {
      if (!first)
        first = {why, whatWouldFit(graph, group, target, space)};
      continue;
    }
    double seconds = estimate(workOf(graph, space, target), target).seconds;
    if (isFaster(seconds, least, target.costs.confidence.forms)) { // the first has contiguous elements in its lanes
      best = std::move(space);
      least = seconds;
    }
  }
  if (best)
    return std::move(*best);
  return std::move(*first);
}
