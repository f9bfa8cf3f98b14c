// Works out how a block of threads computes a contraction as its #tile.gemm says: its micro kernel, how threads share
// the accumulators of the tile, and which part of each operand a slot in shared memory holds. Code generation
// (codegen/gpu/gemm) carries it out. Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_CONTRACTIONPLAN_H
#define TILEWRIGHT_PROGRAM_GPU_CONTRACTIONPLAN_H

#include "passes/graph/MatchContraction.h"
#include "passes/layout/GemmTiling.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/OperandCopies.h"
#include "passes/target/Target.h"

namespace tilewright {

/// A nest with a micro kernel, as a block computes it.
struct ContractionPlan {
  Contraction contraction;
  MicroKernel kernel;
  GemmTiling tiling;
  int64_t k; ///< the K dim that is walked in steps
};

/// Declines for a nest that cannot be computed by its micro kernel as its #tile.gemm says.
OrDeclined<ContractionPlan> planContraction(tile::ComputeOp compute, int64_t threads, const Target &target);

/// Return the part of the M operand (lhsShape) and the N operand (rhsShape) that a slot holds for one step.
OperandShape lhsShape(const ContractionPlan &plan);
OperandShape rhsShape(const ContractionPlan &plan);
/// Return the number of steps along K, and true if they are the only loop around the accumulators.
int64_t stepsOf(tile::ComputeOp compute, const ContractionPlan &plan);
bool hasOneLoop(tile::ComputeOp compute, const ContractionPlan &plan);

/// Returns the bytes of the contraction's scratch that its readers need to combine rows.
int64_t rowScratchBytes(const RegisterHandover &handover, const ContractionPlan &plan, int64_t threads);

/// Returns the type of the buffer for the partial sums of a contraction that `workgroups` workgroups share.
tile::SliceType partialsOf(mlir::MLIRContext *context, const GemmTiling &tiling, mlir::Type sum, int64_t workgroups);

} // namespace tilewright

#endif
