// MLIR diagnostics as plain data that outlives their context.
#ifndef TILEWRIGHT_CORE_DIAGNOSTICS_H
#define TILEWRIGHT_CORE_DIAGNOSTICS_H

#include "core/Core.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/support/Locations.h"

namespace tilewright {

/// While it lives, collects what is reported in a context instead of printing it.
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
