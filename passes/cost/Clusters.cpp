#include "passes/cost/Clusters.h"

using namespace tilewright;

double tilewright::clusterSeconds(const Target &target, int64_t blocks) {
  // One barrier before and one after.
  return blocks > 1 ? 2 * target.costs.gpu.clusterCycles / target.gpu.clockHz : 0;
}
