// How long a kernel takes on a GPU from what its threads wait for (FusionStitching 4.3): waves of resident blocks times
// the latency of a warp, bounded from below by the bytes that so many warps can keep on their way. Pure.
#ifndef TILEWRIGHT_COST_BLOCKLATENCY_H
#define TILEWRIGHT_COST_BLOCKLATENCY_H

#include "passes/target/Target.h"

namespace tilewright {

/// Bytes of a thread's widest access, and most elements that it takes at once: planned with here, emitted by
/// codegen/gpu/ThreadMapping.
constexpr int64_t kAccessBytes = 16, kMostLanes = 8;

/// A cycle, from L2 to an SM or back.
constexpr double kPortBytes = 64;

/// One loop nest as a thread sees it.
struct NestWork {
  double turns = 1;                          ///< vectors that a thread takes one after another
  double globalLoads = 0, sharedLoads = 0;   ///< per turn
  double globalPasses = 1, sharedPasses = 1; ///< of such an access, over its lines and over the banks, each 1 at best
  double instructions = 0;                   ///< per turn, light ones: arithmetic, comparisons, indices
  double special = 0;                        ///< per turn, of the special function units: ex2, rcp, rsqrt, ...
  int64_t combinedLanes = 1, combinedWarps = 1; ///< over which accumulators are combined: powers of two
  int64_t accumulators = 0;
};

/// A kernel of equal blocks.
struct BlockWork {
  int64_t blocks = 1, threads = 32;
  int64_t sharedBytes = 0, registers = 32; ///< of a block, of a thread
  bool warpPrivate = false;                ///< nests hand over inside a warp
  double bytes = 0;                        ///< of global memory, all blocks, each once
  double movedBytes = 0;                   ///< the same, what several blocks read counted for each; 0: not known
  int64_t accessBytes = 16;                ///< of a thread's access
  int64_t mostResident = 0;                ///< per SM, where other work of the kernel bounds it; 0: nothing does
  std::vector<NestWork> nests;
};

struct BlockLatency {
  int64_t residentBlocks = 0;                     ///< per SM
  double waves = 0, warpCycles = 0, inFlight = 0; ///< the share of the bandwidth that the resident warps can ask for
  double seconds = 0;
};

/// Blocks of an SM that are resident together; 0 if none fits.
int64_t residentBlocks(const GpuLimits &gpu, int64_t threads, int64_t sharedBytes, int64_t registers);

BlockLatency blockLatency(const BlockWork &work, const Target &target);

} // namespace tilewright

#endif
