// What a block order of a chain moves and keeps (Chimera 4.2, Algorithm 1): a pure function to plain numbers.
#ifndef TILEWRIGHT_COST_BLOCKMOVEMENT_H
#define TILEWRIGHT_COST_BLOCKMOVEMENT_H

#include "passes/graph/OperatorChain.h"

namespace tilewright {

/// Blocks of `tiles` elements of each loop, one after another in `order`, the outermost loop first.
struct BlockOrder {
  std::vector<unsigned> order;
  std::vector<int64_t> tiles; ///< by loop

  /// Empty, or what is wrong: not a permutation of the chain's loops, tiles that do not fit extents.
  std::string verify(const OperatorChain &chain) const;
  void print(const OperatorChain &chain, llvm::raw_ostream &os) const;
};

/// One tensor as one operator moves it. Elements.
struct TensorMovement {
  unsigned op, tensor;
  double moved = 0;     ///< DM: 0 for a tensor that stays on the chip
  double footprint = 0; ///< DF: of one tile, or of what has to be kept of a tensor between operators
};

struct Movement {
  std::vector<TensorMovement> tensors; ///< by operator, then in its order
  double moved = 0;                    ///< DV: elements of all tensors
  double bytes = 0;                    ///< the same in bytes, each tensor as often as it crosses
  double memoryBytes = 0;              ///< MU: while the operator runs for which most is kept
  std::vector<double> blocks;          ///< executed by each operator
  double multiplications = 0;          ///< with what is computed again
};

/// Algorithm 1, with what the paper's text adds to it: a loop of one trip replaces nothing; a loop that only consumers
/// have makes producers inside it run again; sums that a reduction outside them comes back to are kept whole. Tiles at
/// the edges count as large as they are. Where a reduction between two operators runs over a loop, the first goes
/// through all of it before the second begins, and what is between them is kept along it. A tile that the next block of
/// its operator finds again takes memory while the other operators run (the paper leaves that out of MU).
Movement movementOf(const OperatorChain &chain, const BlockOrder &block);

} // namespace tilewright

#endif
