#include "passes/analysis/BlockSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <tuple>

using namespace llvm;
using namespace tilewright;

GemmChainOptimum tilewright::gemmChainOptimum(double m, double n, double k, double l, double capacity, double least,
                                              double crossings) {
  double both = capacity + least * least, ofRows = k + n, ofColumns = k + crossings * n;
  double ratio = std::sqrt(both * ofColumns / ofRows), x = (both + ratio * least) / (ratio + least);
  GemmChainOptimum optimum{x - least, both / x - least, 0};
  optimum.moved = m * l * (ofRows / optimum.m + ofColumns / optimum.l);
  return optimum;
}

OrderChoice tilewright::weigh(const OperatorChain &chain, const SearchSpace &space, BlockOrder block,
                              ArrayRef<double> times) {
  OrderChoice choice;
  choice.movement = movementOf(chain, block, times);
  for (unsigned loop : block.order) {
    int64_t trips = divideCeil(chain.loops[loop].extent, block.tiles[loop]);
    if (trips > 1 && !chain.isParallel(loop))
      break;
    choice.parallelBlocks *= trips;
  }
  double blocks = choice.parallelBlocks, rounds = std::ceil(blocks / space.cores);
  choice.idle = rounds * space.cores / blocks;
  choice.seconds = choice.movement.bytes / space.bytesPerSecond;
  if (space.multiplicationsPerSecond > 0)
    choice.seconds = std::max(choice.seconds, choice.movement.multiplications / space.multiplicationsPerSecond);
  choice.seconds *= choice.idle;
  choice.block = std::move(block);
  return choice;
}

namespace {
constexpr size_t kCoarse = 12; ///< tiles of a loop that are tried before refining

class OrderSearch {
public:
  OrderSearch(const OperatorChain &chain, const SearchSpace &space, ArrayRef<double> times)
      : chain(chain), space(space), times(times) {
    for (unsigned loop = 0; loop < chain.loops.size(); ++loop)
      (chain.isBatch(loop) ? batch : free).push_back(loop);
  }

  std::optional<OrderChoice> search() {
    // Nothing is reused along batch loops: they are outermost, one index at a time.
    std::vector<unsigned> permuted = free;
    do {
      BlockOrder block;
      block.order = batch;
      append_range(block.order, permuted);
      block.tiles.resize(chain.loops.size());
      for (unsigned loop = 0; loop < chain.loops.size(); ++loop)
        block.tiles[loop] = smallest(loop);
      enumerate(block, 0);
      if (ofOrder)
        refine();
      ofOrder.reset();
    } while (std::next_permutation(permuted.begin(), permuted.end()));
    return std::move(best);
  }

private:
  int64_t extentOf(unsigned loop) const { return chain.loops[loop].extent; }
  int64_t least(unsigned loop) const { return space.least.empty() ? 1 : std::min(space.least[loop], extentOf(loop)); }
  bool isFixed(unsigned loop) const {
    return is_contained(batch, loop) || (chain.loops[loop].whole && !space.online);
  }
  int64_t smallest(unsigned loop) const {
    return is_contained(batch, loop) ? 1 : isFixed(loop) ? extentOf(loop) : least(loop);
  }

  /// Whether some tensor is moved again for each block of the loop: only then do sizes between least and whole matter.
  bool matters(const BlockOrder &block, unsigned loop) const {
    auto position = find(block.order, loop);
    return any_of(chain.tensors, [&](const ChainTensor &tensor) {
      return !tensor.uses(loop) &&
             std::any_of(position, block.order.end(), [&](unsigned inner) { return tensor.uses(inner); });
    });
  }

  /// Sizes that differ in how many blocks they make, thinned out.
  std::vector<int64_t> sizes(const BlockOrder &block, unsigned loop) const {
    int64_t extent = extentOf(loop), step = least(loop);
    if (isFixed(loop))
      return {smallest(loop)};
    std::vector<int64_t> all;
    if (matters(block, loop))
      for (int64_t trips = divideCeil(extent, step); trips > 1;) {
        int64_t size = withTrips(loop, trips);
        all.push_back(size);
        int64_t reached = divideCeil(extent, size);
        trips = std::min<int64_t>(reached - 1, std::floor(reached * std::pow(step / double(extent), 1.0 / kCoarse)));
      }
    else if (step < extent)
      all.push_back(step);
    all.push_back(extent);
    return all;
  }

  /// Footprints grow with every tile, so the least sizes of what is not decided yet show what cannot fit any more.
  void enumerate(BlockOrder &block, size_t depth) {
    if (movementOf(chain, block).memoryBytes > space.capacityBytes)
      return;
    if (depth == free.size()) {
      offer(weigh(chain, space, block, times), ofOrder);
      return;
    }
    unsigned loop = free[depth];
    int64_t before = block.tiles[loop];
    for (int64_t size : sizes(block, loop)) {
      block.tiles[loop] = size;
      enumerate(block, depth + 1);
    }
    block.tiles[loop] = before;
  }

  static auto merit(const OrderChoice &choice) {
    return std::tuple(choice.seconds, choice.movement.bytes, choice.movement.memoryBytes);
  }
  static bool offer(OrderChoice choice, std::optional<OrderChoice> &to) {
    if (to && merit(choice) >= merit(*to))
      return false;
    to = std::move(choice);
    return true;
  }

