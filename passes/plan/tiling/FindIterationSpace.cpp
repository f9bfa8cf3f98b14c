#include "passes/plan/tiling/FindIterationSpace.h"

#include "passes/backend/Backend.h"
#include "passes/cost/Confidence.h"
#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/TileSizes.h"
#include <limits>

using namespace mlir;
using namespace tilewright;

OrDeclined<IterationSpace> tilewright::findIterationSpace(const TensorGraph &graph, const GroupChoice &group,
                                                          const Target &target, NumericsMode numerics) {
  std::vector<IterationSpace> spaces = placeIterationSpaces(graph, group, target.lanes());
  if (spaces.empty())
    return Declined{"the group falls into components that share neither edges nor inputs",
                    "an op or an input that the components share"};
  std::optional<IterationSpace> best;
  double least = std::numeric_limits<double>::infinity();
  std::string firstWhy;
  for (IterationSpace &space : spaces) {
    space.numerics = numerics;
    if (std::string why = chooseTiles(graph, group, target, space); !why.empty()) {
      firstWhy = firstWhy.empty() ? why : firstWhy;
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
  return Declined{firstWhy, kRoomierTarget.str()};
}
