// Finds the places where a fusion group can be cut in two by a grid barrier. A group with few blocks, each of which
// computes whole rows or a whole attention, can use more SMs if the ops in front of the cut and those behind it have
// grids of their own. CutAtGrid predicts which cut pays. Everything here is a pure function.
#ifndef TILEWRIGHT_PLAN_GRID_BARRIERCUTS_H
#define TILEWRIGHT_PLAN_GRID_BARRIERCUTS_H

#include "passes/graph/TensorGraph.h"

namespace tilewright {

/// The pieces of a group, each in program order. The last piece is behind the barrier; the others are in front of it
/// and do not read each other.
using BarrierCut = std::vector<llvm::SmallVector<unsigned>>;

/// Returns two cuts for each contraction of the group, whose expressions are in program order: one in front of the
/// contraction, and one behind it and the elementwise ops that follow it.
std::vector<BarrierCut> barrierCuts(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);

} // namespace tilewright

#endif
