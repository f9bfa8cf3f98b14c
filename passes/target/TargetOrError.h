// The target that a pass is given, or an error at the op that needs it.
#ifndef TILEWRIGHT_TARGET_TARGETORERROR_H
#define TILEWRIGHT_TARGET_TARGETORERROR_H

#include "passes/target/Target.h"

namespace tilewright {

/// Looks up the target. If there is none, emits the reason as an error at `op` and fails.
inline llvm::FailureOr<Target> targetOrError(mlir::Operation *op, llvm::StringRef nameOrPath) {
  llvm::Expected<Target> found = lookupTarget(nameOrPath);
  if (found)
    return std::move(*found);
  return op->emitError(llvm::toString(found.takeError()));
}

} // namespace tilewright

#endif
