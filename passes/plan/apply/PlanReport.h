// What was built and why, as JSON for people and for Python: the plan with the names, places and bytes of the ops it
// speaks of, and how much of the graph it covers.
#ifndef TILEWRIGHT_PLAN_APPLY_PLANREPORT_H
#define TILEWRIGHT_PLAN_APPLY_PLANREPORT_H

#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// Before the graph is rewritten: reads its ops.
llvm::json::Value reportPlan(const TensorGraph &graph, const Plan &plan);

} // namespace tilewright

#endif
