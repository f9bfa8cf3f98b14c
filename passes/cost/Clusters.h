// Clusters: neighbouring blocks whose SMs write each other's shared memory, so that what all blocks read is read once a
// cluster. The planner counts on it, and tile-stage-tiles carries it out. Pure.
#ifndef TILEWRIGHT_COST_CLUSTERS_H
#define TILEWRIGHT_COST_CLUSTERS_H

#include "passes/target/Target.h"

namespace tilewright {

/// Of the bytes that a kernel touches, each once: below it sharing spares nothing.
constexpr double kHardlyRepeated = 1.045;

/// Blocks of the largest cluster that every device of the target has room for; 1: it has no clusters.
int64_t largestCluster(const Target &target);

/// Blocks of a cluster of a kernel of so many blocks, if they touch `bytes` of which all read the same `common`; 1:
/// they are better off alone. In the last cluster blocks may be left over, which help with what is common.
int64_t chooseCluster(const Target &target, int64_t blocks, double bytes, double common);

/// What the blocks of a cluster wait for each other, on the whole.
double clusterSeconds(const Target &target, int64_t blocks);

} // namespace tilewright

#endif
