// Searches the block order and tiles of a chain of contractions that move the fewest bytes, for one memory level
// (Chimera 4.2) and for all levels together (4.3). Everything here is a pure function.
#ifndef TILEWRIGHT_PLAN_TILING_CPU_BLOCKSEARCH_H
#define TILEWRIGHT_PLAN_TILING_CPU_BLOCKSEARCH_H

#include "passes/cost/BlockMovement.h"
#include "passes/cost/TrafficCost.h"
#include <optional>

namespace tilewright {

/// The real-valued optimum of a chain of two matmuls in the order m, l, k, n.
struct GemmChainOptimum {
  double m, l;  ///< tiles of m and l; those of n and k are `least`
  double moved; ///< elements moved (DV in the paper)
};

/// Computes Chimera 4.2's closed form: T_M = T_L = sqrt(a^2 + MC) - a for tiles of n and k of a = `least`, in elements.
/// If the result crosses the level boundary more than once (c = `crossings`), T_M and T_L differ, but a closed form
/// exists: with x = T_M + a and y = T_L + a the constraint is x y = MC + a^2 =: P, and minimizing (K+N)/T_M +
/// (K+cN)/T_L gives x = (P + r a) / (r + a) with r = sqrt(P (K+cN) / (K+N)).
GemmChainOptimum gemmChainOptimum(double m, double n, double k, double l, double capacity, double least,
                                  double crossings = 1);

/// The limits and rates of a search.
struct SearchSpace {
  double capacityBytes = 0;
  std::vector<int64_t> least; ///< unit of each loop's tiles, unless a tile is whole; empty: 1
  int64_t cores = 1;          ///< cores that share the blocks of the outermost parallel loops
  double bytesPerSecond = 1;
  double multiplicationsPerSecond = 0; ///< 0: arithmetic is free
};

struct OrderChoice {
  BlockOrder block;
  Movement movement;
  int64_t parallelBlocks = 1; ///< number of blocks of the outermost parallel loops
  double idle = 1;            ///< time of the slowest core over the mean; 1 if all have equally many blocks
  double seconds = 0;         ///< the longer of movement and arithmetic, idle cores included
};

/// Returns one order with its movement and its predicted time.
OrderChoice weigh(const OperatorChain &chain, const SearchSpace &space, BlockOrder block);

/// Returns the fastest order. Among equally fast orders it prefers the least traffic, then the fewest blocks. Returns
/// nothing if not even the smallest tiles fit. The search tries all permutations. For each one it tries the closed
/// form, if there is one, and a coarse grid of tiles, and refines the best of them step by step.
std::optional<OrderChoice> searchOrder(const OperatorChain &chain, const SearchSpace &space);

/// A cache, and the rate at which the level below fills it.
struct CacheLevel {
  std::string name;
  double capacityBytes;  ///< capacity for the blocks of one core
  double bytesPerSecond; ///< bandwidth of the level below, for all cores together
};

/// The caches of a machine, innermost first.
struct ChainMachine {
  std::vector<CacheLevel> caches;
  int64_t cores = 1;
  double multiplicationsPerSecond = 0;
};

struct LevelChoice {
  std::string name;
  OrderChoice choice;
};

/// The order and tiles of each level, and the resource that bounds the chain (equation 3). Tiles of a level consist of
/// whole tiles of the next inner level.
struct BlockSchedule {
  std::vector<LevelChoice> levels; ///< innermost first
  double arithmeticSeconds = 0, seconds = 0;
  std::string bound; ///< name of a level, or kArithmetic

  void print(const OperatorChain &chain, llvm::raw_ostream &os) const;
};

std::optional<BlockSchedule> scheduleChain(const OperatorChain &chain, const ChainMachine &machine,
                                           llvm::ArrayRef<int64_t> least);

} // namespace tilewright

#endif
