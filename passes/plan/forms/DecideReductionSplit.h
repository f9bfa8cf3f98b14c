// Into how many parts a reduction is cut, and whether two phases are faster than one: the planner predicts both.
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEREDUCTIONSPLIT_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEREDUCTIONSPLIT_H

#include "passes/normalize/TwoPhaseReduction.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Tries cuts of the reduced dims, outermost first, into more and more parts.
ReductionSplit decideSplit(mlir::linalg::GenericOp reduction, const Target &target, bool gridSync);

} // namespace tilewright

#endif
