// Emits one tile.compute that is a contraction as the work of a block of threads (Chimera 5, Welder 3.1): the tile's
// sums lie in the registers of all threads over the whole reduction, the operands pass through shared memory step by
// step.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONBLOCK_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONBLOCK_H

#include "passes/codegen/gpu/gemm/ContractionOperand.h"
#include "passes/codegen/gpu/gemm/StreamKTile.h"
#include "passes/codegen/gpu/gemm/AccumulatorLayout.h"
#include "passes/program/gpu/ContractionPlan.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// A contraction and where its block keeps the steps of its operands.
struct PlacedContraction {
  tile::ComputeOp compute;
  ContractionPlan plan;
  mlir::Value scratch;    ///< the tiling's shared bytes
  mlir::Value again = {}; ///< whether nobody copied ahead for this tile; null: somebody did, if its attribute says so
  mlir::Value firstOfLoop = {};                  ///< whether the loop around begins; where it keeps the rows
  std::optional<StepShare> share = std::nullopt; ///< of a tile that workgroups share; then it is one loop of steps
  int64_t begun = 0;                             ///< how many of its first steps are copied ahead (Prefetch)
};

/// A contraction whose first steps another one copies.
struct UpcomingContraction {
  PlacedContraction placed;
  mlir::IRMapping values;
  mlir::Value exists = {}; ///< null: it does
};

/// Tiles like that of a contraction's sums, as each thread has them in registers, by the slice that they would be in.
struct HeldAccumulators {
  PlacedContraction contraction;
  AccumulatorLayout layout;
  llvm::MapVector<mlir::Value, llvm::SmallVector<mlir::Value>> tiles;
};

AccumulatorLayout accumulatorLayout(mlir::OpBuilder &builder, const PlacedContraction &contraction, const mlir::IRMapping &values,
                    mlir::Value thread, int64_t threads);

/// `thread` is the index of the thread in its block, an i32. In the turns of copying that the steps leave over, the
/// first of `next` are copied, of those operands that its attribute says (Prefetch). Where the nests behind it read
/// the sums from registers more than once, or reduce them, they are given back (RowEpilogue.h), otherwise stored.
std::optional<HeldAccumulators> emitContraction(mlir::OpBuilder &builder, const PlacedContraction &contraction,
                                        const UpcomingContraction *next, const mlir::IRMapping &values,
                                        mlir::Value thread, int64_t threads);

/// The copies that begin before a barrier of the grid.
void emitFirstCopies(mlir::OpBuilder &builder, const PlacedContraction &contraction, const mlir::IRMapping &values,
                     mlir::Value thread, int64_t threads);

} // namespace tilewright

#endif
