// Splits sums of exponentials relative to a maximum into two phases (flash decoding). The dim along which they are
// summed, the keys of an attention, is cut into parts, each with its own maximum and sums. The second phase multiplies
// the sums of each part by exp(maximum of the part - maximum of all parts) and adds them up. If there are few rows, the
// parts fill the GPU.
#ifndef TILEWRIGHT_NORMALIZE_FORMS_SPLITKEYS_H
#define TILEWRIGHT_NORMALIZE_FORMS_SPLITKEYS_H

#include "passes/normalize/forms/KeyGroup.h"

#include "mlir/IR/Builders.h"

namespace tilewright {


/// Splits the group into parts. The original ops are left without uses.
void splitKeys(const TensorGraph &graph, const KeyGroup &group, int64_t parts);

} // namespace tilewright

#endif
