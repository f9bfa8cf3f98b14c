// What a pass over a whole module is at: which of its ops, or of the kernels it made. Whoever wants to know sets the
// hook; see core/PassNotes.h.
#ifndef TILEWRIGHT_SUPPORT_WORKNOTES_H
#define TILEWRIGHT_SUPPORT_WORKNOTES_H

#include "mlir/IR/Operation.h"

#include <atomic>

namespace tilewright {

inline std::atomic<void (*)(mlir::Operation *)> workHook = nullptr;

/// Called by a pass before work that may take long, with the op that it is for.
inline void noteWork(mlir::Operation *op) {
  if (auto *hook = workHook.load(std::memory_order_relaxed))
    hook(op);
}

} // namespace tilewright

#endif
