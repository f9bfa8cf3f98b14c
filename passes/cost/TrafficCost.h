// Predicts bytes and seconds of kernels from their data movement and arithmetic. The form is Chimera's: each resource's
// work over its rate, and the slowest of the overlapping resources decides. Welder's traffic per memory level gives the
// work. Everything here is a pure function.
#ifndef TILEWRIGHT_COST_TRAFFICCOST_H
#define TILEWRIGHT_COST_TRAFFICCOST_H

#include "passes/cost/CostTerm.h"
#include "passes/target/Target.h"
#include "llvm/ADT/SmallVector.h"

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

/// Names of resources that are no levels of memory.
inline constexpr llvm::StringLiteral kArithmetic = "arithmetic", kLatency = "latency";

/// Seconds that a resource is busy: kArithmetic, kLatency, or a memory level by its name.
struct ResourceSeconds {
  std::string resource;
  double seconds = 0;
};

/// The predicted cost of a launch.
struct Prediction {
  double bytes = 0, seconds = 0; ///< global tensors, each byte once; the whole launch
  double inputBytes = 0, outputBytes = 0, blockBytes = 0, repeatedBytes = 0; ///< see GroupWork
  double launchSeconds = 0, arithmeticSeconds = 0, barrierSeconds = 0;
  double repeatedSeconds = 0; ///< for bytes that further tiles read again
  double exposedSeconds = 0;  ///< the part of the shorter of traffic and arithmetic that does not overlap
  double latencySeconds = 0;  ///< lower bound from waves of blocks; 0: none
  double gridBarrierSeconds = 0;
  llvm::SmallVector<ResourceSeconds, 2> traffic; ///< the level of global tensors, that of buffers, and others of phases
  int64_t workgroups = 0;

  /// Returns the cost as terms for reports: "bytes" and "seconds" first, then their breakdown.
  std::vector<CostTerm> terms() const;
  /// Returns what may bound the launch.
  std::vector<ResourceSeconds> resources(const Target &target) const;
};

/// Predicts a launch whose groups run side by side. `workingSetBytes` is what this kernel and its neighbours touch
/// together, if that is more than its own bytes: tensors are read from the level that holds all of it.
Prediction predictKernel(llvm::ArrayRef<GroupWork> parts, const Target &target, double workingSetBytes = 0);

/// Returns the resource that is busy longest, with the seconds of equal ones added up.
std::string boundOf(llvm::ArrayRef<ResourceSeconds> resources);

/// Predicts a launch with several phases and a grid barrier between each two.
Prediction predictPhases(llvm::ArrayRef<std::vector<GroupWork>> phases, const Target &target);

} // namespace tilewright

#endif
