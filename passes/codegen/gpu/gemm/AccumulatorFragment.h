// The accumulators of a contraction's tile that a thread keeps in registers, and how it adds the products of a step to
// them: with multiply-adds of its own, or as a lane of a warp or warpgroup that multiplies small matrices.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORFRAGMENT_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORFRAGMENT_H

#include "passes/codegen/gpu/gemm/AccumulatorLayout.h"
#include "passes/codegen/gpu/gemm/ContractionOperand.h"
#include "passes/layout/GemmTiling.h"

#include <memory>

namespace tilewright {

class AccumulatorFragment : public AccumulatorLayout {
public:
  virtual ~AccumulatorFragment() = default;
  /// Returns the accumulators before the first step.
  virtual llvm::SmallVector<mlir::Value> begin(mlir::ValueRange accumulators) { return accumulators; }
  /// Returns the accumulators with the products of the slot's K elements added. Until `finish`, only the next step may
  /// use them.
  virtual llvm::SmallVector<mlir::Value> multiplyAdd(mlir::ValueRange accumulators, mlir::Value slot) = 0;
  /// Returns the accumulators after the last step.
  virtual llvm::SmallVector<mlir::Value> finish(mlir::ValueRange accumulators) { return accumulators; }
};

struct FragmentInputs {
  ContractionFrame &frame;
  ContractionOperand &lhs, &rhs;
  const GemmTiling &tiling;
  const MicroKernel &kernel;
  mlir::Operation *lhsWidening, *rhsWidening;
  mlir::Type sum;
};

/// Passes the accumulators through empty inline assembly. The optimiser can then neither keep the values they are
/// computed from, nor move the computation to their uses.
llvm::SmallVector<mlir::Value> accumulatorsAsOfHere(mlir::OpBuilder &builder, mlir::Location loc,
                                                    mlir::ValueRange accumulators);

/// Emits `ldmatrix` for four matrices of 8 lines of 16 bytes; each lane gives the address of one line. Returns the
/// lane's word of each matrix. If `transposed`, matrices of two-byte elements are transposed.
llvm::SmallVector<mlir::Value> loadMatrices(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value address,
                                            bool transposed);

/// Returns the first K element of a step that belongs to the thread's K slice.
mlir::Value firstKOf(ContractionFrame &frame, const GemmTiling &tiling);

std::unique_ptr<AccumulatorFragment> makeThreadFragment(const FragmentInputs &inputs);
std::unique_ptr<AccumulatorFragment> makeWarpFragment(const FragmentInputs &inputs);
std::unique_ptr<AccumulatorFragment> makeWarpgroupFragment(const FragmentInputs &inputs);
/// Creates the fragment for the micro kernel.
std::unique_ptr<AccumulatorFragment> makeFragment(const FragmentInputs &inputs);

} // namespace tilewright

#endif
