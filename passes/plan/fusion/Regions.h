// Regions of a graph for which the plans of the search have different kernels. Tuning measures them against each other:
// predictions of such plans are often within their error.
#ifndef TILEWRIGHT_PLAN_FUSION_REGIONS_H
#define TILEWRIGHT_PLAN_FUSION_REGIONS_H

#include "passes/plan/fusion/Explorers.h"

namespace tilewright {

/// A smallest set of ops that is a union of kernels in two plans, with the reshapes between them.
struct PlanRegion {
  std::vector<unsigned> ops; ///< in program order
  /// Plans for a function of the region's ops (planOfOps): that of the policy first, then others by their prediction,
  /// and last the plan that gives each op a kernel of its own, if it is another one.
  std::vector<Plan> plans;
};

/// Returns the regions in which the plan of the policy differs from a plan that `unified` considers, or from the one
/// that fuses nothing, each with at most `count` plans. Regions overlap where several plans differ. A region with ops
/// that one of the plans leaves to IREE has no entry, since only kernels of Tilewright can be measured. Plans that are
/// predicted to be hopeless have none, either.
OrDeclined<std::vector<PlanRegion>> regionsToMeasure(const TensorGraph &graph, const Target &target,
                                                 const PlanOptions &options, unsigned count);

} // namespace tilewright

#endif
