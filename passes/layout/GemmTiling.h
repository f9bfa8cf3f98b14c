// The layout of a contraction in a block of threads on a GPU: which part of the output tile each unit of threads
// accumulates, and the slots in shared memory that its operands pass through. It follows from the tile and from the
// plan's decisions (GemmChoice.h). The planner predicts with it and code generation emits it. Everything here is a pure
// function.
//
// Threads (or warps, for a warp-level micro kernel) form a grid over the tile; each keeps its accumulators in registers
// for the whole reduction. Where a tile has fewer accumulators than the block has threads (small M), several threads
// may each take a slice of K in every step and add up their accumulators at the end. Both operands pass through a
// pipeline of stages in shared memory: while one step is multiplied, the next ones are in flight.
#ifndef TILEWRIGHT_LAYOUT_GEMMTILING_H
#define TILEWRIGHT_LAYOUT_GEMMTILING_H

#include "passes/layout/GemmChoice.h"
#include "passes/support/Declined.h"
#include "passes/target/CostParameters.h"
#include "passes/target/MicroKernel.h"

namespace tilewright {

/// One output tile of M by N, its K, and the element sizes of both operands in bytes.
struct GemmTile {
  int64_t m, n, k;
  int64_t lhsBytes, rhsBytes;
  bool lhsAlongK = false; ///< true if K is contiguous in lhs; then only rows that exist are read
  bool rhsAlongK = false;
  /// True for operands with lines of 16-bit elements that begin anywhere in a 4-byte word. Warps copy such lines from
  /// the enclosing word on.
  bool lhsShifted = false, rhsShifted = false;
};

struct GemmTiling {
  static constexpr int64_t kBarrierBytes = 8;
  static constexpr int64_t kSlotAlignment = 128; ///< bytes; warpgroups need more

  int64_t m = 0, n = 0;                       ///< M and N of the tile, rounded up to powers of two
  int64_t mUnits = 1, nUnits = 1;             ///< units (threads, or warps) along M and N
  int64_t kSlices = 1;                        ///< units that split K of a step between them
  int64_t ownM = 1, ownN = 1;                 ///< M and N per unit
  int64_t heldM = 0;                          ///< M that a step stores in shared memory; the rest repeat it
  int64_t rhsLine = 0;                        ///< elements of an rhs line, where K is not contiguous
  int64_t accumulators = 0;                   ///< accumulators per thread
  int64_t step = 0, stages = 2;               ///< K of a step; steps that shared memory holds at once
  int64_t lhsSlotBytes = 0, rhsSlotBytes = 0; ///< bytes of one step of lhs and of rhs
  int64_t residentSteps = 0;                  ///< steps of lhs if all stay resident across an outer loop; 0: none
  int64_t accumulatorThreads = 0, accumulatorBytes = 4; ///< threads that hold the tile once; bytes per accumulator
  bool lhsShifted = false, rhsShifted = false;          ///< lines have room to begin after the first element
  int64_t lhsCopy = 0, rhsCopy = 0;                     ///< bytes that a thread copies at once; 0: none
  bool loadsOperands = true;                            ///< operands go through registers before they are multiplied
  bool overlaps = false;                                ///< a step is still being multiplied when the next one begins

  /// Returns the K of one step that one unit takes.
  int64_t ownK() const { return step / kSlices; }
  /// Returns how many steps are in flight while one is multiplied. The slot of a step that is still being multiplied
  /// cannot be refilled.
  int64_t stepsInFlight() const { return stages - (overlaps ? 2 : 1); }
  /// Returns the bytes of the mbarriers, one per stage, on which bulk copies of a warpgroup's operand complete. They
  /// follow the slots.
  int64_t barrierBytes() const { return loadsOperands ? 0 : stages * kBarrierBytes; }
  int64_t lhsBytes() const { return (residentSteps > 0 ? residentSteps : stages) * lhsSlotBytes; }
  int64_t slotBytes() const { return lhsBytes() + stages * rhsSlotBytes; }
  int64_t sharedBytes() const {
    return std::max(slotBytes() + barrierBytes(), (kSlices - 1) * accumulatorThreads * accumulators * accumulatorBytes);
  }
  /// Returns the bytes needed to combine rows of accumulators in registers: one value for each row of which a thread
  /// holds accumulators, after the resident lhs.
  int64_t combiningBytes(int64_t threads, int64_t valueBytes) const;
  /// Returns why an lhs of this K cannot stay resident in shared memory while an outer loop walks over N, or an empty
  /// string.
  std::string whyNotResident(int64_t k, const GpuCosts &costs) const;
  /// Keeps an lhs of this K resident.
  void keepLhsResident(int64_t k);
  /// Reads lhs where another nest stored it. It then goes through registers, which an overlapping product of the next
  /// step would still be reading, so steps no longer overlap.
  void readLhsInPlace();
  /// Returns a thread's registers for accumulators.
  int64_t accumulatorRegisters() const;
  /// Returns a rough count of all registers of a thread.
  int64_t registers(const GpuCosts &costs) const;
  void print(llvm::raw_ostream &os) const;
};

/// The smallest part of a tile that one unit of threads accumulates.
struct LeastUnit {
  int64_t m, n;
};
LeastUnit leastUnit(const GemmTile &tile, const MicroKernel &kernel);

/// Returns the least K of a step that one unit multiplies at once.
int64_t leastK(const GemmTile &tile, const MicroKernel &kernel);

/// Returns true if the micro kernel reads operands element by element, so that lines may begin at any element;
/// descriptors cannot.
bool canShift(const MicroKernel &kernel);

/// Returns why no contraction can be computed with the choice, or an empty string.
std::string whyNoGemm(const GemmChoice &choice);

/// Returns the layout that a plan's choice gives to a tile. Declines, with numbers, if a block of so many threads
/// cannot carry the choice out.
OrDeclined<GemmTiling> deriveGemmTiling(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                        const GemmChoice &choice, const GpuCosts &costs);

} // namespace tilewright

#endif
