#include "passes/cost/Clusters.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tilewright;

/// Starts from the largest portable cluster and halves it until few blocks of the last cluster are surplus.
int64_t tilewright::clusterOfBlocks(const Target &target, int64_t blocks, double bytes, double common) {
  if (bytes + common * static_cast<double>(blocks - 1) <= target.costs.gpu.hardlyRepeated * bytes)
    return 1;
  int64_t cluster = largestCluster(target);
  while ((alignTo(blocks, cluster) - blocks) * target.costs.gpu.blocksPerIdle > static_cast<uint64_t>(blocks))
    cluster /= 2;
  return cluster;
}

double tilewright::clusterSeconds(const Target &target, int64_t blocks) {
  // One barrier before and one after.
  return blocks > 1 ? 2 * target.costs.gpu.clusterCycles / target.gpu.clockHz : 0;
}
