// The decisions of a planner, and their conversion to a Plan.
#ifndef TILEWRIGHT_PLAN_GRID_WRITEPLAN_H
#define TILEWRIGHT_PLAN_GRID_WRITEPLAN_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"
#include "passes/support/Declined.h"
#include <map>

namespace tilewright {

/// The reason why a reshape is left to IREE.
inline constexpr llvm::StringLiteral kBorderView = "a reshape at the border of a kernel: a view, nothing to compute";

/// The decisions of a planner about all expressions of a graph.
struct Decisions {
  std::vector<std::optional<PlannedGroup>> parts;   ///< empty if merged into another group or dropped
  std::vector<int64_t> partOf;                      ///< group of each expression; -1: left to IREE
  std::vector<std::string> reasons;                 ///< reason why each expression is left to IREE
  std::vector<llvm::SmallVector<unsigned>> kernels; ///< groups of each kernel, in launch order
  std::vector<ResidentTile> residentInputs; ///< with numbers of groups in `parts`
  std::map<std::pair<unsigned, unsigned>, Declined> declined;    ///< by producing and consuming group
  std::map<std::pair<unsigned, unsigned>, std::string> barriers; ///< reason for each grid barrier, keyed as above
};

/// Returns the number of bindings of a kernel of these groups. A tensor that several of them access is bound once.
int64_t countBindings(const TensorGraph &graph, const Decisions &decisions, llvm::ArrayRef<unsigned> parts,
                      const Target &target);

/// Predicts a kernel of these groups, which run in phases if some read results of others.
Prediction predictionOf(const TensorGraph &graph, const Decisions &decisions, llvm::ArrayRef<unsigned> kernel,
                        const Target &target);

/// Writes the decisions as a plan, without the least movement of its groups.
Plan writePlan(const TensorGraph &graph, const Target &target, llvm::StringRef policy, NumericsMode numerics,
               const Decisions &decisions);
/// Adds the least movement of each group to the plan of these decisions. It is for people who read the plan, and
/// finding it takes longer than planning.
void addLeastMovement(Plan &plan, const TensorGraph &graph, const Target &target, const Decisions &decisions);

} // namespace tilewright

#endif
