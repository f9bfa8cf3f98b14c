// Decides how blocks on a GPU compute the contractions of a plan (layout/GemmChoice.h), as the last step of planning,
// when tiles, threads and scopes are known. A plan from a file may state the choice of each contraction; it is then
// checked against the same facts.
#ifndef TILEWRIGHT_PLAN_TILING_GPU_PLANNEDGEMMS_H
#define TILEWRIGHT_PLAN_TILING_GPU_PLANNEDGEMMS_H

#include "passes/layout/GemmTiling.h"
#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"

namespace tilewright {

/// Chooses how blocks compute each contraction of a plan that does not state it yet. `groupOf` returns the group that
/// the planner made of an op; if it is null, the plan is from a file, and K is not sliced.
void chooseGemms(Plan &plan, const TensorGraph &graph, const Target &target,
                 llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf = nullptr);

/// Sets the text for the reader about copies of operands that are narrower than 16 bytes, or wider.
void describeCopies(Plan &plan, const TensorGraph &graph, const Target &target);

/// Returns why a block cannot compute a contraction as the plan states, with the place of the contraction; or an empty
/// string.
std::string whyNotComputed(const Plan &plan, const TensorGraph &graph, const Target &target);

/// Returns the layout of a contraction as the plan states it; nothing if it is none or the plan does not fit.
std::optional<GemmTiling> plannedTiling(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                        const GroupPlan &group, const OpPlan &op, const Target &target);

/// A contraction of a group, with its layout.
struct PlannedContraction {
  unsigned op;
  GemmTiling tiling;
  int64_t steps;  ///< steps along K of a tile
  bool isWalked; ///< true if it is in the loop over blocks of a walked dim
};

/// Returns the contractions of a group that have a layout, in the order in which a block computes them.
std::vector<PlannedContraction> plannedContractions(const Plan &plan, const TensorGraph &graph,
                                                    const KernelPlan &kernel, const GroupPlan &group,
                                                    const Target &target);

/// Returns the registers to assume for each thread of the kernel's blocks: those that its contractions need, but at
/// least kUnknownRegisters.
int64_t countedRegisters(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel, const Target &target);

} // namespace tilewright

#endif
