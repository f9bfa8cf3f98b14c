// What a planned part's contractions move between the levels of memory, in the order and tiles that their code has
// (Chimera 4.2 and 4.3), beside the least that any order would. Pure functions to plain structs.
#ifndef TILEWRIGHT_PLAN_TILING_CPU_CHAINMOVEMENT_H
#define TILEWRIGHT_PLAN_TILING_CPU_CHAINMOVEMENT_H

#include "passes/plan/tiling/cpu/BlockSearch.h"
#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"
#include <map>

namespace tilewright {

/// What a chain has of a machine: every level but the last is a cache, and the one below fills it. Cores share out
/// what they share.
ChainMachine chainMachine(const Target &target);

/// Whole register blocks: lanes along the last dim of each result, rows along the one before.
std::vector<int64_t> leastTiles(const OperatorChain &chain, const Target &target);

/// Terms of its sums that a contraction's code takes before it goes on to the next rows; 0: all. Where they all fit,
/// what rows are multiplied with is found in the core's own outer cache by each of them. Where they do not, this is the
/// optimum of the order lanes, terms, rows in closed form: sums cross once for each block, so blocks are as large as
/// fit. Where one block has all rows, a given matrix larger than that cache is read a few terms at a time from end to
/// end: terms are outside of lanes then.
int64_t kPerBlock(const TensorGraph &graph, const GroupRoot &root, const IterationSpace &space, const Target &target);

/// How often the kernel leaves one piece of a row for another row, of given matrices that come from beyond the cores'
/// own caches and that one block of rows reads once: for each term of a tile, or of a panel of lanes where terms do not
/// stream.
double runsOfStreams(const TensorGraph &graph, const IterationSpace &space, const Target &target);

/// The loops of a contraction's code inside a tile, outermost first, and how far each iteration goes: points of batch
/// dims, panels of lanes, blocks of terms (around those of lanes, if they stream), blocks of rows, then what is
/// reduced.
struct NestLoop {
  int64_t dim, step;   ///< of the contraction's domain
  bool blocks = false; ///< another loop of the dim goes over the points of a step
};
std::vector<NestLoop> contractionLoops(const TensorGraph &graph, const GroupRoot &root, const IterationSpace &space,
                                       const Target &target);

/// The contractions among a part's expressions: one chain of all of them, or each by itself.
std::vector<OperatorChain> chainsOf(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, const IterationSpace &space);

/// What they move together in the tiles and orders of the space, by cache, innermost first; `leastBytes` is not asked.
std::vector<LevelMovement> movementIn(const TensorGraph &graph, const IterationSpace &space,
                                      llvm::ArrayRef<OperatorChain> chains, const Target &target);

/// The least that chains move into each cache in any order, equal chains (those of repeated layers) searched once.
class LeastMovement {
public:
  explicit LeastMovement(const Target &target) : target(target) {}

  /// Bytes by cache, innermost first; empty where not even the least tiles fit.
  const std::vector<double> &of(const OperatorChain &chain);

private:
  const Target &target;
  std::map<std::vector<double>, std::vector<double>> known; ///< by form
};

/// What a part moves, with the least of any order; empty where nothing is contracted.
std::vector<LevelMovement> movementOfGroup(const TensorGraph &graph, const PlannedGroup &part, const Target &target,
                                          LeastMovement &least);

} // namespace tilewright

#endif
