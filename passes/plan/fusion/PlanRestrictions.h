// What a plan has to do without, because passes failed on kernels of an earlier one.
#ifndef TILEWRIGHT_PLAN_FUSION_PLANRESTRICTIONS_H
#define TILEWRIGHT_PLAN_FUSION_PLANRESTRICTIONS_H

#include "passes/plan/fusion/GreedyPlanner.h"

#include "llvm/ADT/DenseSet.h"

namespace tilewright {

struct PlanRestrictions {
  bool fuse = true;                 ///< whether ops may share kernels at all
  llvm::DenseSet<unsigned> unfused; ///< expressions that share no kernel with others
  llvm::DenseSet<unsigned> left;    ///< expressions that stay with IREE
};

/// Why ops are kept apart, or left, by restrictions.
inline constexpr llvm::StringLiteral kUnfused = "kept apart, because a pass failed on a kernel that held it";
inline constexpr llvm::StringLiteral kLeftByRestriction = "a pass failed on the kernel that held it";

Plan makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options,
              const PlanRestrictions &restrictions);

} // namespace tilewright

#endif
