#include "passes/plan/tiling/FindIterationSpace.h"

#include "passes/plan/space/Work.h"
#include "passes/plan/tiling/TileSizes.h"
#include "passes/target/LaneBytes.h"
#include <limits>

using namespace mlir;
using namespace tilewright;

static constexpr double kClearly = 0.95; ///< fraction of the time with contiguous elements in the lanes

std::optional<IterationSpace> tilewright::findIterationSpace(const TensorGraph &graph, const GroupChoice &group,
                                                             const Target &target, std::string *reason) {
  auto refuse = [&](std::string why) -> std::optional<IterationSpace> {
    if (reason)
      *reason = std::move(why);
    return std::nullopt;
  };
  int64_t lanes = target.backend == Backend::cpu ? target.vectorBytes / kLaneBytes : 1;
  std::vector<IterationSpace> spaces = placeIterationSpaces(graph, group, lanes);
  if (spaces.empty())
    return refuse("the group falls into components that share neither edges nor inputs");
  std::optional<IterationSpace> best;
  double least = std::numeric_limits<double>::infinity();
  std::string firstWhy;
  for (IterationSpace &space : spaces) {
    if (std::string why = chooseTiles(graph, group, target, space); !why.empty()) {
      firstWhy = firstWhy.empty() ? why : firstWhy;
      continue;
    }
    double seconds = predictKernel(workOf(graph, space), target).seconds;
    if (seconds < kClearly * least) {
      best = std::move(space);
      least = seconds;
    }
  }
  return best ? std::move(best) : refuse(firstWhy);
}
