// Decides how the threads of a block share the loop nests of a tile, for code generation on GPUs. Pure.
//
// The bits of a thread's index are assigned to the dims of a nest, lowest bits first. Every dim therefore has a power
// of two of threads, and a reduction is completed along the bits of its reduced dims: by shuffles for bits of a lane,
// through shared memory for the bits above. FusionStitching's schemes (4.2) are three such assignments: thread
// composition gives reduced dims no bits, warp composition only bits of a lane, block composition all of them.
#ifndef TILEWRIGHT_PROGRAM_GPU_THREADMAPPING_H
#define TILEWRIGHT_PROGRAM_GPU_THREADMAPPING_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/AccessBytes.h"

namespace tilewright {

constexpr unsigned kWarpBits = 5;
static_assert(int64_t(1) << kWarpBits == kWarpLanes);

/// The threads of a block, and how many neighbouring threads share a point of the tile's grid dims (a row). If the grid
/// cuts the vector dim, the group is 0: neighbouring threads take neighbouring points.
struct BlockShape {
  int64_t threads = 0, group = 0;
};

/// Bits [first, first + count) of the thread index. The lowest one is bit `turned` of the index along a dim, the next
/// one the bit above it, and so on cyclically, so that neighbouring threads can take lines that are apart.
struct BitRange {
  unsigned first = 0, count = 0, turned = 0;
  unsigned mask() const { return ((1u << count) - 1) << first; }
  /// Returns the bit of the thread index that holds this bit of the index along the dim.
  unsigned threadBit(unsigned ofIndex) const { return first + (ofIndex + count - turned) % count; }
  int64_t indexOf(int64_t thread) const {
    int64_t own = (thread & mask()) >> first;
    return (own << turned | own >> (count - turned)) & ((int64_t(1) << count) - 1);
  }
};

struct NestMapping {
  int64_t threads = 1;
  int64_t lanes = 1;                ///< elements along the vector dim that a thread accesses at once
  llvm::SmallVector<BitRange> bits; ///< bits for each dim of the nest
  unsigned reduced = 0;             ///< bits over which accumulators are combined
  unsigned idle = 0;                ///< bits of no dim; threads with any of them set are idle

  bool crossesWarps() const { return reduced >> kWarpBits != 0; }
  /// Returns an error, or an empty string if the ranges are disjoint and cover all bits that are not idle.
  std::string verify() const;
  void print(llvm::raw_ostream &os) const;
};

/// Returns the block shape that the planner chose for a part.
BlockShape blockShapeOf(tile::ParallelOp part);

NestMapping mapNest(tile::ComputeOp compute, BlockShape shape);

/// Returns the type of a value while it is passed between threads: bytes in memory, words in a shuffle.
mlir::Type storedAs(mlir::Type element);

/// Returns the bytes of scratch that a nest needs to combine its accumulators, one after another.
int64_t combiningScratchBytes(tile::ComputeOp compute, const NestMapping &mapping);

} // namespace tilewright

#endif
