// Thread block clusters: neighbouring blocks whose SMs write each other's shared memory, so that data every block reads
// is read once per cluster, and the time that they cost. Everything here is a pure function.
#ifndef TILEWRIGHT_COST_CLUSTERS_H
#define TILEWRIGHT_COST_CLUSTERS_H

#include "passes/target/Occupancy.h"

namespace tilewright {

/// Returns the blocks per cluster of a kernel of `blocks` blocks that touches `bytes`, of which every block reads the
/// same `common` bytes; 1 if hardly anything is read again. The last cluster may contain surplus blocks, which only
/// help to load the common bytes.
int64_t clusterOfBlocks(const Target &target, int64_t blocks, double bytes, double common);

/// Returns the seconds that the blocks of a cluster wait for each other in total.
double clusterSeconds(const Target &target, int64_t blocks);

} // namespace tilewright

#endif
