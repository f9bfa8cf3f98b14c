// The best other scope for every edge of a plan, its prediction, and what would make it the better one: what `explain`
// says about the choices of a planner.
#ifndef TILEWRIGHT_PLAN_FUSION_EDGEALTERNATIVES_H
#define TILEWRIGHT_PLAN_FUSION_EDGEALTERNATIVES_H

#include "passes/plan/fusion/FusionProblem.h"
#include "passes/plan/grid/PlanDraft.h"

namespace tilewright {

/// An edge between two expressions that kernels of Tilewright compute.
struct EdgeAlternative {
  unsigned edge; ///< its number in the graph
  tile::Scope scope = tile::Scope::launch;
  double seconds = 0; ///< predicted seconds of the group that has both ends, or of both groups or kernels
  tile::Scope other = tile::Scope::launch; ///< the other scope for which they take the least time
  std::optional<double> otherSeconds;      ///< seconds with the other scope; empty if no other scope is possible
  std::string reason; ///< why the other scope is impossible; empty if it is possible
  std::string flip;   ///< what would make the other scope the better one
};

/// Returns the edges in the order of the graph. The plan must have its kernels. Edges at scope `launch` and inside a
/// group are compared with each other's scopes, and those inside a group also with the other of `thread` and `block`.
/// Edges at scope `grid` are compared with two kernels.
std::vector<EdgeAlternative> alternativesOf(const FusionProblem &problem, const PlanDraft &plan);

} // namespace tilewright

#endif
