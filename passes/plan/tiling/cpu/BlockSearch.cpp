#include "passes/plan/tiling/cpu/BlockSearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <numeric>
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

static OrderChoice weigh(const OperatorChain &chain, const SearchSpace &space, BlockOrder block, Movement movement) {
  OrderChoice choice;
  choice.movement = std::move(movement);
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

OrderChoice tilewright::weigh(const OperatorChain &chain, const SearchSpace &space, BlockOrder block) {
  Movement movement = movementOf(chain, block);
  return ::weigh(chain, space, std::move(block), std::move(movement));
}

namespace {
// Bounds of the search, chosen by hand; they describe no machine.
constexpr double kCombinations = 2500; ///< number of tilings tried for each order before refinement
constexpr double kSlack = 1.03;        ///< upper bound on the gain of refinement

class OrderSearch {
public:
  OrderSearch(const OperatorChain &chain, const SearchSpace &space) : chain(chain), space(space), model(chain) {
    for (unsigned loop = 0; loop < chain.loops.size(); ++loop)
      (chain.isBatch(loop) ? batch : chain.isWindow(loop) ? windows : free).push_back(loop);
  }

  std::optional<OrderChoice> search() {
    // Batch loops reuse nothing, so they are outermost with tiles of one index. Windows are whole in a tile. Loops of
    // one trip around all operators may stand anywhere, so they are innermost.
    std::vector<unsigned> permuted, still;
    for (unsigned loop : free)
      (hasOneTrip(loop) ? still : permuted).push_back(loop);
    do {
      BlockOrder block;
      block.order = batch;
      append_range(block.order, permuted);
      append_range(block.order, still);
      append_range(block.order, windows);
      block.tiles.resize(chain.loops.size());
      for (unsigned loop = 0; loop < chain.loops.size(); ++loop)
        block.tiles[loop] = smallest(loop);
      offerClosedForm(block);
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
  bool hasOneTrip(unsigned loop) const {
    return least(loop) == extentOf(loop) && chain.runs(loop, chain.ops.size() - 1) && !chain.loops[loop].whole;
  }
  int64_t smallest(unsigned loop) const {
    return is_contained(batch, loop) ? 1 : is_contained(windows, loop) ? extentOf(loop) : least(loop);
  }

  /// Tries the closed-form optimum first, rounded down, for two matmuls in the order m, l, k, n.
  void offerClosedForm(BlockOrder block) {
    if (chain.ops.size() != 2 || free.size() != 4 || !windows.empty())
      return;
    auto first = block.order.begin() + batch.size();
    unsigned m = first[0], l = first[1], k = first[2], n = first[3];
    auto isOf = [&](unsigned loop, size_t op) { return is_contained(chain.ops[op].loops, loop); };
    if (!chain.isParallel(m) || !isOf(l, 0) || !isOf(l, 1) || isOf(k, 1) || isOf(n, 0))
      return;
    const ChainTensor &result = chain.tensors[chain.ops[1].tensors.back()];
    GemmChainOptimum optimum =
        gemmChainOptimum(extentOf(m), extentOf(n), extentOf(k), extentOf(l), space.capacityBytes / result.elementBytes,
                         std::max(least(k), least(n)), result.crossings);
    for (auto [loop, tile] : {std::pair(m, optimum.m), std::pair(l, optimum.l)})
      block.tiles[loop] =
          std::clamp<int64_t>(static_cast<int64_t>(tile) / least(loop) * least(loop), least(loop), extentOf(loop));
    offerIfFits(block);
  }

  /// Offers an order for the current permutation, unless its tiles do not fit. Returns true if it is the best so far.
  bool offerIfFits(const BlockOrder &block, bool byBlocks = false) {
    Movement movement = model.of(block);
    return movement.memoryBytes <= space.capacityBytes &&
           offer(weigh(chain, space, block, std::move(movement)), ofOrder, byBlocks);
  }

  /// Returns true if some tensor is moved again for each block of the loop. Otherwise only the smallest and the whole
  /// tile matter.
  bool matters(const BlockOrder &block, unsigned loop) const {
    auto position = find(block.order, loop);
    return any_of(chain.tensors, [&](const ChainTensor &tensor) {
      return !tensor.uses(loop) &&
             std::any_of(position, block.order.end(), [&](unsigned inner) { return tensor.uses(inner); });
    });
  }

  /// Returns sizes that give different numbers of blocks, thinned out.
  std::vector<int64_t> sizes(const BlockOrder &block, unsigned loop) const {
    int64_t extent = extentOf(loop), step = least(loop);
    std::vector<int64_t> all;
    auto matter = [&](unsigned other) { return matters(block, other); };
    double count = std::pow(kCombinations, 1.0 / std::max<int64_t>(1, count_if(free, matter)));
    if (matter(loop))
      for (int64_t trips = divideCeil(extent, step); trips > 1;) {
        int64_t size = withTrips(loop, trips);
        all.push_back(size);
        int64_t reached = divideCeil(extent, size);
        trips = std::min<int64_t>(reached - 1,
                                  std::floor(reached * std::pow(static_cast<double>(step) / extent, 1 / count)));
      }
    else if (step < extent)
      all.push_back(step);
    all.push_back(extent);
    return all;
  }

  /// Tries all tiles of the loops from `depth` on. Footprints grow with every tile, so a branch ends if the smallest
  /// sizes of these loops do not fit.
  void enumerate(BlockOrder &block, size_t depth) {
    if (depth == free.size()) {
      offerIfFits(block);
      return;
    }
    if (model.of(block).memoryBytes > space.capacityBytes)
      return;
    if (best && leastBytes(block, depth) > kSlack * best->movement.bytes)
      return;
    unsigned loop = free[depth];
    int64_t before = block.tiles[loop];
    for (int64_t size : sizes(block, loop)) {
      block.tiles[loop] = size;
      enumerate(block, depth + 1);
    }
    block.tiles[loop] = before;
  }

  /// Returns a lower bound on the traffic of all tilings of this branch, since larger tiles never move more.
  double leastBytes(BlockOrder block, size_t depth) const {
    for (unsigned loop : drop_begin(free, depth))
      block.tiles[loop] = extentOf(loop);
    return model.of(block).bytes;
  }

  /// Compares choices by time, then by traffic, then by number of blocks. The number of blocks counts last: with fewer
  /// blocks, tiles of loops that move nothing would take memory from those that move data.
  static bool isBetter(const OrderChoice &choice, const OrderChoice &than, bool byBlocks) {
    auto merit = [&](const OrderChoice &of) {
      ArrayRef<double> blocks = of.movement.blocks;
      return std::tuple(of.seconds, of.movement.bytes,
                        byBlocks ? std::accumulate(blocks.begin(), blocks.end(), 0.0) : 0);
    };
    return merit(choice) < merit(than);
  }
  static bool offer(OrderChoice choice, std::optional<OrderChoice> &to, bool byBlocks = false) {
    if (to && !isBetter(choice, *to, byBlocks))
      return false;
    to = std::move(choice);
    return true;
  }

  /// Refines in integers: it removes one or two blocks along one loop and, if that does not fit, adds blocks along
  /// another.
  void refine() {
    for (bool byBlocks : {false, true})
      for (bool better = true; better;) {
        better = false;
        BlockOrder block = ofOrder->block;
        for (unsigned grown : free)
          for (unsigned shrunk : free)
            for (int64_t fewer : {1, 2})
              for (int64_t more : {0, 1, 2})
                better |= tryStep(block, grown, fewer, shrunk, more, byBlocks);
      }
    offer(*ofOrder, best, /*byBlocks=*/true);
  }

  bool tryStep(BlockOrder block, unsigned grown, int64_t fewer, unsigned shrunk, int64_t more, bool byBlocks) {
    if (grown == shrunk && more > 0)
      return false;
    block.tiles[shrunk] = withTrips(shrunk, divideCeil(extentOf(shrunk), block.tiles[shrunk]) + more);
    block.tiles[grown] = withTrips(grown, divideCeil(extentOf(grown), block.tiles[grown]) - fewer);
    return offerIfFits(block, byBlocks);
  }

  /// Returns the smallest tile that makes at most `trips` blocks.
  int64_t withTrips(unsigned loop, int64_t trips) const {
    int64_t extent = extentOf(loop);
    return std::min<int64_t>(extent, alignTo(divideCeil(extent, std::max<int64_t>(trips, 1)), least(loop)));
  }

  const OperatorChain &chain;
  const SearchSpace &space;
  const MovementModel model;
  std::vector<unsigned> batch, free, windows;
  std::optional<OrderChoice> ofOrder, best;
};
} // namespace

std::optional<OrderChoice> tilewright::searchOrder(const OperatorChain &chain, const SearchSpace &space) {
  return OrderSearch(chain, space).search();
}

std::optional<BlockSchedule> tilewright::scheduleChain(const OperatorChain &chain, const ChainMachine &machine,
                                                       ArrayRef<int64_t> least) {
  BlockSchedule schedule;
  // The traffic of a level depends on its own tiles only (equation 2), so minimizing each level also minimizes the
  // slowest.
  SearchSpace space{0, least.vec(), 1, 1, machine.multiplicationsPerSecond};
  for (auto [number, cache] : enumerate(machine.caches)) {
    space.capacityBytes = cache.capacityBytes;
    space.bytesPerSecond = cache.bytesPerSecond;
    space.cores = number + 1 == machine.caches.size() ? machine.cores : 1;
    std::optional<OrderChoice> choice = searchOrder(chain, space);
    if (!choice)
      return std::nullopt;
    space.least = choice->block.tiles;
    schedule.levels.push_back({cache.name, std::move(*choice)});
  }
  double idle = schedule.levels.empty() ? 1 : schedule.levels.back().choice.idle, multiplications = 0;
  for (auto [level, cache] : zip(schedule.levels, machine.caches)) {
    multiplications = std::max(multiplications, level.choice.movement.multiplications);
    double moving = level.choice.movement.bytes / cache.bytesPerSecond * idle;
    if (moving > schedule.seconds) {
      schedule.seconds = moving;
      schedule.bound = level.name;
    }
  }
  if (machine.multiplicationsPerSecond > 0)
    schedule.arithmeticSeconds = multiplications / machine.multiplicationsPerSecond * idle;
  if (schedule.arithmeticSeconds >= schedule.seconds) {
    schedule.seconds = schedule.arithmeticSeconds;
    schedule.bound = kArithmetic.str();
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
