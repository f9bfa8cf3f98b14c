// Restrictions on a plan after passes have failed on kernels of an earlier plan.
#ifndef TILEWRIGHT_PLAN_FUSION_PLANRESTRICTIONS_H
#define TILEWRIGHT_PLAN_FUSION_PLANRESTRICTIONS_H

#include "passes/plan/fusion/GreedyPlanner.h"

#include "llvm/ADT/DenseSet.h"

namespace tilewright {

struct PlanRestrictions {
  bool fuse = true;                 ///< true if ops may share kernels
  llvm::DenseSet<unsigned> unfused; ///< expressions that share no kernel with others
  llvm::DenseSet<unsigned> left;    ///< expressions that stay with IREE
};

/// Reasons that restrictions give for ops that are kept apart, or left to IREE.
inline constexpr llvm::StringLiteral kUnfused = "kept apart, because a pass failed on a kernel that held it";
inline constexpr llvm::StringLiteral kLeftByRestriction = "a pass failed on the kernel that held it";

Plan makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options,
              const PlanRestrictions &restrictions);

} // namespace tilewright

#endif
