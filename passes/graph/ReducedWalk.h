// Walking a reduced dim block by block: what a tile keeps of that dim is then a block, and the sums along it grow from
// block to block. Where exponentials are taken relative to a maximum along the same dim, they are relative to the
// maximum so far, and what was summed of earlier ones is multiplied by exp(old - new) whenever it has grown (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018; across a second contraction: Chimera 4). So
// attention never holds a whole row of scores.
#ifndef TILEWRIGHT_GRAPH_REDUCEDWALK_H
#define TILEWRIGHT_GRAPH_REDUCEDWALK_H

#include "passes/graph/OnlineSoftmax.h"

namespace tilewright {

/// The name of the form of such a maximum in plans and in `numerics`.
inline constexpr llvm::StringLiteral kMaximumOfBlocks = "running maximum of blocks";
/// The same where blocks without a point that counts (CausalBound) are left out.
inline constexpr llvm::StringLiteral kMaximumOfCounted = "running maximum of counted blocks";
inline bool isMaximumOfBlocks(llvm::StringRef form) { return form == kMaximumOfBlocks || form == kMaximumOfCounted; }

/// What a root reads of another one.
struct WalkedRead {
  unsigned producer;             ///< its number
  mlir::AffineMap written, read; ///< the index of an element, over the domain of the producer and of the reader
  bool guarded;
};

struct WalkedRoot {
  const TensorExpr *expr;
  llvm::ArrayRef<int64_t> places; ///< in the index space, of each dim of its domain
  llvm::SmallVector<WalkedRead> reads;
  bool leaves; ///< something outside the kernel reads it
};

enum class WalkPhase { before, inside, after };

struct Walk {
  std::string refused;                  ///< why the dim cannot be walked; empty: it can
  llvm::SmallVector<WalkPhase> phases;  ///< of each root
  llvm::SmallVector<unsigned> grown;    ///< the roots that reduce the dim
  int64_t maximum = -1;                 ///< the one of them that others use while it grows
  llvm::SmallVector<unsigned> rescaled; ///< those of them that are proportional to exp(-maximum)
  bool mayEnd = false;                  ///< blocks whose exponentials are all zero change nothing
};

/// `roots` are in program order. `relate` is how each of them follows from the one that it is asked about (see
/// relateTo, through roundings), or empty if that one must be complete before it is used.
Walk decideWalk(llvm::ArrayRef<WalkedRoot> roots, int64_t dim,
                llvm::function_ref<llvm::SmallVector<Relation>(unsigned maximum)> relate);

} // namespace tilewright

#endif
