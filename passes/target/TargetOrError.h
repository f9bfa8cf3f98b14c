// The target that a pass is told, or the error at the op that asks for it.
#ifndef TILEWRIGHT_TARGET_TARGETORERROR_H
#define TILEWRIGHT_TARGET_TARGETORERROR_H

#include "passes/target/Target.h"

namespace tilewright {

/// What lookupTarget finds; where it finds nothing, failure, and the reason as an error at `op`.
inline llvm::FailureOr<Target> targetOrError(mlir::Operation *op, llvm::StringRef nameOrPath) {
  llvm::Expected<Target> found = lookupTarget(nameOrPath);
  if (found)
    return std::move(*found);
  return op->emitError(llvm::toString(found.takeError()));
}

} // namespace tilewright

#endif
