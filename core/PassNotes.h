// Notes of the passes that are running, in a file, for whoever outlives this process: a caller that ends it because it
// takes too long can say where.
#ifndef TILEWRIGHT_CORE_PASSNOTES_H
#define TILEWRIGHT_CORE_PASSNOTES_H

#include "mlir/Pass/PassInstrumentation.h"

#include <memory>

namespace tilewright {

/// Writes notes of the passes of a manager to the file of `notePassesIn`; null where there is none.
std::unique_ptr<mlir::PassInstrumentation> createPassNotes();

} // namespace tilewright

#endif
