// How the threads of a block share the loop nests of a tile: the decision behind code generation for GPUs. Pure.
//
// The bits of a thread's index are dealt to the dims of a nest, lowest bits first, so every dim has a power of two of
// threads and a reduction is finished along the bits of its reduced dims: those of a warp by shuffles, those above by
// shared memory. FusionStitching's schemes (4.2) are three ways of dealing: thread composition gives reduced dims no
// bits, warp composition only bits of a warp, block composition all of them.
#ifndef TILEWRIGHT_PROGRAM_GPU_THREADMAPPING_H
#define TILEWRIGHT_PROGRAM_GPU_THREADMAPPING_H

#include "dialects/tile/TileDialect.h"

namespace tilewright {

constexpr unsigned kWarpBits = 5;

/// The threads of a block, and how many neighbours of them share a point of the tile's grid dims (a row). A group of 0
/// says that the grid cuts the vector dim: neighbours take neighbouring points.
struct BlockShape {
  int64_t threads = 0, group = 0;
};

/// Bits [first, first + count) of the thread index, the lowest of which is bit `turned` of the index along a dim, the
/// next one the next and so round: threads side by side may so take lines that lie apart.
struct BitRange {
  unsigned first = 0, count = 0, turned = 0;
  unsigned mask() const { return ((1u << count) - 1) << first; }
  /// The bit of the thread index that is a bit of the index along the dim.
  unsigned threadBit(unsigned ofIndex) const { return first + (ofIndex + count - turned) % count; }
  int64_t indexOf(int64_t thread) const {
    int64_t own = (thread & mask()) >> first;
    return (own << turned | own >> (count - turned)) & ((int64_t(1) << count) - 1);
  }
};

struct NestMapping {
  int64_t threads = 1;
  int64_t lanes = 1;                ///< elements along the vector dim that a thread takes at once
  llvm::SmallVector<BitRange> bits; ///< per dim of the nest
  unsigned reduced = 0;             ///< bits over which accumulators are combined
  unsigned idle = 0;                ///< bits of no dim: threads with one of them set have nothing to do

  bool crossesWarps() const { return reduced >> kWarpBits != 0; }
  /// Empty if the ranges are disjoint and cover all bits that are not idle.
  std::string verify() const;
  void print(llvm::raw_ostream &os) const;
};

/// What the planner decided for a part.
BlockShape blockShapeOf(tile::ParallelOp part);

NestMapping mapNest(tile::ComputeOp compute, BlockShape shape);

/// The type of a value while it is handed from thread to thread: bytes in memory, words in a shuffle.
mlir::Type storedAs(mlir::Type element);

/// Bytes of scratch that a nest needs to combine its accumulators, one after another.
int64_t combiningScratchBytes(tile::ComputeOp compute, const NestMapping &mapping);

} // namespace tilewright

#endif
