// The body of a nest behind a contraction, on sums that are still in registers (thread scope).
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_EPILOGUE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_EPILOGUE_H

#include "passes/program/RegisterHandover.h"
#include "passes/codegen/common/Reciprocal.h"
#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// By slice.
using SliceValues = llvm::MapVector<mlir::Value, mlir::Value>;

class Epilogue {
public:
  /// `contraction` is where the sums are; `lane` its dim along which neighbouring sums of a thread lie.
  Epilogue(ContractionFrame &contraction, const EpilogueNest &reader, int64_t lane);

  /// At the contraction's current point, for one element or a vector of neighbours of each slice that is in registers,
  /// which the nest may store to; the nest's accumulators, as many values each, before and behind it.
  llvm::SmallVector<mlir::Value> emit(SliceValues &registers, mlir::ValueRange accumulators = {});
  /// Loads once what does not change along the row of the contraction's current point; until the next row.
  void enterRow();
  /// The value of accumulator `i` of the row is this.
  void storeAccumulator(unsigned i, mlir::Value value);

private:
  void enterPoint();
  mlir::Value indexAt(mlir::AffineMap map);
  mlir::Value load(tile::LoadOp load);
  void store(tile::StoreOp store, mlir::Value value);
  mlir::Value toShape(mlir::Value value);
  void emitElementwise(mlir::Operation &op, mlir::IRMapping &values);

  ContractionFrame &contraction;
  ContractionFrame frame; ///< of the reader
  EpilogueNest reader;
  int64_t lane;                                                 ///< of the reader
  llvm::DenseMap<mlir::Operation *, mlir::Value> ofRow;         ///< what loads give in all of it
  llvm::DenseMap<mlir::Operation *, ScaledReciprocal> divisors; ///< of divisions by one of those
  int64_t count = 1;
};

} // namespace tilewright

#endif
