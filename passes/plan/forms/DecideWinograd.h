// Decides whether a convolution is computed by fewer products of sums (normalize/Winograd.h).
#ifndef TILEWRIGHT_PLAN_FORMS_DECIDEWINOGRAD_H
#define TILEWRIGHT_PLAN_FORMS_DECIDEWINOGRAD_H

#include "passes/graph/FormChoice.h"
#include "passes/support/Declined.h"

namespace tilewright {

/// Returns the predicted seconds of the form with sums of so many lines of tiles together.
using SecondsOfLines = llvm::function_ref<OrDeclined<double>(int64_t lines)>;

/// Takes the form if its predicted seconds are clearly fewer than those of a contraction with windows. `all` are the
/// numbers of lines that are possible; the parameter `lines` is the fastest of those that are tried. `error` is the
/// part by which predictions of different kernels may differ although neither is faster.
FormChoice decideWinograd(llvm::ArrayRef<int64_t> all, SecondsOfLines secondsOf, const OrDeclined<double> &otherwise,
                          double error);

/// Returns why the form cannot be carried out with the parameters of a choice, or an empty string.
std::string whyNotWinograd(llvm::ArrayRef<int64_t> all, const FormChoice &choice);

} // namespace tilewright

#endif
