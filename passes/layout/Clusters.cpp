// Starts from the largest portable cluster and halves it until few blocks of the last cluster are surplus.
#include "passes/layout/Clusters.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tilewright;

int64_t tilewright::clusterOfBlocks(const Target &target, int64_t blocks, double bytes, double common) {
  if (bytes + common * static_cast<double>(blocks - 1) <= target.costs.gpu.hardlyRepeated * bytes)
    return 1;
  int64_t cluster = largestCluster(target);
  while ((alignTo(blocks, cluster) - blocks) * target.costs.gpu.blocksPerIdle > static_cast<uint64_t>(blocks))
    cluster /= 2;
  return cluster;
}
