#ifndef TILEWRIGHT_SUPPORT_ERASEUNUSED_H
#define TILEWRIGHT_SUPPORT_ERASEUNUSED_H

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tilewright {

/// Erases what nobody reads any more; users stand after what they use.
inline void eraseUnused(mlir::Block &block) {
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (mlir::isOpTriviallyDead(&op))
      op.erase();
}

} // namespace tilewright

#endif
