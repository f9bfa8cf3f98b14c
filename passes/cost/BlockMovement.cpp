// Walks the loops of a block order from the innermost outwards, for each tensor (Chimera, Algorithm 1): the first loop
// that indexes the tensor ends its reuse, and every loop outside it multiplies the movement.
#include "passes/cost/BlockMovement.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace llvm;
using namespace tilewright;

std::string BlockOrder::verify(const OperatorChain &chain) const {
  std::vector<unsigned> sorted = order;
  llvm::sort(sorted);
  if (sorted.size() != chain.loops.size() || tiles.size() != chain.loops.size())
    return "expected each loop of the chain once";
  for (auto [position, loop] : enumerate(sorted))
    if (loop != position)
      return "expected each loop of the chain once";
  for (auto [loop, tile] : zip(chain.loops, tiles))
    if (tile < 1 || tile > loop.extent)
      return "a tile of " + std::to_string(tile) + " for loop " + loop.name + " of " + std::to_string(loop.extent);
  return "";
}

void BlockOrder::print(const OperatorChain &chain, raw_ostream &os) const {
  interleave(order, os, [&](unsigned loop) { os << chain.loops[loop].name << ":" << tiles[loop]; }, " ");
}

namespace {
class MovementCounter {
public:
  MovementCounter(const OperatorChain &chain, const BlockOrder &block) : chain(chain), block(block) {
    for (auto [loop, tile] : zip(chain.loops, block.tiles))
      trips.push_back(divideCeil(loop.extent, tile));
  }

  Movement count() {
    for (size_t op = 0; op < chain.ops.size(); ++op) {
      findLoops(op);
      countOp(op);
    }
    return std::move(movement);
  }

private:
  /// Finds the loops around an operator. By Observation 3, a loop that only its producers have moves none of its
  /// tensors. A loop that only its consumers have does, up to the end of a reduction that they wait for.
  void findLoops(size_t op) {
    loops.clear();
    bool waits = false;
    for (unsigned loop : block.order) {
      bool isOwn = is_contained(chain.ops[op].loops, loop), isConsumers = !isOwn && chain.runs(loop, op + 1);
      if (isOwn || (isConsumers && !waits))
        loops.push_back(loop);
      waits |= isOwn && chain.loops[loop].whole;
    }
  }

  void countOp(size_t number) {
    const ChainOp &op = chain.ops[number];
    double memory = 0;
    for (unsigned index : op.tensors) {
      const ChainTensor &tensor = chain.tensors[index];
      TensorMovement one{static_cast<unsigned>(number), index, 0, footprint(tensor)};
      if (tensor.isIO)
        one.moved = sweep(tensor) * replacements([&](unsigned loop) { return tensor.uses(loop); });
      movement.moved += one.moved;
      movement.bytes += one.moved * tensor.elementBytes * tensor.crossings;
      memory += one.footprint * tensor.elementBytes;
      movement.tensors.push_back(one);
    }
    movement.memoryBytes = std::max(movement.memoryBytes, memory + residentBytes(number));
    double points = 1, blocks = 1, again = replacements([&](unsigned loop) { return is_contained(op.loops, loop); });
    for (unsigned loop : op.loops) {
      points *= chain.loops[loop].extent;
      blocks *= trips[loop];
    }
    movement.blocks.push_back(blocks * again);
    movement.multiplications += points * again;
  }

  /// Returns the bytes of other operators' tiles that stay in memory while this one runs, because the loop around both
  /// does not replace them.
  double residentBytes(size_t number) const {
    size_t shared = 0;
    std::optional<size_t> around;
    for (; shared < block.order.size() && isAroundAll(block.order[shared]); ++shared)
      if (trips[block.order[shared]] > 1)
        around = shared;
    if (!around)
      return 0;
    auto isReplaced = [&](const ChainOp &op, const ChainTensor &tensor) {
      return any_of(drop_begin(block.order, *around), [&](unsigned loop) {
        return trips[loop] > 1 && tensor.uses(loop) && is_contained(op.loops, loop);
      });
    };
    double bytes = 0;
    for (const ChainOp &op : chain.ops)
      for (unsigned index : op.tensors)
        if (const ChainTensor &tensor = chain.tensors[index];
            tensor.isIO && !is_contained(chain.ops[number].tensors, index) && !isReplaced(op, tensor))
          bytes += footprint(tensor) * tensor.elementBytes;
    return bytes;
  }

  /// Returns true if all operators run inside one iteration of the loop: it is neither a producer's own reduction nor
  /// one that consumers wait for.
  bool isAroundAll(unsigned loop) const { return chain.runs(loop, chain.ops.size() - 1) && !chain.loops[loop].whole; }

  /// Returns the elements of a tile. Accumulators of an intermediate tensor that a reduction revisits are isWhole until
  /// it ends.
  double footprint(const ChainTensor &tensor) const {
    double elements = 1;
    for (const ChainIndex &index : tensor.dims) {
      double size = 1;
      for (const ChainTerm &term : index) {
        bool isWhole = !tensor.isIO && (chain.loops[term.loop].whole || isRevisited(tensor, term.loop));
        size +=
            static_cast<double>(term.stride) * ((isWhole ? chain.loops[term.loop].extent : block.tiles[term.loop]) - 1);
      }
      elements *= size;
    }
    return elements;
  }

  /// Returns true if a loop outside this one reduces into the tensor.
  bool isRevisited(const ChainTensor &tensor, unsigned loop) const {
    auto producer = find_if(chain.ops, [&](const ChainOp &op) { return &chain.tensors[op.tensors.back()] == &tensor; });
    if (producer == chain.ops.end())
      return false;
    for (unsigned outer : block.order) {
      if (outer == loop)
        return false;
      if (trips[outer] > 1 && is_contained(producer->loops, outer) && !tensor.uses(outer))
        return true;
    }
    return false;
  }

  /// Returns the elements of all tiles of a tensor, visited once each. Windows of neighbouring tiles overlap.
  double sweep(const ChainTensor &tensor) const {
    double elements = 1;
    for (const ChainIndex &index : tensor.dims) {
      double positions = 1;
      for (const ChainTerm &term : index)
        positions *= trips[term.loop];
      double size = positions;
      for (const ChainTerm &term : index)
        size += static_cast<double>(term.stride) * (chain.loops[term.loop].extent - trips[term.loop]) * positions /
                trips[term.loop];
      elements *= size;
    }
    return elements;
  }

  /// Observations 1 and 2: once a loop that indexes the tensor has replaced its tile, all loops outside it do so, too.
  double replacements(function_ref<bool(unsigned)> isUsed) const {
    double product = 1;
    bool keepReuse = true;
    for (unsigned loop : reverse(loops)) {
      if (trips[loop] == 1)
        continue;
      if (isUsed(loop))
        keepReuse = false;
      else if (!keepReuse)
        product *= trips[loop];
    }
    return product;
  }

  const OperatorChain &chain;
  const BlockOrder &block;
  std::vector<unsigned> loops; ///< loops around the current operator, outermost first
  std::vector<int64_t> trips;
  Movement movement;
};
} // namespace

Movement tilewright::movementOf(const OperatorChain &chain, const BlockOrder &block) {
  return MovementCounter(chain, block).count();
}
