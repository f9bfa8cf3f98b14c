// Plans fusion groups, each once: equal groups, such as those of equal layers, share one plan through the memo.
#ifndef TILEWRIGHT_PLAN_SCOPES_PLANGROUP_H
#define TILEWRIGHT_PLAN_SCOPES_PLANGROUP_H

#include "passes/plan/space/GroupSignature.h"
#include "passes/support/Declined.h"

namespace tilewright {

/// A graph, the target and the numerics that its groups are planned for, and what is already known about them. It
/// refers to the graph and the target. One thread uses it at a time; several may share the memo.
class GroupProblem {
public:
  /// Uses the memo of the graph's context, or one of its own if the context has none.
  GroupProblem(const TensorGraph &graph, const Target &target, NumericsMode numerics);
  GroupProblem(const TensorGraph &graph, const Target &target, NumericsMode numerics, GroupMemo &memo);

  const TensorGraph &graph;
  const Target &target;
  const NumericsMode numerics;

  /// Returns the signature of a group, whose expressions are in program order, and sets its frame.
  MemoKey signatureOf(llvm::ArrayRef<unsigned> exprs, GroupFrame &frame) const { return signatures->of(exprs, frame); }
  GroupMemo &memo() const { return known; }

private:
  std::unique_ptr<GroupMemo> own;
  GroupMemo &known;
  std::unique_ptr<GroupSignatures> signatures;
};

/// Plans the expressions, which are in program order, as one group with the better of both scope choices
/// (planGroupAnew). Declines if no group is possible.
OrDeclined<PlannedGroup> planGroup(const GroupProblem &problem, llvm::ArrayRef<unsigned> exprs);

/// Plans the expressions as one group whose blocks may have parts of rows (SharedRows.h).
OrDeclined<PlannedGroup> planGroupSharingRows(const GroupProblem &problem, llvm::ArrayRef<unsigned> exprs);

/// The plan of the first group that equals another one, with the expressions and tensors of the first group, and a
/// number that equal groups share.
struct EqualGroup {
  const OrDeclined<PlannedGroup> &planned;
  int64_t signature;
};

/// Plans the expressions, or finds the plan of an equal group. It stays valid as long as the memo.
EqualGroup planEqualGroup(const GroupProblem &problem, llvm::ArrayRef<unsigned> exprs);

} // namespace tilewright

#endif
