#include "passes/plan/scopes/PlanGroup.h"

#include "passes/plan/scopes/ChooseScopes.h"

using namespace mlir;
using namespace tilewright;

static GroupMemo *memoOf(const TensorGraph &graph) {
  return graph.exprs().empty() ? nullptr : GroupMemo::of(graph.exprs().front().op->getContext());
}

GroupProblem::GroupProblem(const TensorGraph &graph, const Target &target, NumericsMode numerics)
    : graph(graph), target(target), numerics(numerics), own(memoOf(graph) ? nullptr : std::make_unique<GroupMemo>()),
      known(own ? *own : *memoOf(graph)),
      signatures(std::make_unique<GroupSignatures>(graph, target, numerics, known)) {}

GroupProblem::GroupProblem(const TensorGraph &graph, const Target &target, NumericsMode numerics, GroupMemo &memo)
    : graph(graph), target(target), numerics(numerics), known(memo),
      signatures(std::make_unique<GroupSignatures>(graph, target, numerics, memo)) {}

namespace {
/// The plan of the first group with a signature.
struct FirstPlan {
  GroupFrame frame;
  OrDeclined<PlannedGroup> planned;
};
} // namespace

static const FirstPlan &firstPlan(const GroupProblem &problem, ArrayRef<unsigned> exprs, const MemoKey &signature,
                                  const GroupFrame &frame, RowPlacement rows) {
  const FirstPlan *first = problem.memo().find<FirstPlan>(signature);
  return first ? *first : problem.memo().keep<FirstPlan>(signature, {frame, planGroupAnew(problem, exprs, rows)});
}

static OrDeclined<PlannedGroup> plannedFor(const FirstPlan &first, const GroupFrame &frame) {
  if (!first.planned)
    return first.planned.why();
  return rebase(*first.planned, first.frame, frame);
}

OrDeclined<PlannedGroup> tilewright::planGroup(const GroupProblem &problem, ArrayRef<unsigned> exprs) {
  GroupFrame frame;
  MemoKey signature = problem.signatureOf(exprs, frame);
  return plannedFor(firstPlan(problem, exprs, signature, frame, RowPlacement::whole), frame);
}

OrDeclined<PlannedGroup> tilewright::planGroupSharingRows(const GroupProblem &problem, ArrayRef<unsigned> exprs) {
  GroupFrame frame;
  MemoKey signature = problem.signatureOf(exprs, frame);
  signature.push_back(static_cast<int64_t>(RowPlacement::shared)); // the group has another plan with whole rows
  return plannedFor(firstPlan(problem, exprs, signature, frame, RowPlacement::shared), frame);
}

EqualGroup tilewright::planEqualGroup(const GroupProblem &problem, ArrayRef<unsigned> exprs) {
  GroupFrame frame;
  MemoKey signature = problem.signatureOf(exprs, frame);
  return {firstPlan(problem, exprs, signature, frame, RowPlacement::whole).planned, problem.memo().numberOf(signature)};
}
