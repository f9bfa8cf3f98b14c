// A hook that tells which op, or which of its kernels, a pass over a whole module is working on. core/PassNotes.h sets
// it, so that a compilation that takes too long can name the kernel.
#ifndef TILEWRIGHT_SUPPORT_WORKNOTES_H
#define TILEWRIGHT_SUPPORT_WORKNOTES_H

#include "mlir/IR/Operation.h"

#include <atomic>

namespace tilewright {

inline std::atomic<void (*)(mlir::Operation *)> workHook = nullptr;

/// Passes call this with the current op before work that may take long.
inline void noteWork(mlir::Operation *op) {
  if (auto *hook = workHook.load(std::memory_order_relaxed))
    hook(op);
}

} // namespace tilewright

#endif
