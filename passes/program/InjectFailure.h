// A fault on purpose, for tests of what a compilation does when a pass fails on one of its kernels, or dies.
#ifndef TILEWRIGHT_PROGRAM_INJECTFAILURE_H
#define TILEWRIGHT_PROGRAM_INJECTFAILURE_H

#include "mlir/Pass/Pass.h"

namespace tilewright {

/// A pass that fails, with an error at the op, on the first `tile.subprogram`, `tile.program` or `llvm.func` with
/// locations inside that hold all `names`. With `crash` it ends the process instead, as LLVM does where it cannot go
/// on.
std::unique_ptr<mlir::Pass> createInjectFailure(llvm::ArrayRef<std::string> names, bool crash);

} // namespace tilewright

#endif
