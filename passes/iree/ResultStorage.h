// Allocates large results of a program from the device's allocator.
#ifndef TILEWRIGHT_IREE_RESULTSTORAGE_H
#define TILEWRIGHT_IREE_RESULTSTORAGE_H

#include "mlir/IR/BuiltinOps.h"

namespace tilewright {
/// Allocates large results of dispatches from the device's allocator, which may reuse the memory in the next call. IREE
/// allocates results from the queue, and `local-task` fills those that do not fit into its pools with zeros first.
void storeLargeResults(mlir::ModuleOp module);
} // namespace tilewright

#endif
