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

MovementModel::MovementModel(const OperatorChain &chain) : chain(chain), aroundAll(chain.loops.size()) {
  auto loopsThat = [&](auto holds) {
    Loops loops(chain.loops.size());
    for (unsigned loop = 0; loop < chain.loops.size(); ++loop)
      loops[loop] = holds(loop);
    return loops;
  };
  for (auto [number, op] : enumerate(chain.ops)) {
    ofOp.push_back(loopsThat([&, &op = op](unsigned loop) { return is_contained(op.loops, loop); }));
    ofConsumers.push_back(loopsThat([&, number = number](unsigned loop) { return chain.runs(loop, number + 1); }));
  }
  for (auto [number, tensor] : enumerate(chain.tensors)) {
    ofTensor.push_back(loopsThat([&, &tensor = tensor](unsigned loop) { return tensor.uses(loop); }));
    auto writes = [number = number](const ChainOp &op) { return op.tensors.back() == number; };
    auto producer = find_if(chain.ops, writes);
    producers.push_back(producer == chain.ops.end() ? -1 : producer - chain.ops.begin());
  }
  aroundAll = loopsThat([&](unsigned loop) { return ofOp.back()[loop] && !chain.loops[loop].whole; });
}

class MovementModel::Counter {
public:
  Counter(const MovementModel &model, const BlockOrder &block) : model(model), chain(model.chain), block(block) {
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
      bool isOwn = model.ofOp[op][loop], isConsumers = !isOwn && model.ofConsumers[op][loop];
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
      TensorMovement one{static_cast<unsigned>(number), index, 0, footprint(index)};
      if (tensor.isIO)
        one.moved = sweep(tensor) * replacements(model.ofTensor[index]);
      movement.moved += one.moved;
      movement.bytes += one.moved * tensor.elementBytes * tensor.crossings;
      memory += one.footprint * tensor.elementBytes;
      movement.tensors.push_back(one);
    }
    movement.memoryBytes = std::max(movement.memoryBytes, memory + residentBytes(number));
    double points = 1, blocks = 1, again = replacements(model.ofOp[number]);
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
    std::optional<size_t> around;
    for (size_t shared = 0; shared < block.order.size() && model.aroundAll[block.order[shared]]; ++shared)
      if (trips[block.order[shared]] > 1)
        around = shared;
    if (!around)
      return 0;
    auto isReplaced = [&](size_t op, unsigned tensor) {
      return any_of(drop_begin(block.order, *around), [&](unsigned loop) {
        return trips[loop] > 1 && model.ofTensor[tensor][loop] && model.ofOp[op][loop];
      });
    };
    double bytes = 0;
    for (auto [op, other] : enumerate(chain.ops))
      for (unsigned index : other.tensors)
        if (chain.tensors[index].isIO && !is_contained(chain.ops[number].tensors, index) && !isReplaced(op, index))
          bytes += footprint(index) * chain.tensors[index].elementBytes;
    return bytes;
  }

  /// Returns the elements of a tile. Accumulators of an intermediate tensor that a reduction revisits are whole until
  /// it ends.
  double footprint(unsigned index) const {
    const ChainTensor &tensor = chain.tensors[index];
    double elements = 1;
    for (const ChainIndex &terms : tensor.dims) {
      double size = 1;
      for (const ChainTerm &term : terms) {
        bool isWhole = !tensor.isIO && (chain.loops[term.loop].whole || isRevisited(index, term.loop));
        size +=
            static_cast<double>(term.stride) * ((isWhole ? chain.loops[term.loop].extent : block.tiles[term.loop]) - 1);
      }
      elements *= size;
    }
    return elements;
  }

  /// Returns true if a loop outside this one reduces into the tensor.
  bool isRevisited(unsigned tensor, unsigned loop) const {
    int64_t producer = model.producers[tensor];
    if (producer < 0)
      return false;
    for (unsigned outer : block.order) {
      if (outer == loop)
        return false;
      if (trips[outer] > 1 && model.ofOp[producer][outer] && !model.ofTensor[tensor][outer])
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
  double replacements(const Loops &used) const {
    double product = 1;
    bool keepReuse = true;
    for (unsigned loop : reverse(loops)) {
      if (trips[loop] == 1)
        continue;
      if (used[loop])
        keepReuse = false;
      else if (!keepReuse)
        product *= trips[loop];
    }
    return product;
  }

  const MovementModel &model;
  const OperatorChain &chain;
  const BlockOrder &block;
  SmallVector<unsigned, 8> loops; ///< loops around the current operator, outermost first
  SmallVector<int64_t, 8> trips;
  Movement movement;
};

Movement MovementModel::of(const BlockOrder &block) const { return Counter(*this, block).count(); }

Movement tilewright::movementOf(const OperatorChain &chain, const BlockOrder &block) {
  return MovementModel(chain).of(block);
}
