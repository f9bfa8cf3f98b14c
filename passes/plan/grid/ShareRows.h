// Lets blocks share the rows that a reduction after a contraction needs (a norm of a projection, a softmax of scores),
// as in Souffle, figure 1c. Each block keeps its tile of the contraction's result on chip and exchanges partial
// results of the rows with other blocks, instead of storing the tile and reading whole rows behind the barrier.
#ifndef TILEWRIGHT_PLAN_GRID_SHAREROWS_H
#define TILEWRIGHT_PLAN_GRID_SHAREROWS_H

#include "passes/plan/grid/GridContext.h"

namespace tilewright {

/// Makes one group of a contraction in this kernel and a group in `other` that reduces rows of its result, if the kernel
/// is then predicted to be clearly faster. Takes the fastest such kernel. If the two kernels differ, they also become
/// one, at the smaller index. Returns false if there is no such kernel; the reasons are in the decisions.
bool shareRows(const GridContext &context, size_t kernel, size_t other, Decisions &decisions);

} // namespace tilewright

#endif
