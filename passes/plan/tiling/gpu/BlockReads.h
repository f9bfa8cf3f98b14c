// What the blocks of a part on a GPU read of tensors from outside, and how often: why tiles grow along one dim before
// another, why neighbouring blocks form clusters, and what rows of a tile share in shared memory.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_BLOCKREADS_H
#define TILEWRIGHT_PLAN_TILING_GPU_BLOCKREADS_H

#include "passes/plan/space/IterationSpace.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {

class BlockReads {
public:
  static constexpr int64_t kSectorBytes = 32; ///< no less is read

  /// `space` may get other tiles later, of which the questions below are.
  BlockReads(const TensorGraph &graph, const IterationSpace &space);

  /// That the part touches, each once.
  double globalBytes() const { return touchedBytes; }
  /// Grid dims in the order in which tiles grow along them: innermost first, and each along which something large does
  /// not change before the others.
  llvm::ArrayRef<llvm::SmallVector<int64_t>> orders() const { return growth; }
  /// Blocks that read together what all blocks read.
  int64_t cluster(const Target &target) const;
  /// Of all blocks, each tensor as often as tiles read the same of it, or clusters of so many; a sector at least.
  double movedBytes(int64_t cluster) const;
  /// What several rows of a tile read, or a cluster, is copied to shared memory (tile-stage-tiles).
  int64_t stagedBytes(int64_t cluster) const;

private:
  /// A tensor from outside, and the dims of the space that move a tile along it; the one along which its elements are
  /// neighbours; -1: none.
  struct Read {
    mlir::Value tensor;
    llvm::SmallBitVector along;
    int64_t inner;
    double bytes;
  };

  void collect(const TensorGraph &graph);
  void order();
  /// Of whole sectors, over those of its elements.
  double sectorShare(const Read &read) const;
  /// Whether all blocks read the same of it.
  bool isCommon(const Read &read) const;

  const IterationSpace &space;
  double touchedBytes;
  std::vector<Read> reads;
  llvm::SmallSetVector<mlir::Value, 2> small; ///< tensors in a sector, which each block reads
  llvm::SmallVector<llvm::SmallVector<int64_t>> growth;
};

} // namespace tilewright

#endif
