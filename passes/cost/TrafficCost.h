// Predicted bytes and seconds of kernels from what they move and compute. Pure. The form is Chimera's: each resource's
// work over its rate, the slowest of those that overlap decides; Welder's traffic per memory level gives the work.
#ifndef TILEWRIGHT_COST_TRAFFICCOST_H
#define TILEWRIGHT_COST_TRAFFICCOST_H

#include "passes/cost/CostTerm.h"
#include "passes/target/Target.h"

namespace tilewright {

/// What one part of a kernel, or one dispatch, has to do.
struct GroupWork {
  double inputBytes = 0, outputBytes = 0; ///< of global tensors, each once: compulsory traffic
  double repeatedBytes = 0;               ///< of global tensors, read again by further tiles
  double blockBytes = 0;                  ///< read and written in buffers of workgroups
  double footprintBytes = 0;              ///< of the buffers of one workgroup: which level they live in
  double arithmetic = 0;                  ///< plain operations
  double elementwise = 0;                 ///< ... those that no contraction does, and those of polynomials
  double special = 0;                     ///< transcendental functions, square roots and divisions
  double barriers = 0;                    ///< at block scope, per workgroup
  double latencySeconds = 0;              ///< what waves of blocks take at least on a GPU (BlockLatency.h)
  int64_t workgroups = 1;
  int64_t tiles = 0; ///< of equal work that a core takes one after another; 0: so many that they share out evenly
  double filled = 1; ///< of those tiles: some are cut at the border, and their core waits for the others

  double globalBytes() const { return inputBytes + outputBytes; }
};

struct Prediction {
  double bytes = 0, seconds = 0;
  std::vector<CostTerm> terms; ///< "bytes" and "seconds" first, then what they are made of
};

/// Parts that run side by side in one launch. `workingSetBytes` is what the kernels around it touch together with it,
/// if that is more: tensors are found in the level that holds all of it.
Prediction predictKernel(llvm::ArrayRef<GroupWork> parts, const Target &target, double workingSetBytes = 0);

/// What takes longest of the terms: "arithmetic", "latency", or a level whose bandwidth it is.
std::string boundOf(llvm::ArrayRef<CostTerm> terms, const Target &target);

/// Phases of one launch, one after another, with a barrier of the grid between two.
Prediction predictPhases(llvm::ArrayRef<std::vector<GroupWork>> phases, const Target &target);

} // namespace tilewright

#endif
