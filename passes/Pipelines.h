#ifndef TILEWRIGHT_PIPELINES_H
#define TILEWRIGHT_PIPELINES_H

#include "mlir/IR/DialectRegistry.h"

namespace tilewright {

/// Every dialect that the pipelines read or make.
void registerDialects(mlir::DialectRegistry &registry);

/// Our passes, the upstream passes that the pipelines use, and the pipelines.
void registerAllPassesAndPipelines();

} // namespace tilewright

#endif
