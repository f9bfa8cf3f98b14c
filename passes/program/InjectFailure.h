// A pass that fails on purpose. Tests use it to check how a compilation recovers from a pass that fails or crashes on
// one of its kernels.
#ifndef TILEWRIGHT_PROGRAM_INJECTFAILURE_H
#define TILEWRIGHT_PROGRAM_INJECTFAILURE_H

#include "mlir/Pass/Pass.h"

namespace tilewright {

/// Creates a pass that emits an error at the first `tile.subprogram`, `tile.program` or `llvm.func` if the locations in
/// it contain all `names`. With `crash`, it ends the process instead, like an internal error of LLVM.
std::unique_ptr<mlir::Pass> createInjectFailure(llvm::ArrayRef<std::string> names, bool crash);

} // namespace tilewright

#endif
