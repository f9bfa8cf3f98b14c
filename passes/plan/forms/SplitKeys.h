// Sums of exponentials relative to a maximum, in two phases: the dim along which they are summed (the keys of an
// attention) is cut into parts, each with a maximum and sums of its own, and those are combined relative to the maximum
// of all, each part's sums multiplied by exp(its maximum - that of all) (flash decoding). With few rows, parts are what
// fills a GPU.
#ifndef TILEWRIGHT_PLAN_FORMS_SPLITKEYS_H
#define TILEWRIGHT_PLAN_FORMS_SPLITKEYS_H

#include "passes/plan/forms/KeyGroup.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

inline constexpr llvm::StringLiteral kPartsOfRowsForm = "sums relative to maxima of parts";

/// Cuts the group into parts. The ops that it stood for are left without uses.
void splitKeys(const TensorGraph &graph, const KeyGroup &group, int64_t parts, llvm::StringRef form);

} // namespace tilewright

#endif
