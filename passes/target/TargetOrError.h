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

/// Does so for plans with `cores` hardware threads, unless it is 0, and with at most `blockBytes` bytes of memory of a
/// block, unless it is 0.
inline llvm::FailureOr<Target> targetOrError(mlir::Operation *op, llvm::StringRef nameOrPath, int64_t cores,
                                             int64_t blockBytes) {
  llvm::FailureOr<Target> target = targetOrError(op, nameOrPath);
  if (mlir::failed(target))
    return target;
  if (cores > 0)
    target = withCores(std::move(*target), cores);
  if (blockBytes > 0)
    target->blockBytes = std::min(target->blockBytes, blockBytes);
  return target;
}

} // namespace tilewright

#endif
