// Removal of dead ops after a rewrite.
#ifndef TILEWRIGHT_SUPPORT_ERASEUNUSED_H
#define TILEWRIGHT_SUPPORT_ERASEUNUSED_H

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tilewright {

/// Erases ops whose results are unused. Users come after the ops they use, so one reverse pass is enough.
inline void eraseUnused(mlir::Block &block) {
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (mlir::isOpTriviallyDead(&op))
      op.erase();
}

} // namespace tilewright

#endif
