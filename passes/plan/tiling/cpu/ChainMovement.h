// Predicts the bytes that the contractions of a planned group move between memory levels with their code's loop order
// and tiles (Chimera 4.2 and 4.3), and the lower bound over all orders. Everything here is a pure function.
#ifndef TILEWRIGHT_PLAN_TILING_CPU_CHAINMOVEMENT_H
#define TILEWRIGHT_PLAN_TILING_CPU_CHAINMOVEMENT_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"
#include "passes/plan/tiling/cpu/BlockSearch.h"

namespace tilewright {

/// Returns the caches of the target as a chain sees them. Every level but the last is a cache, which the level below
/// fills. Cores divide a shared cache evenly.
ChainMachine chainMachine(const Target &target);

/// Returns the smallest tiles: whole register blocks, with vectors along the last dim of each result and rows along the
/// one before.
std::vector<int64_t> leastTiles(const OperatorChain &chain, const Target &target);

/// Returns the K of one block of a contraction's code, or 0 if K is not blocked. If all of K fits, the private outer
/// cache keeps the rhs panel for every block of rows. If it does not, blocks are as large as possible, since
/// accumulators are loaded and stored once per block; this is the closed-form optimum of the order n, k, m. If one
/// block of rows covers M and rhs is larger than that cache, rhs is streamed: its rows are read from end to end, a few
/// at a time, and the loop over K encloses the loop over N.
int64_t kPerBlock(const TensorGraph &graph, const GroupRoot &root, const IterationSpace &space, const Target &target);

/// Returns how often the kernel jumps from one row to another in rhs matrices that are not in a private cache and that
/// a single block of rows reads once. It jumps for each row of a tile if rhs is streamed, else for each row of a panel.
double runsOfStreams(const TensorGraph &graph, const IterationSpace &space, const Target &target);

/// Returns the pieces of contiguous elements that the kernel's tiles read of images through windows, if those are not in
/// a private cache.
double piecesOfWindows(const TensorGraph &graph, const IterationSpace &space, const Target &target);

/// A loop of a contraction's code inside a tile. The loops are, outermost first: batch dims by single points, N by
/// panels, K by blocks (outside N if rhs is streamed), M by blocks of rows, then the reduced dims.
struct NestLoop {
  int64_t dim, step;   ///< dim of the contraction's domain, and its step
  bool blocks = false; ///< true if another loop of the same dim iterates inside a step
};
std::vector<NestLoop> contractionLoops(const TensorGraph &graph, const GroupRoot &root, const IterationSpace &space,
                                       const Target &target);

/// Returns the contractions of a group: one chain of all of them if possible, else a chain for each one.
std::vector<OperatorChain> chainsOf(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs,
                                    const IterationSpace &space);

/// Returns the bytes that the chains move with the tiles and orders of the space, by cache, innermost first. It does
/// not set `leastBytes`.
std::vector<LevelMovement> movementIn(const TensorGraph &graph, const IterationSpace &space,
                                      llvm::ArrayRef<OperatorChain> chains, const Target &target);

/// Returns the bytes that a group moves, as `movementIn` does; empty if it has no contractions.
std::vector<LevelMovement> movementOfGroup(const TensorGraph &graph, const PlannedGroup &group, const Target &target);

/// Returns, for each chain, the fewest bytes that it moves into each cache in any order, innermost first; nothing if not
/// even the smallest tiles fit. Equal chains, such as repeated layers, are searched once, and others in parallel.
std::vector<std::vector<double>> leastMovement(llvm::ArrayRef<OperatorChain> chains, const Target &target,
                                               mlir::MLIRContext *context);

} // namespace tilewright

#endif
