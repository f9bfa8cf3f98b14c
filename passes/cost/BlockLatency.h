// Latency model of a GPU kernel without contractions (FusionStitching 4.3): the waves of resident blocks times the
// latency of a warp, bounded from below by the bytes that so many warps can keep in flight. Everything here is a pure
// function.
#ifndef TILEWRIGHT_COST_BLOCKLATENCY_H
#define TILEWRIGHT_COST_BLOCKLATENCY_H

#include "passes/target/AccessBytes.h"
#include "passes/target/Occupancy.h"

namespace tilewright {

/// One loop nest from the view of a single thread.
struct NestWork {
  double turns = 1;                             ///< vectors a thread processes one after another
  double globalLoads = 0, sharedLoads = 0;      ///< loads per turn
  double globalPasses = 1, sharedPasses = 1;    ///< passes per access over lines and banks; 1 is the best case
  double instructions = 0;                      ///< light instructions per turn: arithmetic, comparisons, indices
  double special = 0;                           ///< special-function instructions per turn: ex2, rcp, rsqrt, ...
  int64_t combinedLanes = 1, combinedWarps = 1; ///< lanes and warps whose accumulators are combined, powers of two
  int64_t accumulators = 0;
};

/// A kernel whose blocks are all alike.
struct BlockWork {
  int64_t blocks = 1, threads = 32;
  int64_t sharedBytes = 0, registers = 32; ///< bytes per block, registers per thread
  bool warpPrivate = false;                ///< true if nests exchange values only within a warp
  double bytes = 0;                        ///< bytes of global memory that all blocks touch, each byte counted once
  double movedBytes = 0;                   ///< like bytes, but counted once per block that reads it; 0: unknown
  int64_t accessBytes = 16;                ///< bytes per access of a thread
  int64_t mostResident = 0; ///< bound on resident blocks per SM from other work of the kernel; 0: unbounded
  std::vector<NestWork> nests;
};

inline BlockResources resourcesOf(const BlockWork &work) {
  return {work.blocks, work.threads, work.sharedBytes, work.registers};
}

struct BlockLatency {
  int64_t residentBlocks = 0; ///< blocks per SM
  double waves = 0, warpCycles = 0;
  double inFlight = 0; ///< share of the bandwidth that the resident warps can request
  double seconds = 0;
};

BlockLatency blockLatency(const BlockWork &work, const Target &target);

} // namespace tilewright

#endif
