// Where a part can be cut in two, with a barrier of the grid between: blocks that compute all of a row, or of an
// attention, are few, and the ops in front of a cut and behind it each have a grid of their own. Which cut pays is for
// CutAtGrid to predict. Pure.
#ifndef TILEWRIGHT_PLAN_GRID_BARRIERCUTS_H
#define TILEWRIGHT_PLAN_GRID_BARRIERCUTS_H

#include "passes/graph/TensorGraph.h"

namespace tilewright {

/// The pieces of a part, each in program order: those in front of the barrier, of which none reads another, and last
/// the one behind it.
using BarrierCut = std::vector<llvm::SmallVector<unsigned>>;

/// Two for each contraction of the part (expressions in program order): in front of it, and behind what is elementwise
/// behind it.
std::vector<BarrierCut> barrierCuts(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);

} // namespace tilewright

#endif
