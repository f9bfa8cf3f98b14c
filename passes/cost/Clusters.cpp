#include "passes/cost/Clusters.h"

using namespace tilewright;

static constexpr double kWayCycles = 180;     ///< from SM to SM (Luo et al. 2024); a barrier takes at least that

double tilewright::clusterSeconds(const Target &target, int64_t blocks) {
  return blocks > 1 ? 2 * kWayCycles / target.gpu.clockHz : 0; // one barrier before and one after
}
