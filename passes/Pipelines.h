// Registration of dialects, passes and pipelines for tools.
#ifndef TILEWRIGHT_PIPELINES_H
#define TILEWRIGHT_PIPELINES_H

#include "mlir/IR/DialectRegistry.h"

namespace tilewright {

class Backend;

/// Registers the backends of CPUs and of CUDA's GPUs, unless they are. Whoever plans or compiles needs them.
void registerBackends();

/// Registers every dialect that the pipelines read or produce, and the backends.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers the pipelines of a backend: "tilewright-<name>" compiles a model, and others its parts.
void registerPipelinesOf(const Backend &backend);

/// Registers Tilewright's passes, the upstream passes that pipelines use, and the pipelines of all backends.
void registerAllPassesAndPipelines();

} // namespace tilewright

#endif
