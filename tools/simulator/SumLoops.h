// The main loops of contractions: those that carry sums of products from turn to turn.
#ifndef TILEWRIGHT_SIMULATOR_SUMLOOPS_H
#define TILEWRIGHT_SIMULATOR_SUMLOOPS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace tilewright::simulator {

/// The blocks of such loops, those of loops within them too: what fills and reads the operands of the products.
llvm::DenseSet<mlir::Block *> findSumLoops(mlir::LLVM::LLVMFuncOp function);

} // namespace tilewright::simulator

#endif
