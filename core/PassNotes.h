// Notes of the running passes in a file. A caller that ends this process because it takes too long reads them and can
// say which pass took the time.
#ifndef TILEWRIGHT_CORE_PASSNOTES_H
#define TILEWRIGHT_CORE_PASSNOTES_H

#include "mlir/Pass/PassInstrumentation.h"

#include <memory>

namespace tilewright {

/// Returns an instrumentation that writes notes to the file given to `notePassesIn`, or null if there is no file.
std::unique_ptr<mlir::PassInstrumentation> createPassNotes();

} // namespace tilewright

#endif
