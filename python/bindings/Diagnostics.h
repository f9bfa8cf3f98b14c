// MLIR diagnostics as plain data that outlives their context.
#ifndef TILEWRIGHT_PYTHON_DIAGNOSTICS_H
#define TILEWRIGHT_PYTHON_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include <string>
#include <vector>

namespace tilewright {

struct PlainDiagnostic {
  std::string severity; ///< "error", "warning", "remark" or "note"
  std::string message;
  std::string location; ///< as describe() words it
  std::string operation; ///< name of the op at fault; empty when the message names none
  std::vector<PlainDiagnostic> notes;
};

/// A location for people: the name that a front end gave, else file:line:column; empty when unknown.
std::string describe(mlir::Location location);

/// While it lives, collects what is reported in a context instead of printing it.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);
  std::vector<PlainDiagnostic> take() { return std::move(collected); }

private:
  std::vector<PlainDiagnostic> collected;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace tilewright

#endif
