// The condition with which IREE's runtime chooses between executable variants for several GPUs.
#ifndef TILEWRIGHT_IREE_CAPABILITYCONDITION_H
#define TILEWRIGHT_IREE_CAPABILITYCONDITION_H

#include "mlir/IR/Builders.h"

namespace tilewright {

/// Builds the condition of a `hal.executable.variant`, which holds if the device has at least this compute capability,
/// 10 * major + minor.
void buildCapabilityCondition(mlir::OpBuilder &builder, mlir::Location loc, int64_t capability);

} // namespace tilewright

#endif
