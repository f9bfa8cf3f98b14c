// Predicts bytes and seconds of kernels from their data movement and arithmetic. The form is Chimera's: each resource's
// work over its rate, and the slowest of the overlapping resources decides. Welder's traffic per memory level gives the
// work. Everything here is a pure function.
#ifndef TILEWRIGHT_COST_TRAFFICCOST_H
#define TILEWRIGHT_COST_TRAFFICCOST_H

#include "passes/cost/CostTerm.h"
#include "passes/target/Target.h"

namespace tilewright {

/// The work of one fusion group of a kernel, or of one dispatch.
struct GroupWork {
  double inputBytes = 0, outputBytes = 0; ///< global tensors, each byte once: compulsory traffic
  double repeatedBytes = 0;               ///< global tensors that further tiles read again
  double blockBytes = 0;                  ///< traffic in buffers of workgroups
  double footprintBytes = 0;              ///< buffers of one workgroup, which decide the memory level they live in
  double arithmetic = 0;                  ///< plain operations
  double elementwise = 0;                 ///< operations outside contractions, polynomials included
  double special = 0;                     ///< transcendental functions, square roots and divisions
  double barriers = 0;                    ///< barriers at block scope, per workgroup
  double latencySeconds = 0;              ///< lower bound from waves of blocks on a GPU (BlockLatency.h)
  int64_t workgroups = 1;
  int64_t tiles = 0; ///< equal tiles that a core takes in turn; 0: so many that they divide evenly
  double filled = 1; ///< average share of those tiles that is inside the tensor; cores wait for full ones

  double globalBytes() const { return inputBytes + outputBytes; }
};

struct Prediction {
  double bytes = 0, seconds = 0;
  std::vector<CostTerm> terms; ///< "bytes" and "seconds" first, then their breakdown
};

/// Predicts a launch whose groups run side by side. `workingSetBytes` is what this kernel and its neighbours touch
/// together, if that is more than its own bytes: tensors are read from the level that holds all of it.
Prediction predictKernel(llvm::ArrayRef<GroupWork> parts, const Target &target, double workingSetBytes = 0);

/// Returns the name of the longest term: "arithmetic", "latency", or the level whose bandwidth bounds the kernel.
std::string boundOf(llvm::ArrayRef<CostTerm> terms, const Target &target);

/// Predicts a launch with several phases and a grid barrier between each two.
Prediction predictPhases(llvm::ArrayRef<std::vector<GroupWork>> phases, const Target &target);

} // namespace tilewright

#endif
