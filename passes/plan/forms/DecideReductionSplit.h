// Decides whether a reduction is faster in two phases than in one, and into how many parts it is cut. The planner
// predicts both.
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEREDUCTIONSPLIT_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEREDUCTIONSPLIT_H

#include "passes/normalize/TwoPhaseReduction.h"
#include "passes/target/Target.h"

namespace tilewright {

/// Tries to cut the reduced dims of a reduction that can be split, outermost first, into more and more parts. `gridSync`
/// is true if a grid barrier may separate the phases.
FormChoice decideSplit(mlir::linalg::GenericOp reduction, const Target &target, bool gridSync);

} // namespace tilewright

#endif
