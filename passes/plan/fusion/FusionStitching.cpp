// The policy `fusionstitching`: FusionStitching's exploration (section 5) over the fusions of XLA's rules. From the last
// vertex to the first, PatternReduction keeps the best patterns that start at a vertex; a beam over plans then selects
// patterns that do not overlap. Patterns may hand values over in registers or in shared memory, without communication
// between blocks; contractions stay apart. Packing of remote patterns is a step afterwards (packRemotely).
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/fusion/PatternReduction.h"

using namespace mlir;
using namespace tilewright;

namespace {
class FusionExplorer {
public:
  explicit FusionExplorer(SearchSpace &space) : space(space), vertices(groupByXla(space).front()) {}

  std::vector<Grouping> run() {
    order = vertices.inOrder();
    for (unsigned vertex : llvm::reverse(order))
      findCandidates(vertex);
    return selectPlans();
  }

private:
  bool isFusable(unsigned vertex) const { return !vertices.group(vertex).contracts; }

  /// Returns a pattern with the seconds that it saves (equation 3). The time of a launch, of the traffic between the
  /// vertices and of a worse schedule are parts of the predictions.
  std::optional<FusionPattern> make(const ExprSet &set) const {
    if (!space.dependences.isConvex(set.members()))
      return std::nullopt;
    const CostedGroup &fused = space.costs.of(set);
    if (!fused.isPossible())
      return std::nullopt;
    double apart = 0;
    for (unsigned vertex : verticesOf(set))
      apart += vertices.group(vertex).seconds;
    return FusionPattern{set, apart - fused.seconds};
  }

  SmallVector<unsigned> verticesOf(const ExprSet &set) const {
    SmallVector<unsigned> found;
    for (unsigned expr : set.members())
      if (unsigned vertex = vertices.nameOf(expr); !llvm::is_contained(found, vertex))
        found.push_back(vertex);
    return found;
  }

  void findCandidates(unsigned vertex) {
    if (!isFusable(vertex))
      return;
    const ExprSet &own = vertices.group(vertex).set;
    std::vector<ArrayRef<FusionPattern>> consumers;
    for (unsigned reader : vertices.readersOf(vertex))
      if (isFusable(reader))
        consumers.push_back(candidates[reader]);
    std::vector<FusionPattern> found =
        reducePatterns(own, consumers, [&](const ExprSet &set) { return make(set); });
    found.push_back({own, 0}); // its producers may fuse with it alone
    candidates[vertex] = std::move(found);
  }

  /// Returns the best plans (5.3), from the producers to the consumers.
  std::vector<Grouping> selectPlans() const {
    std::vector<Grouping> plans = {vertices};
    for (unsigned vertex : order)
      for (const FusionPattern &pattern : candidates.lookup(vertex)) {
        std::vector<Grouping> more;
        for (const Grouping &plan : plans)
          if (std::optional<Grouping> with = append(plan, pattern))
            more.push_back(std::move(*with));
        llvm::append_range(plans, more);
        llvm::stable_sort(plans, [](const Grouping &a, const Grouping &b) { return a.seconds() < b.seconds(); });
        if (plans.size() > kPatternsKept)
          plans.erase(plans.begin() + kPatternsKept, plans.end());
      }
    return plans;
  }

  /// Returns the plan with the pattern, or nothing if it overlaps another or makes a cycle.
  std::optional<Grouping> append(const Grouping &plan, const FusionPattern &pattern) const {
    SmallVector<unsigned> names;
    for (unsigned vertex : verticesOf(pattern.set)) {
      if (!plan.has(vertex) || plan.group(vertex).exprs != vertices.group(vertex).exprs)
        return std::nullopt;
      names.push_back(vertex);
    }
    if (names.size() < 2 || pattern.saved <= 0 || !plan.canMerge(names))
      return std::nullopt;
    Grouping with = plan;
    with.merge(names);
    return with;
  }

  SearchSpace &space;
  const Grouping vertices; ///< the groups of XLA's rules
  SmallVector<unsigned> order;
  llvm::DenseMap<unsigned, std::vector<FusionPattern>> candidates; ///< by the vertex that produces what others of them read
};
} // namespace

std::vector<Grouping> tilewright::groupByFusionStitching(SearchSpace &space) { return FusionExplorer(space).run(); }
