// A hook that tells which op, or which of its kernels, a pass over a whole module is working on. core/PassNotes.h sets
// it, so that a compilation that takes too long can name the kernel, and one that runs can say how far it is.
#ifndef TILEWRIGHT_SUPPORT_WORKNOTES_H
#define TILEWRIGHT_SUPPORT_WORKNOTES_H

#include "mlir/IR/Operation.h"

#include <atomic>

namespace tilewright {

/// Position of a kernel among those of its module, from 1; 0 of 0 for work on something else.
struct KernelNumber {
  size_t number = 0, count = 0;
};

inline std::atomic<void (*)(mlir::Operation *, KernelNumber)> workHook = nullptr;

/// Passes call this with the current op before work that may take long.
inline void noteWork(mlir::Operation *op, KernelNumber kernel = {}) {
  if (auto *hook = workHook.load(std::memory_order_relaxed))
    hook(op, kernel);
}

} // namespace tilewright

#endif
