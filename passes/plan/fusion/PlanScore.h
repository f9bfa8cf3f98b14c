// Compares plans of one problem by their predictions.
#ifndef TILEWRIGHT_PLAN_FUSION_PLANSCORE_H
#define TILEWRIGHT_PLAN_FUSION_PLANSCORE_H

#include "passes/plan/fusion/FusionProblem.h"
#include "passes/plan/grid/PlanDraft.h"

namespace tilewright {

/// Predictions for all that a plan's problem is about: its kernels, and what it leaves to IREE although Tilewright may
/// compute it.
struct PlanScore {
  double seconds = 0, bytes = 0;
  int64_t launches = 0;

  /// Returns true if the plan is better: fewer seconds or, if they are equal within kTie, fewer bytes or, if these are
  /// equal, fewer launches.
  bool isBetterThan(const PlanScore &other) const;
};

/// Predicted times differ if they do so by more than this part.
inline constexpr double kTie = 1e-4;

/// Returns the score of a draft that has its kernels. `mayTake` are the expressions that Tilewright may compute, in
/// program order. Those that the plan leaves are priced as kernels of Tilewright for the dispatches that IREE makes of
/// them.
PlanScore scoreOf(const FusionProblem &problem, const PlanDraft &plan, llvm::ArrayRef<unsigned> mayTake);

} // namespace tilewright

#endif
