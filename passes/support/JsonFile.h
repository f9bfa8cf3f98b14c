// Output of a pass as a JSON file.
#ifndef TILEWRIGHT_SUPPORT_JSONFILE_H
#define TILEWRIGHT_SUPPORT_JSONFILE_H

#include "mlir/IR/Operation.h"
#include "llvm/Support/JSON.h"

namespace tilewright {

/// Writes the file, or emits an error at the op.
llvm::LogicalResult writeJson(mlir::Operation *op, llvm::StringRef path, const llvm::json::Value &value);

} // namespace tilewright

#endif
