// Reports a plan and its reasons as JSON, for people and for Python. The report adds names, locations and bytes of the
// ops to the plan, and states how much of the graph it covers.
#ifndef TILEWRIGHT_PLAN_APPLY_PLANREPORT_H
#define TILEWRIGHT_PLAN_APPLY_PLANREPORT_H

#include "passes/plan/ir/Plan.h"

namespace tilewright {

/// Returns the report. It reads the ops of the graph, so it must be called before the graph is rewritten.
llvm::json::Value reportPlan(const TensorGraph &graph, const Plan &plan);

} // namespace tilewright

#endif
