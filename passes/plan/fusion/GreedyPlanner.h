// A deterministic planner without search: expressions grow into parts along the edges of the graph as long as the index
// space allows it and the prediction improves, small independent parts are packed into one kernel (FusionStitching
// 4.1), and what is not predicted to beat IREE alone is left to it.
#ifndef TILEWRIGHT_PLAN_FUSION_GREEDYPLANNER_H
#define TILEWRIGHT_PLAN_FUSION_GREEDYPLANNER_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"

namespace tilewright {

struct PlanOptions {
  std::string policy = "greedy";
  NumericsMode numerics = NumericsMode::standard;
  /// Take what IREE alone would run as one dispatch too, if it has arithmetic.
  bool takeSingles = true;
  /// Put small independent parts into one kernel.
  bool pack = true;
  /// Join kernels that depend on each other by barriers of the grid, where the target has them.
  bool gridSync = true;
};

/// Scopes for all edges between the expressions (in program order). With `threadOnly` every elementwise value is
/// computed again wherever it is read, which keeps shifted and transposed reads local to the tile.
llvm::DenseMap<unsigned, EdgeChoice> chooseScopes(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs,
                                                  bool threadOnly);

/// The better of the scope choices for a set of expressions (in program order), or why there is none.
std::optional<PlannedGroup> planGroup(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, const Target &target,
                                    std::string *reason = nullptr);

/// The same with given scopes for all edges between them.
std::optional<PlannedGroup> planGroup(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, const Target &target,
                                    llvm::DenseMap<unsigned, EdgeChoice> edges, std::string *reason = nullptr);

Plan makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options = {});

/// Predicted for all kernels of that plan; nothing where it leaves to IREE what computes.
std::optional<double> plannedSeconds(const TensorGraph &graph, const Target &target, const PlanOptions &options);

} // namespace tilewright

#endif
