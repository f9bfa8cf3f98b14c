// Tiles whose terms several workgroups share (stream-K): what one of them adds to a tile that another one begins
// passes through a buffer in global memory. Sums lie there as the threads of a block hold them, so that neighbouring
// threads touch neighbouring elements.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_STREAMKTILE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_STREAMKTILE_H

#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "passes/cost/GemmTiling.h"
#include <functional>

namespace tilewright {

/// Of the steps of the tile that the workgroup is at, its share.
struct StepShare {
  mlir::Value first, count;    ///< of its steps
  mlir::Value begins;          ///< whether it has the tile's first step; then it is the one that stores the tile
  mlir::Value isLast;          ///< whether it is the workgroup's last tile
  mlir::Value partials;        ///< a row of sums for each workgroup
  mlir::Value own;             ///< its row
  mlir::Value nextRow, endRow; ///< the rows of those who have the rest of the tile's steps
  std::function<void(mlir::OpBuilder &)> meet; ///< emits the barrier of the grid
};

/// The buffer of a contraction that so many workgroups share.
tile::SliceType partialsOf(mlir::MLIRContext *context, const GemmTiling &tiling, mlir::Type sum, int64_t workgroups);

/// Leaves the sums to who begins the tile, unless that is the workgroup itself; behind its last tile, waits until all
/// have. What `store` emits gets the tile's whole sums, and runs where the workgroup begins it.
void completeTile(ContractionFrame &frame, const StepShare &share, mlir::ValueRange sums,
                  llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> store);

} // namespace tilewright

#endif
