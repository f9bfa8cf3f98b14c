#ifndef TILEWRIGHT_IREE_RESULTSTORAGE_H
#define TILEWRIGHT_IREE_RESULTSTORAGE_H

#include "mlir/IR/BuiltinOps.h"

namespace tilewright {
/// Has large results of dispatches made in memory of the device's allocator, which may keep it for the next call. IREE
/// takes results from the queue, and `local-task` fills what does not fit into its pools with zeros first.
void storeLargeResults(mlir::ModuleOp module);
} // namespace tilewright

#endif
