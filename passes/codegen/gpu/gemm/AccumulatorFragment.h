// The sums of a contraction's tile that a thread keeps in registers, and how it adds a step's products to them: with
// multiply-adds of its own, or as a lane of a warp, or of four, that multiply small matrices.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORFRAGMENT_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_ACCUMULATORFRAGMENT_H

#include "passes/codegen/gpu/gemm/ContractionOperand.h"
#include "passes/codegen/gpu/gemm/AccumulatorLayout.h"
#include "passes/cost/GemmTiling.h"

#include <memory>

namespace tilewright {

class AccumulatorFragment : public AccumulatorLayout {
public:
  virtual ~AccumulatorFragment() = default;
  /// The sums in front of the first step.
  virtual llvm::SmallVector<mlir::Value> begin(mlir::ValueRange sums) { return sums; }
  /// The sums with the products of the slot's terms added. Nobody may use them before `finish`, but the next step.
  virtual llvm::SmallVector<mlir::Value> multiplyAdd(mlir::ValueRange sums, mlir::Value slot) = 0;
  /// The sums behind the last step.
  virtual llvm::SmallVector<mlir::Value> finish(mlir::ValueRange sums) { return sums; }
};

struct ShareInputs {
  ContractionFrame &frame;
  ContractionOperand &rows, &lanes;
  const GemmTiling &tiling;
  const MicroKernel &kernel;
  mlir::Operation *rowWidening, *laneWidening;
  mlir::Type sum;
};

/// The sums, which to whoever optimizes have their values from here on: nothing they are computed from is kept, or
/// moved to where they are used.
llvm::SmallVector<mlir::Value> sumsAsOfHere(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange sums);

/// `ldmatrix` of four matrices of 8 lines of 16 bytes, for each of which a lane gives the address: of each matrix the
/// lane's word. `transposed`: elements of two bytes change places.
llvm::SmallVector<mlir::Value> loadMatrices(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value address,
                                            bool transposed);

/// Of the terms of a step, where those of the thread begin.
mlir::Value firstKOf(ContractionFrame &frame, const GemmTiling &tiling);

std::unique_ptr<AccumulatorFragment> makeThreadShare(const ShareInputs &inputs);
std::unique_ptr<AccumulatorFragment> makeWarpShare(const ShareInputs &inputs);
std::unique_ptr<AccumulatorFragment> makeWarpgroupShare(const ShareInputs &inputs);
/// The one for the micro kernel.
std::unique_ptr<AccumulatorFragment> makeShare(const ShareInputs &inputs);

} // namespace tilewright

#endif
