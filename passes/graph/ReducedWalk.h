// Decides whether a kernel can walk a reduced dim block by block, so that a tile holds one block of that dim and its
// accumulators grow from block to block. Exponentials relative to a maximum along the same dim are taken relative to
// the maximum so far, and earlier sums are multiplied by exp(old - new) whenever it has grown (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; across a second contraction: Chimera 4). With it, attention never
// holds a whole row of scores.
#ifndef TILEWRIGHT_GRAPH_REDUCEDWALK_H
#define TILEWRIGHT_GRAPH_REDUCEDWALK_H

#include "passes/graph/OnlineSoftmax.h"

namespace tilewright {

/// A read of one root's result by another.
struct WalkedRead {
  unsigned producer;             ///< number of the root that is read
  mlir::AffineMap written, read; ///< index of an element over the producer's and over the reader's domain
  bool guarded;
};

struct WalkedRoot {
  const TensorExpr *expr;
  llvm::ArrayRef<int64_t> places; ///< dim of the index space for each dim of its domain
  llvm::SmallVector<WalkedRead> reads;
  bool leaves; ///< true if something outside the kernel reads it
};

enum class WalkPhase { before, inside, after };

struct Walk {
  std::string refused;                  ///< reason why the dim cannot be walked; empty: it can
  llvm::SmallVector<WalkPhase> phases;  ///< by root
  llvm::SmallVector<unsigned> grown;    ///< roots that reduce the dim
  int64_t maximum = -1;                 ///< the one of those that others use while it grows; -1: none
  llvm::SmallVector<unsigned> rescaled; ///< those that are proportional to exp(-maximum)
  bool mayEnd = false;                  ///< true if blocks whose exponentials are all zero change nothing
};

/// Decides the walk of `dim`. `roots` are in program order. `relate` returns the relation of each root to the given
/// maximum (see relateTo, with roundings), or an empty list if that maximum must be complete before it is used.
Walk decideWalk(llvm::ArrayRef<WalkedRoot> roots, int64_t dim,
                llvm::function_ref<llvm::SmallVector<Relation>(unsigned maximum)> relate);

} // namespace tilewright

#endif
