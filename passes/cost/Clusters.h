// Thread block clusters: neighbouring blocks whose SMs write each other's shared memory, so that data every block reads
// is read once per cluster. The planner counts on them, and tile-stage-tiles emits them. Everything here is a pure
// function.
#ifndef TILEWRIGHT_COST_CLUSTERS_H
#define TILEWRIGHT_COST_CLUSTERS_H

#include "passes/target/Target.h"

namespace tilewright {

/// Bytes read over distinct bytes touched; at or below this ratio, sharing reads is not worth a cluster.
constexpr double kHardlyRepeated = 1.045;

/// Returns the number of blocks of the largest cluster that every device of the target supports; 1 if it has no
/// clusters.
int64_t largestCluster(const Target &target);

/// Returns the blocks per cluster for a kernel of `blocks` blocks that touches `bytes`, of which every block reads the
/// same `common` bytes; 1 if clusters do not pay. The last cluster may contain surplus blocks, which only help to load
/// the common bytes.
int64_t chooseCluster(const Target &target, int64_t blocks, double bytes, double common);

/// Returns the seconds that the blocks of a cluster wait for each other in total.
double clusterSeconds(const Target &target, int64_t blocks);

} // namespace tilewright

#endif
