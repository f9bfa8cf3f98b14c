// Carries out loops that the plan puts into a kernel.
#ifndef TILEWRIGHT_IREE_REPEATLAUNCHES_H
#define TILEWRIGHT_IREE_REPEATLAUNCHES_H

#include "mlir/Pass/Pass.h"

namespace tilewright {

/// Creates a pass that replaces an scf.for (`tile.one_kernel`) with one launch of a compiled kernel by one launch of a
/// new kernel, which runs all steps with a barrier between two of them. A loop stays, with a missed remark, if its kernel
/// would have more bindings than the target passes or blocks that are not proved to be resident at once, or if the loop
/// carries anything but results of the kernel.
std::unique_ptr<mlir::Pass> createRepeatLaunches(llvm::StringRef target);

} // namespace tilewright

#endif
