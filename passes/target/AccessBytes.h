// Sizes of accesses to memory, in bytes. They are the same on all CPUs and GPUs that Tilewright knows. Those of GPUs
// are from the CUDA C++ Programming Guide ("Device Memory Accesses") and the PTX ISA (cp.async).
#ifndef TILEWRIGHT_TARGET_ACCESSBYTES_H
#define TILEWRIGHT_TARGET_ACCESSBYTES_H

#include <cstdint>

namespace tilewright {

/// Cache line of a CPU.
inline constexpr int64_t kCpuLineBytes = 64;

/// Threads of a warp. A target with other warps is refused.
inline constexpr int64_t kWarpLanes = 32;
/// Cache line of a GPU, which neighbouring threads should access together.
inline constexpr int64_t kGpuLineBytes = 128;
/// Smallest access to the L2 of a GPU: a quarter of a line.
inline constexpr int64_t kSectorBytes = 32;
/// Widest access of a GPU's thread, to registers or by cp.async.
inline constexpr int64_t kAccessBytes = 16;
/// Most elements that one access of a GPU's thread takes. The planner counts with such accesses, and
/// program/gpu/ThreadMapping assigns them.
inline constexpr int64_t kMostLanes = 8;
/// An atom is what a thread copies of a contraction's operand at once, at most.
inline constexpr int64_t kAtomBytes = kAccessBytes;
/// Narrowest copy by cp.async. Narrower elements are loaded into registers and stored from there.
inline constexpr int64_t kLeastAsyncBytes = 4;

} // namespace tilewright

#endif
