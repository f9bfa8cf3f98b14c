// Emits the body of a nest behind a contraction, on accumulators that are still in registers (thread scope).
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_EPILOGUE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_EPILOGUE_H

#include "passes/codegen/common/Reciprocal.h"
#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "passes/program/RegisterHandover.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// Values by slice.
using SliceValues = llvm::MapVector<mlir::Value, mlir::Value>;

class Epilogue {
public:
  /// `contraction` is the frame of the accumulators; `lane` is its dim along which neighbouring accumulators of a
  /// thread lie.
  Epilogue(ContractionFrame &contraction, const EpilogueNest &reader, int64_t lane);

  /// Emits the body at the contraction's current point, for one element, or a vector of neighbours, of each slice that
  /// is in registers; the nest may store to them. `accumulators` are the nest's own before the body; returns those
  /// after it.
  llvm::SmallVector<mlir::Value> emit(SliceValues &registers, mlir::ValueRange accumulators = {});
  /// Loads values that are constant along the row of the contraction's current point, once until the next row.
  void enterRow();
  /// Stores the final value of the row's accumulator `i`.
  void storeAccumulator(unsigned i, mlir::Value value);

private:
  void enterPoint();
  mlir::Value indexAt(mlir::AffineMap map);
  mlir::Value load(tile::LoadOp load);
  void store(tile::StoreOp store, mlir::Value value);
  mlir::Value toShape(mlir::Value value);
  void emitElementwise(mlir::Operation &op, mlir::IRMapping &values);

  ContractionFrame &contraction;
  ContractionFrame frame; ///< frame of the reader
  EpilogueNest reader;
  int64_t lane;                                                 ///< dim of the reader that is `lane`
  llvm::DenseMap<mlir::Operation *, mlir::Value> ofRow;         ///< loaded values that are constant along the row
  llvm::DenseMap<mlir::Operation *, ScaledReciprocal> divisors; ///< reciprocals of row constants that divide
  int64_t count = 1;
};

} // namespace tilewright

#endif
