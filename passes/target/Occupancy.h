// The number of thread blocks that a GPU holds at once: on an SM, and on all SMs that a target is sure to have. Pure.
#ifndef TILEWRIGHT_TARGET_OCCUPANCY_H
#define TILEWRIGHT_TARGET_OCCUPANCY_H

#include "passes/target/Target.h"

namespace tilewright {

/// Registers per thread that are assumed where the number is unknown.
constexpr int64_t kUnknownRegisters = 64;

/// Schedulers of an SM. Each issues one instruction a cycle and owns a quarter of the registers.
constexpr int64_t kSchedulers = 4;

/// Returns how many blocks are resident on an SM at once; 0 if not even one fits.
int64_t residentBlocks(const GpuLimits &gpu, int64_t threads, int64_t sharedBytes, int64_t registers);

/// Returns how many blocks are certain to be resident at once on every device that the target stands for.
int64_t coResidentBlocks(const Target &target, int64_t residentBlocks);

/// A block, and how many of it a kernel has.
struct BlockResources {
  int64_t blocks, threads, sharedBytes, registers; ///< bytes per block, registers per thread
};

/// Returns true if growing the shared memory of a block to `sharedBytes`, to prefetch into it, does not reduce the
/// number of blocks that run on an SM at once. `sms` is the number of SMs that share the blocks.
bool hasRoomForPrefetch(const Target &target, const BlockResources &block, int64_t sharedBytes, int64_t sms);

/// Returns the number of blocks of the largest cluster that every device of the target supports; 1 if it has no
/// clusters.
int64_t largestCluster(const Target &target);

} // namespace tilewright

#endif
