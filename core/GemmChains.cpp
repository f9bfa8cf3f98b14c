// Evaluates and searches block orders for the chain of two matmuls.
#include "core/GemmChains.h"

#include "passes/plan/tiling/cpu/BlockSearch.h"

using namespace tilewright;

static OperatorChain chainOf(const std::vector<int64_t> &extents) {
  OperatorChain chain = gemmChain(extents.at(0), extents.at(1), extents.at(2), extents.at(3));
  for (const ChainOp &op : chain.ops)
    chain.tensors[op.tensors.back()].crossings = 2;
  return chain;
}

static void add(PlainMovement &sum, const Movement &movement) {
  sum.moved += movement.moved;
  sum.bytes += movement.bytes;
  sum.memoryBytes = std::max(sum.memoryBytes, movement.memoryBytes);
}

/// Returns the order restricted to the loops of one operator.
static BlockOrder restrict(const BlockOrder &block, const ChainOp &op) {
  BlockOrder own;
  for (unsigned loop : op.loops)
    own.tiles.push_back(block.tiles[loop]);
  for (unsigned loop : block.order)
    if (auto place = llvm::find(op.loops, loop); place != op.loops.end())
      own.order.push_back(place - op.loops.begin());
  return own;
}

PlainMovement tilewright::gemmChainMovement(const std::vector<int64_t> &extents, const std::vector<unsigned> &order,
                                            const std::vector<int64_t> &tiles, bool reuse) {
  OperatorChain chain = chainOf(extents);
  BlockOrder block{order, tiles};
  PlainMovement sum;
  if (reuse) {
    add(sum, movementOf(chain, block));
    return sum;
  }
  std::vector<OperatorChain> apart = separately(chain);
  for (size_t op = 0; op < apart.size(); ++op)
    add(sum, movementOf(apart[op], restrict(block, chain.ops[op])));
  return sum;
}

std::tuple<std::vector<unsigned>, std::vector<int64_t>>
tilewright::gemmChainOptimum(const std::vector<int64_t> &extents, const std::vector<int64_t> &least,
                             double capacityBytes) {
  SearchSpace space;
  space.capacityBytes = capacityBytes;
  space.least = least;
  std::optional<OrderChoice> found = searchOrder(chainOf(extents), space);
  if (!found)
    return {};
  return {found->block.order, found->block.tiles};
}
