// Emits one tile.compute that is a contraction as the work of a block of threads (Chimera 5, Welder 3.1). The registers
// of all threads hold the tile's accumulators during the whole reduction, and the operands pass through shared memory
// step by step.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONBLOCK_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONBLOCK_H

#include "passes/codegen/gpu/gemm/AccumulatorLayout.h"
#include "passes/codegen/gpu/gemm/ContractionOperand.h"
#include "passes/codegen/gpu/gemm/StreamKTile.h"
#include "passes/program/gpu/ContractionPlan.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// A contraction and the memory in which its block keeps the steps of its operands.
struct PlacedContraction {
  tile::ComputeOp compute;
  ContractionPlan plan;
  mlir::Value scratch;    ///< the tiling's shared bytes
  const GpuCosts *costs;  ///< of the target
  mlir::Value again = {}; ///< true if nothing was prefetched for this tile; null if the attribute's prefetches have
                          ///< been made
  mlir::Value firstOfLoop = {};                  ///< true in the first iteration of the loop around, if it keeps the M
                                                 ///< operand resident
  std::optional<StepShare> share = std::nullopt; ///< share of a tile that workgroups share; such a tile is one loop of
                                                 ///< steps
  mlir::Value firstStep = {};                    ///< true in the first step of a repeated kernel, if it keeps rhs in
                                                 ///< shared memory over all steps; else null
  int64_t residentRhs = 0;                       ///< offset of a kept rhs in the scratch
  int64_t prefetched = 0;                        ///< number of first steps that are prefetched (Prefetch)
};

/// A contraction whose first steps another contraction prefetches.
struct UpcomingContraction {
  PlacedContraction placed;
  mlir::IRMapping values;
  mlir::Value exists = {}; ///< condition for it to exist; null means true
};

/// Tiles with the shape of a contraction's accumulators, in the registers of each thread, by the slice that they stand
/// for.
struct HeldAccumulators {
  PlacedContraction contraction;
  AccumulatorLayout layout;
  llvm::MapVector<mlir::Value, llvm::SmallVector<mlir::Value>> tiles;
};

AccumulatorLayout accumulatorLayout(mlir::OpBuilder &builder, const PlacedContraction &contraction,
                                    const mlir::IRMapping &values, mlir::Value thread, int64_t threads);

/// Emits the contraction. `thread` is the index of the thread in its block, an i32. Turns of copying that its own steps
/// leave free prefetch the first steps of `next`, for the operands that its attribute names (Prefetch). If the nests
/// behind it read the accumulators more than once or reduce them, returns the accumulators (RowEpilogue.h); otherwise
/// stores them.
std::optional<HeldAccumulators> emitContraction(mlir::OpBuilder &builder, const PlacedContraction &contraction,
                                                const UpcomingContraction *next, const mlir::IRMapping &values,
                                                mlir::Value thread, int64_t threads);

/// Emits the copies that start before a grid barrier.
void emitFirstCopies(mlir::OpBuilder &builder, const PlacedContraction &contraction, const mlir::IRMapping &values,
                     mlir::Value thread, int64_t threads);

} // namespace tilewright

#endif
