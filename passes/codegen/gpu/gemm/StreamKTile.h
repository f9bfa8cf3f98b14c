// Emits tiles whose K steps several workgroups share (stream-K). A workgroup passes its partial sums of a tile that
// another one begins through a buffer in global memory. They are stored in the order in which the threads of a block
// hold them, so that neighbouring threads access neighbouring elements.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_STREAMKTILE_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_STREAMKTILE_H

#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "passes/layout/GemmTiling.h"
#include <functional>

namespace tilewright {

/// The workgroup's share of the steps of its current tile.
struct StepShare {
  mlir::Value first, count;    ///< first step, and number of steps
  mlir::Value begins;          ///< true if the share includes the tile's first step; this workgroup then stores the
                               ///< tile
  mlir::Value isLast;          ///< true if this is the workgroup's last tile
  mlir::Value partials;        ///< buffer with a row of partial sums for each workgroup
  mlir::Value own;             ///< this workgroup's row
  mlir::Value nextRow, endRow; ///< rows of the workgroups that have the tile's remaining steps
  std::function<void(mlir::OpBuilder &)> syncGrid; ///< emits the barrier of the grid
};

/// Leaves the partial sums to the workgroup that begins the tile, unless that is this one; after this workgroup's last
/// tile, waits until all have done so. `store` emits code for the complete accumulators, which runs in the workgroup
/// that begins the tile.
void completeTile(ContractionFrame &frame, const StepShare &share, mlir::ValueRange accumulators,
                  llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> store);

} // namespace tilewright

#endif
