// Micro kernels of warpgroups, which are four warps together (wgmma on sm_90a). They are registered as micro kernels of
// a warp whose instruction has 64 rows.
#ifndef TILEWRIGHT_TARGET_WARPGROUPS_H
#define TILEWRIGHT_TARGET_WARPGROUPS_H

#include "passes/target/AccessBytes.h"
#include "passes/target/Target.h"

namespace tilewright {

/// The name of the warpgroup micro kernel, and the feature of targets that have it.
inline constexpr llvm::StringLiteral kWarpgroupKernel = "wgmma", kWarpgroupFeature = "sm_90a";
/// Returns true if the label of a micro kernel names it, also where the target turns out not to have it.
inline bool namesWarpgroup(llvm::StringRef label) { return label.starts_with(kWarpgroupKernel); }
/// Alignment of matrices in shared memory, in bytes: the period of the widest swizzle.
inline constexpr int64_t kWarpgroupAlignment = 1024;
/// Line of a matrix in shared memory, in bytes: that of the widest swizzle.
inline constexpr int64_t kWarpgroupLineBytes = 128;
/// The M of the instruction and its smallest unit of N.
inline constexpr RegisterBlock kWarpgroupBlock{64, 8};

inline bool isOfWarpgroup(RegisterBlock block) { return block.rows == kWarpgroupBlock.rows; }
inline bool isOfWarpgroup(const MicroKernel &kernel) {
  return kernel.unit == StepUnit::warp && isOfWarpgroup(kernel.block);
}

/// Returns true if it only reads operands whose K is contiguous: the instruction can transpose 16-bit elements only.
inline bool readsAlongK(const MicroKernel &kernel) {
  constexpr int64_t kHalfK = 16;
  return isOfWarpgroup(kernel) && kernel.depth != kHalfK;
}

/// Returns how many threads of a GPU do a step together.
inline int64_t threadsOfStep(const MicroKernel &kernel) {
  return isOfWarpgroup(kernel) ? 4 * kWarpLanes : kernel.unit == StepUnit::warp ? kWarpLanes : 1;
}

/// Returns the warpgroup micro kernel, if the target has one for the types. Few block shapes suit it, so a planner of
/// such a block requests it explicitly and chooseMicroKernel() never returns it.
std::optional<MicroKernel> warpgroupKernel(const Target &target, const ProductTypes &types, NumericsMode numerics);

/// Returns true if it may multiply an lhs that another nest stored in shared memory. Descriptors cannot express how
/// those lines are spread over the banks, so lhs goes through registers, which take 16-bit elements as they are.
inline bool takesLhsFromBuffers(const MicroKernel &kernel) { return !readsAlongK(kernel); }

/// Returns true if threads round its operands in shared memory, because the instruction would truncate them.
inline bool roundsInSharedMemory(const MicroKernel &kernel) {
  return isOfWarpgroup(kernel) && kernel.roundsToTf32;
}

/// The location and layout of a contraction's operands.
struct OperandStorage {
  bool lhsInBuffer = false, rhsInBuffer = false;    ///< another nest stored it in shared memory
  bool alongK = true;                               ///< K is contiguous in both
};

/// Returns the micro kernel a block of threads uses for a plan's label: the named one, or else the fastest that can
/// compute the contraction, with the reason in `instead`. Passes on programs give `tf32`, which forbids no label that a
/// plan may have.
std::optional<MicroKernel> blockMicroKernel(const Target &target, const ProductTypes &types, llvm::StringRef label,
                                            OperandStorage storage, NumericsMode numerics,
                                            std::string *instead = nullptr);

} // namespace tilewright

#endif
