// Decides which ops of a subprogram share a kernel, with grid barriers between them, and where the subprogram is cut
// into launches (Souffle 5.4). Breadth first and greedily, an op joins the current kernel if all blocks are certain to
// be resident at once (GridPhases.h) and the kernel is predicted to take no longer than two launches. Everything
// here is a pure function.
#ifndef TILEWRIGHT_COST_GRIDPARTITION_H
#define TILEWRIGHT_COST_GRIDPARTITION_H

#include "passes/cost/GridPhases.h"
#include "llvm/Support/raw_ostream.h"

namespace tilewright {

/// The reason why an op begins a new kernel.
struct GridCut {
  unsigned stage;
  std::string reason;
};

struct GridPartition {
  std::vector<GridKernel> kernels; ///< in launch order
  std::vector<GridCut> cuts;

  double seconds() const;
  /// Returns an empty string if every op comes after its producers and all blocks of kernels with barriers are resident
  /// at once, else the error.
  std::string verify(llvm::ArrayRef<GridStage> stages, const Target &target) const;
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
