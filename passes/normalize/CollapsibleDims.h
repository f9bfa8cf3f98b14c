// Which neighbouring dims could be one dim, wherever they occur. Front ends keep the dims of the model: a reduction
// over a plane of 7x7, or an elementwise op on rows of 3, is then many short rows to a vector unit instead of a few
// long ones.
#ifndef TILEWRIGHT_NORMALIZE_COLLAPSIBLEDIMS_H
#define TILEWRIGHT_NORMALIZE_COLLAPSIBLEDIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// Of tensors and of loops, which dims are one with the next.
struct CollapsibleDims {
  /// By tensor, a bit for each dim but the last.
  llvm::MapVector<mlir::Value, llvm::BitVector> tensors;
  /// By op, the loop that follows each loop in the same dim, or -1.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<int64_t>> loops;
};

/// The dims of a function that can be one in all its linalg.generic ops but contractions, and in what these share with
/// whatever is around the function. Only of pieces that have short rows: where vectors of `lanes` elements along the
/// last dim of some tensor would be filled to less than 8/9. An input that is not made by these ops may change along
/// some of the loops that are one and not along others, if the op has eight points for each element that it then has.
/// Pure.
CollapsibleDims collapsibleDims(mlir::func::FuncOp function, int64_t lanes);

/// Whether results may begin with the tensor in whatever shape: it is empty, or of one number.
bool isStart(mlir::Value tensor);
/// Whether all that the op does is to add dims of one element.
bool addsUnitDims(mlir::tensor::ExpandShapeOp op);
/// Then, for each dim of the source, the dim of the result that it is.
llvm::SmallVector<int64_t> placesOf(mlir::tensor::ExpandShapeOp op);

} // namespace tilewright

#endif
