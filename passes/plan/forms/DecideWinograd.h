// Decides whether a convolution is computed by fewer products of sums (normalize/Winograd.h).
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEWINOGRAD_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEWINOGRAD_H

#include "passes/graph/FormChoice.h"
#include "passes/plan/ir/Declined.h"

namespace tilewright {

/// Takes the form if its predicted seconds are clearly fewer than those of a contraction with windows. `error` is the
/// part by which predictions of different kernels may differ although neither is faster.
FormChoice decideWinograd(const OrDeclined<double> &seconds, const OrDeclined<double> &otherwise, double error);

} // namespace tilewright

#endif
