// Finds neighbouring dims that can be collapsed into one wherever they occur. Front ends keep the dims of the model, so
// a reduction over a plane of 7x7, or an elementwise op on rows of 3, gives a vector unit many short rows instead of a
// few long ones. Two neighbouring dims of a tensor, or loops of an op, form a pair; pairs that must be collapsed
// together form a class, and one member that cannot be collapsed keeps its whole class apart.
#ifndef TILEWRIGHT_NORMALIZE_COLLAPSIBLEDIMS_H
#define TILEWRIGHT_NORMALIZE_COLLAPSIBLEDIMS_H

#include "passes/target/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// The dims of tensors and the loops of ops that are collapsed with the next one.
struct CollapsibleDims {
  /// By tensor: a bit for each dim but the last, set if the dim is collapsed with the next.
  llvm::MapVector<mlir::Value, llvm::BitVector> tensors;
  /// By op: for each loop, the loop that follows it in the same collapsed loop, or -1.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<int64_t>> loops;
};

/// Returns the dims that can be collapsed in all linalg.generic ops of a function except contractions, and in the
/// tensors that these share with the rest of the program. Only connected groups of ops with short rows are considered:
/// some tensor's last dim leaves many lanes of the target's vectors empty. An input that none of these ops computes may
/// vary along only some of the collapsed loops; it is then repeated along the others, if the op has many points for
/// each element of the repeated input. A pure function.
CollapsibleDims collapsibleDims(mlir::func::FuncOp function, const Target &target);

/// Returns true if a result of any shape may start from such a tensor: it is empty or filled with one number.
bool isStart(mlir::Value tensor);
/// Returns true if the op only adds unit dims.
bool addsUnitDims(mlir::tensor::ExpandShapeOp op);
/// Returns, for each source dim of an op that only adds unit dims, the corresponding dim of the result.
llvm::SmallVector<int64_t> placesOf(mlir::tensor::ExpandShapeOp op);

} // namespace tilewright

#endif
