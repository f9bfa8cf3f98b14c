// Loops as regions: the bodies of structured loops are planned like the function's own block, each as a graph of its
// own, because no op of a body can share a kernel with an op outside it unless the whole loop is in that kernel.
#ifndef TILEWRIGHT_GRAPH_LOOPBODIES_H
#define TILEWRIGHT_GRAPH_LOOPBODIES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace tilewright {

/// A block whose tensor expressions are planned together: the function's own, or one of a loop's.
struct PlannedBlock {
  mlir::Block *block;
  mlir::Operation *loop; ///< null for the function's own block
};

/// Returns true for scf.for and scf.while, whose bodies are planned.
bool isLoop(mlir::Operation *op);

/// Returns the function's block and the blocks of the loops in it, also of loops in loops, in program order; a loop
/// comes after the block that holds it. Returns nothing for a function without a body or with several blocks.
llvm::SmallVector<PlannedBlock> plannedBlocks(mlir::Operation *function);

/// Returns how often the loop's body runs, or nothing if that is not known before the program runs.
std::optional<int64_t> tripCount(mlir::Operation *loop);

/// Returns the op after which what depends only on `tensor` can be computed once, outside the loops around `reader`;
/// null if `tensor` is made beside `reader`, or is no result of an op.
mlir::Operation *outsideLoops(mlir::Value tensor, mlir::Operation *reader);

} // namespace tilewright

#endif
