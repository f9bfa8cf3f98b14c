// Registration of dialects, passes and pipelines for tools.
#ifndef TILEWRIGHT_PIPELINES_H
#define TILEWRIGHT_PIPELINES_H

#include "mlir/IR/DialectRegistry.h"

namespace tilewright {

/// Registers every dialect that the pipelines read or produce.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers Tilewright's passes, the upstream passes that pipelines use, and the pipelines.
void registerAllPassesAndPipelines();

} // namespace tilewright

#endif
