#include "passes/plan/fusion/Regions.h"

#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/ir/PlanOfOps.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace tilewright;

/// A plan whose kernels are predicted to take more than this many times the time of the policy's is not worth a
/// measurement. Predictions are rarely off by more (docs/design/measuring.md).
static constexpr double kHopeless = 1.5;
/// Most ops of a region. Larger ones are the whole of most models, and their kernels take minutes to compile.
static constexpr size_t kMostOps = 256;

static double secondsOf(const Plan &plan) {
  double seconds = 0;
  for (const KernelPlan &kernel : plan.kernels)
    for (const CostTerm &term : kernel.predicted)
      seconds += term.name == "seconds" ? term.value : 0;
  return seconds;
}

/// Returns text that is equal for plans with equal kernels, whatever their reasons.
static std::string kernelsOf(const Plan &plan) {
  Plan kernels{plan.target, "", plan.numerics, plan.kernels, plan.streams, {}, {}, {}, {}};
  for (KernelPlan &kernel : kernels.kernels)
    kernel.name.clear();
  return llvm::formatv("{0}", toJson(kernels)).str();
}

namespace {
/// Numbers of the kernels that have each op, -1 for ops that are left.
std::vector<int64_t> kernelOf(const TensorGraph &graph, const Plan &plan) {
  std::vector<int64_t> kernels(graph.exprs().size(), -1);
  for (auto [number, kernel] : llvm::enumerate(plan.kernels))
    for (const GroupPlan &group : kernel.groups)
      for (const OpPlan &op : group.ops)
        kernels[op.id] = number;
  return kernels;
}

class RegionFinder {
public:
  RegionFinder(const TensorGraph &graph, Plan base, Plan apart)
      : graph(graph), base(std::move(base)), apart(std::move(apart)), inBase(kernelOf(graph, this->base)),
        inApart(kernelOf(graph, this->apart)) {}

  /// Adds the regions in which another plan differs.
  void add(const Plan &other) {
    std::vector<int64_t> inOther = kernelOf(graph, other);
    for (const std::vector<unsigned> &ops : regionsOf(other, inOther))
      if (hasKernels(ops, inBase) && hasKernels(ops, inOther))
        plansOf[ops].push_back(planOfOps(other, ops));
  }

  std::vector<PlanRegion> take(unsigned count) {
    add(apart);
    std::vector<PlanRegion> regions;
    for (auto &[ops, others] : plansOf)
      if (PlanRegion region = regionOf(ops, std::move(others), count); region.plans.size() > 1)
        regions.push_back(std::move(region));
    return regions;
  }

private:
  /// Returns the smallest sets of ops that are unions of kernels in both plans.
  std::vector<std::vector<unsigned>> regionsOf(const Plan &other, ArrayRef<int64_t> inOther) const {
    llvm::EquivalenceClasses<unsigned> joined;
    for (const Plan *plan : {&base, &other})
      for (const KernelPlan &kernel : plan->kernels)
        for (const GroupPlan &group : kernel.groups)
          for (const OpPlan &op : group.ops)
            joined.unionSets(kernel.groups.front().ops.front().id, op.id);
    std::map<unsigned, std::vector<unsigned>> found;
    for (unsigned op = 0; op < graph.exprs().size(); ++op)
      if (inBase[op] >= 0 || inOther[op] >= 0)
        found[joined.getLeaderValue(op)].push_back(op);
    std::vector<std::vector<unsigned>> regions;
    for (auto &[leader, ops] : found)
      if (ops.size() > 1 && ops.size() <= kMostOps)
        regions.push_back(withViews(ops));
    return regions;
  }

  /// Adds the reshapes that both plans leave between ops of the region.
  std::vector<unsigned> withViews(ArrayRef<unsigned> ops) const {
    llvm::DenseSet<unsigned> members(ops.begin(), ops.end());
    for (unsigned op = 0; op < graph.exprs().size(); ++op)
      if (isView(graph.exprs()[op]) && !members.contains(op) && inBase[op] < 0 && readsOneOf(members, op) &&
          isReadByOneOf(members, op))
        members.insert(op);
    std::vector<unsigned> all(members.begin(), members.end());
    llvm::sort(all);
    return all;
  }

  bool readsOneOf(const llvm::DenseSet<unsigned> &members, unsigned op) const {
    return llvm::any_of(graph.inEdges(op), [&](unsigned edge) { return members.contains(graph.edges()[edge].producer); });
  }
  bool isReadByOneOf(const llvm::DenseSet<unsigned> &members, unsigned op) const {
    return llvm::any_of(graph.outEdges(op), [&](unsigned edge) { return members.contains(graph.edges()[edge].consumer); });
  }

  /// Returns true if a plan leaves nothing of the region but reshapes.
  bool hasKernels(ArrayRef<unsigned> ops, ArrayRef<int64_t> kernels) const {
    return llvm::all_of(ops, [&](unsigned op) { return kernels[op] >= 0 || isView(graph.exprs()[op]); });
  }

  PlanRegion regionOf(const std::vector<unsigned> &ops, std::vector<Plan> others, unsigned count) const {
    PlanRegion region{ops, {planOfOps(base, ops)}};
    std::vector<std::string> known = {kernelsOf(region.plans.front())};
    auto isNew = [&](const Plan &plan) {
      std::string own = kernelsOf(plan);
      bool isNew = !llvm::is_contained(known, own);
      known.push_back(std::move(own));
      return isNew;
    };
    std::optional<Plan> unfused;
    if (hasKernels(ops, inApart))
      if (Plan own = planOfOps(apart, ops); isNew(own))
        unfused = std::move(own);
    llvm::stable_sort(others, [](const Plan &a, const Plan &b) { return secondsOf(a) < secondsOf(b); });
    double most = kHopeless * secondsOf(region.plans.front());
    for (Plan &other : others)
      if (secondsOf(other) <= most && region.plans.size() + (unfused ? 1 : 0) < count && isNew(other))
        region.plans.push_back(std::move(other));
    if (unfused && count > 1)
      region.plans.push_back(std::move(*unfused));
    return region;
  }

  const TensorGraph &graph;
  const Plan base, apart;
  const std::vector<int64_t> inBase, inApart;
  std::map<std::vector<unsigned>, std::vector<Plan>> plansOf; ///< by the ops of the region
};
} // namespace

OrDeclined<std::vector<PlanRegion>> tilewright::regionsToMeasure(const TensorGraph &graph, const Target &target,
                                                             const PlanOptions &options, unsigned count) {
  FusionProblem problem(graph, target, options);
  OrDeclined<Plan> base = solve(problem);
  if (!base)
    return base.why();
  RegionFinder finder(graph, std::move(*base), writePlan(problem, *exploreUnfused(problem)));
  for (const ScoredPlan &considered : searchPlans(problem))
    finder.add(writePlan(problem, considered.plan));
  return finder.take(count);
}
