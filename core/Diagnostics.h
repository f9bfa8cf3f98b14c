// Converts MLIR diagnostics to plain data that outlives their context.
#ifndef TILEWRIGHT_CORE_DIAGNOSTICS_H
#define TILEWRIGHT_CORE_DIAGNOSTICS_H

#include "core/Core.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/support/Locations.h"

namespace tilewright {

/// Collects the diagnostics of a context instead of printing them, as long as it exists.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);
  Diagnostics take() { return std::move(collected); }

private:
  Diagnostics collected;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace tilewright

#endif
