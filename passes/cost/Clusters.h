// The time that clusters of thread blocks cost. Everything here is a pure function.
#ifndef TILEWRIGHT_COST_CLUSTERS_H
#define TILEWRIGHT_COST_CLUSTERS_H

#include "passes/layout/Clusters.h"

namespace tilewright {

/// Returns the seconds that the blocks of a cluster wait for each other in total.
double clusterSeconds(const Target &target, int64_t blocks);

} // namespace tilewright

#endif
