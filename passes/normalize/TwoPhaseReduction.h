// A reduction in two phases: parts of what is reduced into partial results, then those into the results. The
// combination is associative, so it is the same operation; only sums and products are regrouped by it.
#ifndef TILEWRIGHT_NORMALIZE_TWOPHASEREDUCTION_H
#define TILEWRIGHT_NORMALIZE_TWOPHASEREDUCTION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <map>

namespace tilewright {

inline constexpr llvm::StringLiteral kTwoPhaseForm = "two-phase reduction";

/// A reduced dim and the parts that it is cut into; as many as it has elements: it is not reduced in the first phase.
struct SplitDim {
  unsigned dim;
  int64_t parts;
};

/// How a reduction is cut, and the predictions that decided it.
struct ReductionSplit {
  llvm::SmallVector<SplitDim> dims; ///< empty: one phase
  double oneSeconds = 0, twoSeconds = 0;
  std::string reason; ///< for one phase

  /// What plans say of both phases.
  std::string form() const;

  /// Empty, or what is wrong for a reduction of the domain.
  std::string verify(llvm::ArrayRef<int64_t> domain) const;
  void print(llvm::raw_ostream &os) const;
};

/// Whether it is a contraction.
bool multiplies(mlir::linalg::GenericOp reduction);

/// Why the reduction cannot be cut into two phases at all; empty if it can.
std::string whyNotSplittable(mlir::linalg::GenericOp reduction);

/// Whether the loop of a dim is a reduction.
bool isReduced(mlir::linalg::GenericOp reduction, unsigned dim);

/// Whether the dim can be cut: every input that varies along it reads it as an index of its own.
bool isCuttable(mlir::linalg::GenericOp reduction, unsigned dim);

/// Whether all the dims can be cut, and into so many parts.
bool canCut(mlir::linalg::GenericOp reduction, llvm::ArrayRef<SplitDim> dims);

/// Views of a tensor with a dim cut in two, each made once: kernels that read one tensor read it once together.
using SplitViews = std::map<std::tuple<const void *, int64_t, int64_t>, mlir::Value>;

/// A tensor of wider floats in this type; itself if that is its own.
mlir::Value roundedTo(mlir::OpBuilder &builder, mlir::Value tensor, mlir::RankedTensorType type);

/// The two reductions. Replaces nothing.
struct TwoPhases {
  mlir::linalg::GenericOp partial, final;
  llvm::SmallVector<mlir::Value> results;
};
TwoPhases buildTwoPhases(mlir::OpBuilder &builder, mlir::linalg::GenericOp reduction, const ReductionSplit &split,
                         SplitViews &views);

} // namespace tilewright

#endif
