// Counts how often the blocks of a fusion group on a GPU read the group's inputs. This decides along which dims tiles
// grow first, which blocks form clusters, and which inputs the rows of a tile share in shared memory.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_BLOCKREADS_H
#define TILEWRIGHT_PLAN_TILING_GPU_BLOCKREADS_H

#include "passes/plan/space/IterationSpace.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {

class BlockReads {
public:
  /// Keeps a reference to `space`. All queries refer to its tiles at the time of the query.
  BlockReads(const TensorGraph &graph, const IterationSpace &space, const Target &target);

  /// Returns the bytes of all tensors that the group accesses in global memory, each counted once.
  double globalBytes() const { return touchedBytes; }
  /// Returns orders of the grid dims along which tiles can grow. The first order starts with the innermost dim. Each
  /// other order first grows along a dim along which some large input does not change.
  llvm::ArrayRef<llvm::SmallVector<int64_t>> orders() const { return growth; }
  /// Returns the number of blocks that together read the inputs that all blocks read.
  int64_t cluster(const Target &target) const;
  /// Returns the bytes that all blocks request from the L2, in whole sectors. Each tensor counts once for every tile
  /// that reads the same part of it, or once for every cluster of this size.
  double movedBytes(int64_t cluster) const;
  /// Returns the shared memory for inputs that several rows of a tile, or a cluster, share (tile-stage-tiles).
  int64_t stagedBytes(int64_t cluster) const;

private:
  /// An input, the dims of the space that move a tile along it, and the dim along which it is contiguous (-1: none).
  struct Read {
    mlir::Value tensor;
    llvm::SmallBitVector along;
    int64_t inner;
    double bytes;
  };

  void collect(const TensorGraph &graph);
  void order();
  /// Returns the bytes of whole sectors relative to the bytes of the elements.
  double sectorShare(const Read &read) const;
  /// Returns true if all blocks read the same part of the input.
  bool isCommon(const Read &read) const;

  const IterationSpace &space;
  double hardlyRepeated; ///< see CostParameters.def
  double touchedBytes;
  std::vector<Read> reads;
  llvm::SmallSetVector<mlir::Value, 2> small; ///< tensors no larger than a sector, which each block reads
  llvm::SmallVector<llvm::SmallVector<int64_t>> growth;
};

} // namespace tilewright

#endif
