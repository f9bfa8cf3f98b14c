// Data movement and memory use of a block order of an operator chain (Chimera 4.2, Algorithm 1), as a pure function
// that returns plain numbers.
#ifndef TILEWRIGHT_COST_BLOCKMOVEMENT_H
#define TILEWRIGHT_COST_BLOCKMOVEMENT_H

#include "passes/graph/OperatorChain.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace tilewright {

/// The order in which blocks of `tiles` elements per loop are visited; `order` lists the outermost loop first.
struct BlockOrder {
  std::vector<unsigned> order;
  std::vector<int64_t> tiles; ///< elements, indexed by loop

  /// Returns an empty string, or the error: `order` is no permutation of the chain's loops, or a tile exceeds its
  /// extent.
  std::string verify(const OperatorChain &chain) const;
  void print(const OperatorChain &chain, llvm::raw_ostream &os) const;
};

/// The movement of one tensor by one operator, in elements.
struct TensorMovement {
  unsigned op, tensor;
  double moved = 0;     ///< DM of the paper: 0 for a tensor that stays on the chip
  double footprint = 0; ///< DF of the paper: one tile, or what must be kept of an intermediate tensor
};

struct Movement {
  llvm::SmallVector<TensorMovement, 8> tensors; ///< grouped by operator, in the operator's order
  double moved = 0;                             ///< DV of the paper: elements of all tensors
  double bytes = 0;                             ///< DV in bytes; each tensor counts once per crossing
  double memoryBytes = 0;                       ///< MU of the paper: bytes while the operator with most memory runs
  llvm::SmallVector<double, 4> blocks;          ///< blocks that each operator executes
  double multiplications = 0;                   ///< multiply-adds, recomputation included
};

/// Implements Algorithm 1 with the rules that the paper states only in its text: a loop of one trip replaces nothing; a
/// loop that only consumers have makes the producers inside it run again; accumulators that a reduction outside them
/// revisits are kept whole. Tiles at the edges count with their real size. Where a reduction between two operators runs
/// over a loop, the first operator goes through all of that loop before the second begins, so the intermediate tensor
/// is kept along it. A tile that the next block of its operator reuses occupies memory while the other operators run,
/// which the paper leaves out of MU.
Movement movementOf(const OperatorChain &chain, const BlockOrder &block);

/// Does so for many orders of one chain. What does not depend on the order is looked up once.
class MovementModel {
public:
  /// Refers to the chain.
  explicit MovementModel(const OperatorChain &chain);

  Movement of(const BlockOrder &block) const;

private:
  using Loops = llvm::SmallBitVector; ///< a bit for each loop of the chain

  /// Counts for one order.
  class Counter;

  const OperatorChain &chain;
  std::vector<Loops> ofOp;        ///< loops of each operator
  std::vector<Loops> ofConsumers; ///< loops of the operators behind each one
  std::vector<Loops> ofTensor;    ///< loops that index each tensor
  std::vector<int64_t> producers; ///< operator that writes each tensor; -1: none
  /// Loops with all operators inside one iteration. Others are a producer's own reduction, or one that consumers wait
  /// for.
  Loops aroundAll;
};

} // namespace tilewright

#endif