  /// Integer refinement: a block less along one loop, and if that does not fit a block more along another.
  void refine() {
    for (bool better = true; better;) {
      better = false;
      BlockOrder block = ofOrder->block;
      for (unsigned grown : free)
        for (unsigned shrunk : free)
          for (int64_t fewer : {1, 2})
            for (int64_t more : {0, 1, 2})
              better |= tryStep(block, grown, fewer, shrunk, more);
    }
    offer(*ofOrder, best);
  }

  bool tryStep(BlockOrder block, unsigned grown, int64_t fewer, unsigned shrunk, int64_t more) {
    if (isFixed(grown) || isFixed(shrunk) || (grown == shrunk && more > 0))
      return false;
    block.tiles[shrunk] = withTrips(shrunk, divideCeil(extentOf(shrunk), block.tiles[shrunk]) + more);
    block.tiles[grown] = withTrips(grown, divideCeil(extentOf(grown), block.tiles[grown]) - fewer);
    OrderChoice choice = weigh(chain, space, block, times);
    return choice.movement.memoryBytes <= space.capacityBytes && offer(std::move(choice), ofOrder);
  }

  /// The least tile that makes no more than so many blocks.
  int64_t withTrips(unsigned loop, int64_t trips) const {
    int64_t extent = extentOf(loop);
    return std::min<int64_t>(extent, alignTo(divideCeil(extent, std::max<int64_t>(trips, 1)), least(loop)));
  }

  const OperatorChain &chain;
  const SearchSpace &space;
  ArrayRef<double> times;
  std::vector<unsigned> batch, free;
  std::optional<OrderChoice> ofOrder, best;
};

/// The chain inside one block: the same with the block's tiles as extents.
OperatorChain insideBlock(OperatorChain chain, const BlockOrder &block) {
  for (auto [loop, tile] : zip(chain.loops, block.tiles))
    loop.extent = tile;
  return chain;
}
} // namespace

std::optional<OrderChoice> tilewright::searchOrder(const OperatorChain &chain, const SearchSpace &space,
                                                   ArrayRef<double> times) {
  return OrderSearch(chain, space, times).search();
}

std::optional<BlockSchedule> tilewright::scheduleChain(const OperatorChain &chain, const ChainMachine &machine,
                                                       ArrayRef<int64_t> least, bool online) {
  BlockSchedule schedule;
  OperatorChain level = chain;
  std::vector<double> times(chain.ops.size(), 1);
  double idle = 1;
  for (const CacheLevel &cache : reverse(machine.caches)) {
    bool outermost = schedule.levels.empty();
    SearchSpace space{cache.capacityBytes, least.vec(), outermost ? machine.cores : 1, cache.bytesPerSecond,
                      machine.multiplicationsPerSecond, online};
    std::optional<OrderChoice> choice = searchOrder(level, space, times);
    if (!choice)
      return std::nullopt;
    if (outermost)
      idle = choice->idle;
    double moving = choice->movement.bytes / cache.bytesPerSecond * idle;
    if (moving > schedule.seconds) {
      schedule.seconds = moving;
      schedule.bound = cache.name;
    }
    level = insideBlock(level, choice->block);
    times = choice->movement.blocks;
    schedule.levels.push_back({cache.name, std::move(*choice)});
  }
  if (!schedule.levels.empty() && machine.multiplicationsPerSecond > 0)
    schedule.arithmeticSeconds =
        schedule.levels.back().choice.movement.multiplications / machine.multiplicationsPerSecond * idle;
  if (schedule.arithmeticSeconds >= schedule.seconds) {
    schedule.seconds = schedule.arithmeticSeconds;
    schedule.bound = "arithmetic";
  }
  return schedule;
}

void BlockSchedule::print(const OperatorChain &chain, raw_ostream &os) const {
  for (const LevelChoice &level : levels) {
    os << level.name << ": ";
    level.choice.block.print(chain, os);
    os << " moves " << format("%.0f", level.choice.movement.bytes) << " B, keeps "
       << format("%.0f", level.choice.movement.memoryBytes) << " B; ";
  }
  os << format("%.3g us, bound by ", seconds * 1e6) << bound;
}

std::vector<OperatorChain> tilewright::separately(const OperatorChain &chain) {
  std::vector<OperatorChain> apart;
  for (const ChainOp &op : chain.ops) {
    OperatorChain one;
    std::vector<unsigned> place(chain.loops.size());
    for (unsigned loop : op.loops) {
      place[loop] = one.loops.size();
      one.loops.push_back({chain.loops[loop].name, chain.loops[loop].extent, false});
    }
    ChainOp alone{op.name, {}, {}, op.expr};
    for (unsigned loop : op.loops)
      alone.loops.push_back(place[loop]);
    for (unsigned number : op.tensors) {
      ChainTensor tensor = chain.tensors[number];
      tensor.isIO = true;
      if (number != op.tensors.back())
        tensor.crossings = 1;
      for (ChainIndex &index : tensor.dims) {
        llvm::erase_if(index, [&](const ChainTerm &term) { return !is_contained(op.loops, term.loop); });
        for (ChainTerm &term : index)
          term.loop = place[term.loop];
      }
      alone.tensors.push_back(one.tensors.size());
      one.tensors.push_back(std::move(tensor));
    }
    one.ops.push_back(std::move(alone));
    apart.push_back(std::move(one));
  }
  return apart;
}
