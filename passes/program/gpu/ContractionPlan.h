// How a block of threads computes a contraction: its micro kernel, how the threads share the tile's sums, and what each
// operand's slot in shared memory holds. Code generation carries it out (codegen/gpu/gemm). Pure.
#ifndef TILEWRIGHT_PROGRAM_GPU_CONTRACTIONPLAN_H
#define TILEWRIGHT_PROGRAM_GPU_CONTRACTIONPLAN_H

#include "passes/cost/GemmTiling.h"
#include "passes/graph/MatchContraction.h"
#include "passes/program/RegisterHandover.h"
#include "passes/program/gpu/OperandCopies.h"
#include "passes/target/Target.h"

namespace tilewright {

/// What was decided for a nest with a micro kernel.
struct ContractionPlan {
  Contraction contraction;
  MicroKernel kernel;
  GemmTiling tiling;
  int64_t terms;       ///< the reduced dim that is walked in steps
  std::string instead; ///< why the micro kernel is another one than is named; empty: it is not
};

/// Nothing for a nest that no micro kernel of the target computes, or not with so many threads; `reason` says why.
std::optional<ContractionPlan> planContraction(tile::ComputeOp compute, int64_t threads, const Target &target,
                                               std::string *reason = nullptr);

/// What a step's slots hold of either operand.
OperandShape rowShape(const ContractionPlan &plan);
OperandShape laneShape(const ContractionPlan &plan);
/// Steps of the terms, and whether they are the only loop around the sums.
int64_t stepsOf(tile::ComputeOp compute, const ContractionPlan &plan);
bool hasOneLoop(tile::ComputeOp compute, const ContractionPlan &plan);

/// Bytes of the contraction's scratch that its readers need to combine rows.
int64_t rowScratchBytes(const RegisterHandover &handover, const ContractionPlan &plan, int64_t threads);

} // namespace tilewright

#endif
