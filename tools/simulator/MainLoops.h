// Finds the main loops of contractions, that is, loops that carry accumulators of products from one iteration to the
// next.
#ifndef TILEWRIGHT_SIMULATOR_MAINLOOPS_H
#define TILEWRIGHT_SIMULATOR_MAINLOOPS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tilewright::simulator {

/// Returns the basic blocks of these loops, including inner loops, such as those that copy or load the operands.
llvm::DenseSet<mlir::Block *> findMainLoops(mlir::LLVM::LLVMFuncOp function);

} // namespace tilewright::simulator

#endif
