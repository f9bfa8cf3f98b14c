#include "passes/plan/fusion/GroupingPolicy.h"

#include "passes/plan/fusion/Explorers.h"

using namespace mlir;
using namespace tilewright;

static SmallVector<unsigned> startedIn(const PlanDraft &draft) {
  SmallVector<unsigned> exprs;
  for (auto [expr, group] : llvm::enumerate(draft.decisions.partOf))
    if (group >= 0)
      exprs.push_back(expr);
  return exprs;
}

GroupSearch::GroupSearch(const FusionProblem &problem)
    : problem(problem), start(runSteps(problem, {{"startGroups", startGroups}})),
      space(problem.groups, start.partition, startedIn(start),
            [&problem](unsigned expr) { return problem.restrictions.keepsApart(expr); }) {}

Grouping GroupSearch::groupingOf(const PlanDraft &draft) {
  Grouping grouping(space);
  for (const std::optional<PlannedGroup> &group : draft.decisions.parts)
    if (group && group->choice.exprs.size() > 1) {
      SmallVector<unsigned> names;
      for (unsigned expr : group->choice.exprs)
        names.push_back(grouping.nameOf(expr));
      grouping.merge(names);
    }
  return grouping;
}

PlanDraft GroupSearch::draftOf(const Grouping &grouping, WhyApart whyApart) const {
  auto groups = llvm::map_to_vector(grouping.inOrder(),
                                    [&](unsigned name) { return ArrayRef<unsigned>(grouping.group(name).exprs); });
  PlanDraft draft = withGroups(problem, start, groups);
  explainLaunches(problem.graph, draft.decisions, [&](const TensorEdge &edge) {
    return whyApart ? whyApart(grouping, grouping.nameOf(edge.producer), grouping.nameOf(edge.consumer))
                    : Declined{"the policy '" + problem.options.policy + "' gives each a kernel of its own",
                               "another policy"};
  });
  return draft;
}

ScoredPlan GroupSearch::scored(PlanDraft plan) const {
  PlanScore score = scoreOf(problem, plan, space.exprs);
  return {std::move(plan), score};
}

ScoredPlan tilewright::finish(GroupSearch &search, const Grouping &grouping, ArrayRef<PlanStep> steps,
                              WhyApart whyApart) {
  const FusionProblem &problem = search.problem;
  return search.scored(runSteps(problem, search.draftOf(grouping, whyApart), steps));
}

ScoredPlan tilewright::planOf(GroupSearch &search, ArrayRef<Grouping> groupings, ArrayRef<PlanStep> steps) {
  std::optional<ScoredPlan> best;
  for (const Grouping &grouping : groupings) {
    ScoredPlan made = finish(search, grouping, steps);
    if (!best || made.score.isBetterThan(best->score))
      best = std::move(made);
  }
  return std::move(*best);
}

SmallVector<PlanStep> GroupingPolicy::steps() const {
  SmallVector<PlanStep> steps = {
      {"trimViews", trimViews}, {"dropSlowGroups", dropSlowGroups}, {"makeKernels", makeKernels}};
  PlanStep order{"orderKernels", orderKernels}, dropLone{"dropLoneKernels", dropLoneKernels};
  llvm::append_range(steps, packing);
  steps.push_back(barriers.empty() ? dropLone : order);
  llvm::append_range(steps, barriers);
  steps.push_back(barriers.empty() ? order : dropLone);
  return steps;
}

static constexpr PlanStep kPack[] = {{"packKernels", packKernels}};
static constexpr PlanStep kPackRemotely[] = {{"packRemotely", packRemotely}};
static constexpr PlanStep kFill[] = {{"fillSubprograms", fillSubprograms}};
static constexpr PlanStep kFillAndReuse[] = {{"fillSubprograms", fillSubprograms}, {"reuseTiles", reuseTiles}};

ArrayRef<GroupingPolicy> tilewright::groupingPolicies() {
  static constexpr GroupingPolicy policies[] = {{"xla", groupByXla, kPack},
                                                {"fusionstitching", groupByFusionStitching, kPackRemotely},
                                                {"welder", groupByWelder},
                                                {"powerfusion", groupByPowerFusion},
                                                {"souffle", groupBySouffle, {}, kFillAndReuse},
                                                {"chimera", groupByChimera}};
  return policies;
}

ArrayRef<GroupingPolicy> tilewright::souffleAblation() {
  static constexpr GroupingPolicy steps[] = {{"souffle-v1", groupHorizontally},
                                             {"souffle-v2", groupBySouffle},
                                             {"souffle-v3", groupBySouffle, {}, kFill}};
  return steps;
}

OrDeclined<PlanDraft> tilewright::exploreByGroupingPolicy(const FusionProblem &problem) {
  auto all = llvm::concat<const GroupingPolicy>(groupingPolicies(), souffleAblation());
  auto policy = llvm::find_if(all, [&](const GroupingPolicy &own) { return own.name == problem.options.policy; });
  GroupSearch search(problem);
  return planOf(search, policy->group(search.space), policy->steps()).plan;
}
