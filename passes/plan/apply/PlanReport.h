// Reports a plan and its reasons as JSON, for people and for Python. The report adds names, locations and bytes of the
// ops to the plan, and states how much of the graph it covers.
#ifndef TILEWRIGHT_PLAN_APPLY_PLANREPORT_H
#define TILEWRIGHT_PLAN_APPLY_PLANREPORT_H

#include "passes/plan/ir/PlanLoops.h"

#include "mlir/IR/AsmState.h"

namespace tilewright {

/// Returns the report on the plan of a function, of whose blocks these are the graphs. It reads the ops of the graphs,
/// so it must be called before they are rewritten.
llvm::json::Object reportPlan(llvm::ArrayRef<BlockGraph> blocks, const Plan &plan);

/// Returns an op's name in the model, as far as its location has it. `state` is the printer's.
std::string locationOf(mlir::Operation *op, mlir::AsmState &state);

} // namespace tilewright

#endif
