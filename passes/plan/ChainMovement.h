// What a planned part's contractions move between the levels of memory, in the order and tiles that their code has
// (Chimera 4.2 and 4.3), beside the least that any order would. Pure functions to plain structs.
#ifndef TILEWRIGHT_PLAN_CHAINMOVEMENT_H
#define TILEWRIGHT_PLAN_CHAINMOVEMENT_H

#include "passes/analysis/BlockSearch.h"
#include "passes/plan/GreedyPlanner.h"

namespace tilewright {

/// What a chain has of a machine: every level but the last is a cache, and the one below fills it. Cores share out
/// what they share.
ChainMachine chainMachine(const Target &target);

/// Whole register blocks: lanes along the last dim of each result, rows along the one before.
std::vector<int64_t> leastTiles(const OperatorChain &chain, const Target &target);

/// The loops of a contraction's code inside a tile, outermost first, and how far each iteration goes: points of batch
/// dims, panels of lanes, blocks of rows, then what is reduced.
struct NestLoop {
  int64_t dim, step; ///< of the contraction's domain
};
std::vector<NestLoop> contractionLoops(const TensorGraph &graph, const PartRoot &root, const IndexSpace &space,
                                       const Target &target);

/// By cache, innermost first; empty where the part's contractions form no chain.
std::vector<LevelMovement> movementOfPart(const TensorGraph &graph, const PlannedPart &part, const Target &target);

} // namespace tilewright

#endif
