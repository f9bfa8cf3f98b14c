// Micro kernels of four warps together (wgmma on sm_90a): to whoever chooses they are of warps, whose instruction has
// 64 rows.
#ifndef TILEWRIGHT_TARGET_WARPGROUPS_H
#define TILEWRIGHT_TARGET_WARPGROUPS_H

#include "passes/target/AllowedProducts.h"
#include "passes/target/Target.h"

namespace tilewright {

/// The micro kernel of warpgroups, and the feature of targets that have it.
inline constexpr llvm::StringLiteral kWarpgroupKernel = "wgmma", kWarpgroupFeature = "sm_90a";
/// Of matrices in shared memory, in bytes: behind so many the widest swizzle repeats.
inline constexpr int64_t kWarpgroupAlignment = 1024;
/// Of the instruction, and the least lanes of it.
inline constexpr RegisterBlock kWarpgroupBlock{64, 8};

inline bool isOfWarpgroup(RegisterBlock block) { return block.rows == kWarpgroupBlock.rows; }
inline bool isOfWarpgroup(const MicroKernel &kernel) {
  return kernel.unit == StepUnit::warp && isOfWarpgroup(kernel.block);
}

/// Whether it reads only operands whose terms lie innermost: the instruction transposes 16 bits, and nothing else.
inline bool readsAlongK(const MicroKernel &kernel) {
  constexpr int64_t kHalfK = 16;
  return isOfWarpgroup(kernel) && kernel.depth != kHalfK;
}

/// Threads of a GPU that do a step together.
inline int64_t threadsOfStep(const MicroKernel &kernel) {
  return isOfWarpgroup(kernel) ? 128 : kernel.unit == StepUnit::warp ? 32 : 1;
}

/// The one of warpgroups, if the target has one for the types: it suits few blocks of threads, so who plans such a
/// block asks for it, and chooseMicroKernel() does not give it.
std::optional<MicroKernel> warpgroupKernel(const Target &target, const ProductTypes &types);

/// Whether it may multiply rows that another nest left in shared memory. Their lines are spread over the banks in
/// another way than descriptors can say, so they come from registers, which take 16 bits as they lie.
inline bool takesRowsFromBuffers(const MicroKernel &kernel) { return !readsAlongK(kernel); }

/// Whether threads round its factors in shared memory, where the instruction would cut them.
inline bool roundsInSharedMemory(const MicroKernel &kernel) {
  return isOfWarpgroup(kernel) && roundsToTf32(kernel.name);
}

/// How the operands of a contraction lie.
struct OperandPlaces {
  bool rowsInBuffer = false, lanesInBuffer = false; ///< it is what another nest left in shared memory
  bool alongK = true;                           ///< the same terms lie innermost in both
};

/// What a block of threads takes where a plan names a micro kernel: that one, or else the quickest that can compute the
/// contraction, and `instead` says why.
std::optional<MicroKernel> blockMicroKernel(const Target &target, const ProductTypes &types, llvm::StringRef label,
                                            OperandPlaces places, std::string *instead = nullptr);

} // namespace tilewright

#endif
