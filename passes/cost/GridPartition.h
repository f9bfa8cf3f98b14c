// Decides which ops of a subprogram share a kernel, with grid barriers between them, and where the subprogram is cut
// into launches (Souffle 5.4). Breadth first and greedily, an op joins the current kernel if all blocks are certain to
// be resident at once (layout/GridPhases.h) and the kernel is predicted to take no longer than two launches. Everything
// here is a pure function.
#ifndef TILEWRIGHT_COST_GRIDPARTITION_H
#define TILEWRIGHT_COST_GRIDPARTITION_H

#include "passes/cost/BlockLatency.h"
#include "passes/layout/GridPhases.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"
#include <functional>

namespace tilewright {

/// An op as a kernel of its own would run it.
struct GridStage {
  std::string name;
  BlockWork work;                             ///< its grid, threads, shared memory and registers, among others
  bool walks = true;                          ///< true if a block can process several of the stage's tiles in turn
  llvm::SmallVector<unsigned> producers = {}; ///< stages whose results this one reads
  /// Predicts the seconds in which `blocks` of its blocks compute all tiles, with `together` blocks of the kernel per
  /// SM. If null, blockLatency of `work` predicts it.
  std::function<double(double blocks, double together)> seconds = nullptr;
  int64_t steps = 0; ///< steps along K per tile if blocks can share tiles (stream-K); 0: they cannot
  /// Predicts the seconds if the blocks share all tiles evenly, without the barrier at which they wait for each other.
  std::function<double(double blocks, double together)> sharedSeconds = nullptr;
};

/// Returns the stages without their predictions.
llvm::SmallVector<GridMember> membersOf(llvm::ArrayRef<GridStage> stages);

struct GridPartition : GridKernels {
  double seconds() const;
  void print(llvm::ArrayRef<GridStage> stages, llvm::raw_ostream &os) const;
};

/// The rules for joining a stage to the current kernel.
struct GridRules {
  bool allowed = true; ///< true if grid scope may be used at all
  bool byCost = true;  ///< true if two launches that are predicted faster win
};

GridPartition partitionAtGridSync(llvm::ArrayRef<GridStage> stages, const Target &target, GridRules rules = {});

} // namespace tilewright

#endif
