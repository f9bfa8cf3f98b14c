// The problem that a planner is given: a graph, the machine, the numerics, and what the plan may do. Explorers
// (Explorers.h) turn a problem into a plan.
#ifndef TILEWRIGHT_PLAN_FUSION_FUSIONPROBLEM_H
#define TILEWRIGHT_PLAN_FUSION_FUSIONPROBLEM_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/scopes/PlanGroup.h"

#include "llvm/ADT/DenseSet.h"

namespace tilewright {

struct PlanOptions {
  std::string policy = "greedy"; ///< name of the explorer
  NumericsMode numerics = NumericsMode::standard;
  /// Take groups that IREE alone would run as one dispatch, too, if they have arithmetic.
  bool takeSingles = true;
  /// Put small independent groups into one kernel.
  bool pack = true;
  /// Join kernels that depend on each other by grid barriers, if the target has them.
  bool gridSync = true;
  /// Seconds that a search may take, about; it ends after a number of groups that the clock does not change. 0: it only
  /// compares the plans that it would start from.
  double planSeconds = 2;
};

/// Restrictions on a plan after passes have failed on kernels of an earlier plan.
struct PlanRestrictions {
  bool fuse = true;                 ///< true if ops may share kernels
  llvm::DenseSet<unsigned> unfused; ///< expressions that share no kernel with others
  llvm::DenseSet<unsigned> left;    ///< expressions that stay with IREE

  bool keepsApart(unsigned expr) const { return !fuse || unfused.contains(expr); }
};

/// The reason that restrictions give for ops that are left to IREE.
inline constexpr llvm::StringLiteral kLeftByRestriction = "a pass failed on the kernel that held it";

/// Returns why the target lacks something that every plan is made of, or an empty string.
std::string whyIncomplete(const Target &target);

/// It refers to the graph, which must have at least one expression, and does not change.
class FusionProblem {
public:
  FusionProblem(const TensorGraph &graph, const Target &target, PlanOptions options = {},
                PlanRestrictions restrictions = {});
  /// Uses this memo instead of that of the graph's context.
  FusionProblem(const TensorGraph &graph, const Target &target, PlanOptions options, PlanRestrictions restrictions,
                GroupMemo &memo);
  FusionProblem(const FusionProblem &) = delete;
  FusionProblem &operator=(const FusionProblem &) = delete;

  /// Returns why no explorer can solve the problem, or nothing: the graph is empty or in several blocks, the target
  /// lacks what a plan is made of, or the numerics are not for it.
  std::optional<Declined> check() const;
  mlir::Block &block() const { return *graph.exprs().front().op->getBlock(); }

  const TensorGraph &graph;
  const Target machine; ///< the target
  const PlanOptions options;
  const PlanRestrictions restrictions;
  const GroupProblem groups;           ///< the graph, the machine and the numerics, for planGroup
  const std::vector<FormChoice> forms; ///< those that the graph has, and those that it could have had
};

} // namespace tilewright

#endif
