// The elementwise nest after a contraction, on sums that are still in registers (thread scope).
#ifndef TILEWRIGHT_CODEGEN_GPU_SUMEPILOGUE_H
#define TILEWRIGHT_CODEGEN_GPU_SUMEPILOGUE_H

#include "passes/analysis/RegisterHandover.h"
#include "passes/codegen/gpu/ContractionFrame.h"

namespace tilewright {

class SumEpilogue {
public:
  /// `contraction` is where the sums are; `lane` its dim along which neighbouring sums of a thread lie.
  SumEpilogue(ContractionFrame &contraction, const RegisterHandover &handover, int64_t lane);

  /// The nest's body at the contraction's current point, for one sum or a vector of neighbours.
  void emit(mlir::Value sums);

private:
  mlir::Value load(tile::LoadOp load);
  void store(tile::StoreOp store, mlir::Value value);
  mlir::Value toShape(mlir::Value value);
  void emitElementwise(mlir::Operation &op, mlir::IRMapping &values);

  ContractionFrame &contraction;
  ContractionFrame frame; ///< of the reader
  RegisterHandover handover;
  int64_t lane; ///< of the reader
  int64_t count = 1;
};

} // namespace tilewright

#endif
