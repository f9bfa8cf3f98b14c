// Starts from the largest portable cluster and halves it until few blocks of the last cluster are surplus.
#include "passes/cost/Clusters.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tilewright;

static constexpr int64_t kPortableBlocks = 8; ///< largest portable cluster (CUDA programming guide)
static constexpr int64_t kBlocksPerIdle = 4;  ///< at least this many blocks per surplus block of the last cluster
static constexpr double kWayCycles = 180;     ///< from SM to SM (Luo et al. 2024); a barrier takes at least that

int64_t tilewright::largestCluster(const Target &target) { return target.cpu == "sm_90" ? kPortableBlocks : 1; }

int64_t tilewright::chooseCluster(const Target &target, int64_t blocks, double bytes, double common) {
  if (bytes + common * static_cast<double>(blocks - 1) <= kHardlyRepeated * bytes)
    return 1;
  int64_t cluster = largestCluster(target);
  while ((alignTo(blocks, cluster) - blocks) * kBlocksPerIdle > static_cast<uint64_t>(blocks))
    cluster /= 2;
  return cluster;
}

double tilewright::clusterSeconds(const Target &target, int64_t blocks) {
  return blocks > 1 ? 2 * kWayCycles / target.gpu.clockHz : 0; // one barrier before and one after
}
