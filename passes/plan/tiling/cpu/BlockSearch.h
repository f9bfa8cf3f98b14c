// The block order and tiles of a chain that move least (Chimera 4.2), and those of every memory level together (4.3).
// Pure functions to plain structs.
#ifndef TILEWRIGHT_PLAN_TILING_CPU_BLOCKSEARCH_H
#define TILEWRIGHT_PLAN_TILING_CPU_BLOCKSEARCH_H

#include "passes/cost/BlockMovement.h"
#include <optional>

namespace tilewright {

/// The optimum of a chain of two matmuls in the order m, l, k, n, over real numbers.
struct GemmChainOptimum {
  double m, l;  ///< tiles; those of n and k are `least`
  double moved; ///< DV
};

/// Chimera 4.2's closed form: T_M = T_L = sqrt(a^2 + MC) - a for tiles of n and k of a = `least`, in elements. Where
/// the result crosses more than once, T_M and T_L differ, and there is a closed form still: with x = T_M + a, y = T_L +
/// a the constraint is x y = MC + a^2 =: P, and minimising (K+N)/T_M + (K+cN)/T_L gives x = (P + r a) / (r + a) with r
/// = sqrt(P (K+cN) / (K+N)).
GemmChainOptimum gemmChainOptimum(double m, double n, double k, double l, double capacity, double least,
                                  double crossings = 1);

/// What a search may choose from.
struct SearchSpace {
  double capacityBytes = 0;
  std::vector<int64_t> least; ///< by loop: tiles are multiples of it, or whole; empty: 1
  int64_t cores = 1;          ///< that share out the blocks of the outermost parallel loops
  double bytesPerSecond = 1;
  double multiplicationsPerSecond = 0; ///< 0: free
};

struct OrderChoice {
  BlockOrder block;
  Movement movement;
  int64_t parallelBlocks = 1; ///< of the outermost parallel loops
  double idle = 1;            ///< time of the slowest core over the mean: 1 when all have equally many blocks
  double seconds = 0;         ///< of movement and arithmetic, the longer, with idle cores
};

/// Time of one order, by what moves and what is computed.
OrderChoice weigh(const OperatorChain &chain, const SearchSpace &space, BlockOrder block);

/// The quickest order, of equally quick ones that which moves least in fewest blocks, or nothing if not even the least
/// tiles fit. All permutations; for each the closed form where it has one, and tiles that matter to it from a coarse
/// grid, then refined one step at a time.
std::optional<OrderChoice> searchOrder(const OperatorChain &chain, const SearchSpace &space);

/// A cache, and how fast what lies below fills it.
struct CacheLevel {
  std::string name;
  double capacityBytes;  ///< for the blocks of one core
  double bytesPerSecond; ///< from the level below, all cores together
};

/// Innermost first.
struct ChainMachine {
  std::vector<CacheLevel> caches;
  int64_t cores = 1;
  double multiplicationsPerSecond = 0;
};

struct LevelChoice {
  std::string name;
  OrderChoice choice;
};

/// One order and tiles per level, whole ones of the level above in each, and what bounds the whole (equation 3).
struct BlockSchedule {
  std::vector<LevelChoice> levels; ///< innermost first
  double arithmeticSeconds = 0, seconds = 0;
  std::string bound; ///< a level's name, or "arithmetic"

  void print(const OperatorChain &chain, llvm::raw_ostream &os) const;
};

std::optional<BlockSchedule> scheduleChain(const OperatorChain &chain, const ChainMachine &machine,
                                           llvm::ArrayRef<int64_t> least);

} // namespace tilewright

#endif
