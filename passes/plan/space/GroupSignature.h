// The canonical signature of a fusion group: everything that planning the group reads of its graph, in an order that
// does not depend on the rest of the graph. Two groups with equal signatures, such as those of equal layers, get equal
// plans, so a group is planned once and the plan is rebased to the others (GroupMemo.h).
#ifndef TILEWRIGHT_PLAN_SPACE_GROUPSIGNATURE_H
#define TILEWRIGHT_PLAN_SPACE_GROUPSIGNATURE_H

#include "passes/plan/space/GroupMemo.h"
#include "passes/plan/space/PlannedGroup.h"

#include <array>

namespace tilewright {

/// The expressions, edges and tensors of a group, in the order in which its signature mentions them. Groups with equal
/// signatures have frames of equal sizes, and corresponding entries play the same part.
struct GroupFrame {
  llvm::SmallVector<unsigned> exprs;      ///< in program order
  llvm::SmallVector<unsigned> edges;      ///< edges inside the group
  llvm::SmallVector<mlir::Value> tensors; ///< inputs of the group in the order of reading, then results
};

/// Computes signatures of groups of one graph for one target and mode of numerics. Equal expressions are numbered alike
/// by the memo, so the body of an op is read once.
class GroupSignatures {
public:
  GroupSignatures(const TensorGraph &graph, const Target &target, NumericsMode numerics, GroupMemo &memo);

  /// Returns the signature of a group, whose expressions are in program order, and sets its frame.
  MemoKey of(llvm::ArrayRef<unsigned> exprs, GroupFrame &frame);

private:
  int64_t numberOf(unsigned expr);
  void appendInput(MemoKey &key, mlir::Value tensor);
  void appendUses(MemoKey &key, unsigned expr, llvm::ArrayRef<unsigned> exprs) const;
  void appendDependences(MemoKey &key, llvm::ArrayRef<unsigned> exprs) const;

  const TensorGraph &graph;
  GroupMemo &memo;
  const Target &target;
  int64_t machine;    ///< number of the target and the numerics
  std::vector<int64_t> numbers; ///< number of each expression; -1: not read yet
  llvm::DenseMap<mlir::Value, std::array<int64_t, 4>> inputs; ///< what was read of tensors from outside groups
};

/// Appends the scopes of the edges of a frame, and everything that was chosen for a space, to the key of a question
/// about a planned group.
void appendChoices(MemoKey &key, const GroupFrame &frame, const PlannedGroup &group);

/// Returns the group that was planned in the frame `from` as the corresponding group of the frame `to`.
PlannedGroup rebase(const PlannedGroup &group, const GroupFrame &from, const GroupFrame &to);

} // namespace tilewright

#endif
