#ifndef TILEWRIGHT_IREE_CAPABILITYCONDITION_H
#define TILEWRIGHT_IREE_CAPABILITYCONDITION_H

#include "mlir/IR/Builders.h"

namespace tilewright {

/// The condition of a `hal.executable.variant`: the device has at least this compute capability, 10 * major + minor.
void buildCapabilityCondition(mlir::OpBuilder &builder, mlir::Location loc, int64_t capability);

} // namespace tilewright

#endif
