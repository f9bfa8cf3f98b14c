// Splits a reduction into two phases: the first reduces parts of the elements to partial results, the second reduces
// the partial results to the results. The combination is associative, so the result is the same, except that sums and
// products are rounded in another order.
#ifndef TILEWRIGHT_NORMALIZE_TWOPHASEREDUCTION_H
#define TILEWRIGHT_NORMALIZE_TWOPHASEREDUCTION_H

#include "passes/graph/FormChoice.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {


/// A reduced dim and the number of parts that it is cut into. If that is its extent, the first phase does not reduce
/// the dim at all.
struct SplitDim {
  unsigned dim;
  int64_t parts;
};

/// How a reduction is split, in the order of the dims.
using ReductionSplit = llvm::SmallVector<SplitDim>;

/// Writes a split to the parameters `dims` and `parts` of a choice, and reads it from them.
void setSplit(FormChoice &choice, llvm::ArrayRef<SplitDim> split);
ReductionSplit splitOf(const FormChoice &choice);

/// Returns why the parameters of a choice split the reduction in no way that can be built, or an empty string.
std::string whyNotSplit(mlir::linalg::GenericOp reduction, const FormChoice &choice);

/// Returns what two phases do to the numbers of a reduction.
Numerics numericsOfTwoPhases(mlir::linalg::GenericOp reduction);

/// Returns true if the op is a contraction.
bool multiplies(mlir::linalg::GenericOp reduction);

/// Returns why the reduction cannot be split into two phases at all, or an empty string if it can.
std::string whyNotSplittable(mlir::linalg::GenericOp reduction);

/// Returns true if the dim is reduced.
bool isReduced(mlir::linalg::GenericOp reduction, unsigned dim);

/// Returns true if the dim can be cut into parts: every input that varies along it has it as one plain index, which a
/// view can split into two.
bool isCuttable(mlir::linalg::GenericOp reduction, unsigned dim);

/// Returns true if every dim can be cut into its number of parts.
bool canCut(mlir::linalg::GenericOp reduction, llvm::ArrayRef<SplitDim> split);

/// Views of tensors with one dim split into two, by tensor, dim and number of parts. Each view is created once, so that
/// ops that read the same tensor can share a kernel and read it once.
using SplitViews = std::map<std::tuple<const void *, int64_t, int64_t>, mlir::Value>;

/// Returns the view of a tensor in which dim `position` is split into parts and the index within a part.
mlir::Value cutView(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor, int64_t position, int64_t parts,
                    SplitViews &views);

/// Rounds a tensor to the narrower float type, or returns it if it already has that type.
mlir::Value roundedTo(mlir::OpBuilder &builder, mlir::Value tensor, mlir::RankedTensorType type);

/// The ops of both phases.
struct TwoPhases {
  mlir::linalg::GenericOp partial, final;
  llvm::SmallVector<mlir::Value> results; ///< the results of `final`, rounded to the types of the reduction
};

/// Builds both phases next to the reduction, which it does not replace.
TwoPhases buildTwoPhases(mlir::OpBuilder &builder, mlir::linalg::GenericOp reduction, llvm::ArrayRef<SplitDim> split,
                         SplitViews &views);

} // namespace tilewright

#endif
