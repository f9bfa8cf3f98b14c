// There are two kinds of candidates. Fused ones take every choice of scopes that differs from the planner's in one
// value (buffered or recomputed), and combine it with the tilings that the target's backend lists. All are predicted,
// and the fastest that differ are listed. Cut ones split the graph in two anywhere in program order, or into the
// dispatches that IREE would launch.
#include "passes/plan/fusion/Candidates.h"

#include "passes/backend/Backend.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"
#include "passes/plan/scopes/ChooseScopes.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>
#include <set>

using namespace mlir;
using namespace tilewright;

namespace {
constexpr size_t kMostFlips = 8;     ///< most values whose scope is flipped
constexpr unsigned kCutShare = 5;    ///< one in this many candidates cuts the subprogram

using Edges = llvm::DenseMap<unsigned, EdgeChoice>;

/// Kernels that together compute a graph, and their predicted time.
struct Candidate {
  std::vector<PlannedGroup> kernels;
  double seconds = 0;
  size_t scopes = 0; ///< number of its choice of scopes; 0 is the planner's
};

class CandidateLister {
public:
  CandidateLister(const TensorGraph &graph, const Target &target, const PlanOptions &options)
      : problem(graph, target, options), all(graph.exprs().size()) {
    std::iota(all.begin(), all.end(), 0);
  }

  std::vector<Plan> list(unsigned count) {
    OrDeclined<PlannedGroup> own = planGroup(groups, all);
    if (!own)
      return {};
    std::vector<Candidate> fused = fusedCandidates(*own), cut = cutCandidates();
    size_t cuts = std::min<size_t>(cut.size(), std::max(1u, count / kCutShare));
    add({{*own}});
    addVaried(fused, count - cuts);
    size_t most = plans.size() + cuts;
    for (const Candidate &candidate : cut)
      if (plans.size() < most)
        add(candidate);
    return std::move(plans);
  }

private:
  /// Adds candidates that differ. Predictions of similar tilings differ by less than their error, so the first half is
  /// for different tilings; then come different scopes, then the rest.
  void addVaried(ArrayRef<Candidate> fused, size_t limit) {
    std::set<std::vector<int64_t>> tilings = {plans.front().kernels.front().groups.front().tiles};
    std::set<size_t> scopes;
    for (const Candidate &candidate : fused)
      if (plans.size() < limit / 2 && tilings.insert(candidate.kernels.front().space.tiles).second)
        add(candidate);
    for (const Candidate &candidate : fused)
      if (plans.size() < limit && scopes.insert(candidate.scopes).second)
        add(candidate);
    for (const Candidate &candidate : fused)
      if (plans.size() < limit)
        add(candidate);
  }

  //===--------------------------------------------------------------------===//
  // One kernel
  //===--------------------------------------------------------------------===//

  std::vector<Candidate> fusedCandidates(const PlannedGroup &own) const {
    std::vector<Candidate> found;
    for (auto [choice, edges] : llvm::enumerate(scopeChoices(own.edges)))
      if (OrDeclined<PlannedGroup> part = planGroupWith(groups, all, edges))
        for (PlannedGroup &tiled : tilings(*part))
          found.push_back({{tiled}, secondsOf(tiled), choice});
    sort(found);
    return found;
  }

  /// Returns the given scopes, the scopes that recompute every elementwise value, and the given scopes with one value
  /// flipped.
  std::vector<Edges> scopeChoices(const Edges &own) const {
    std::vector<Edges> choices = {own, chooseScopes(graph, all, /*threadOnly=*/true, target)};
    for (unsigned expr : all) {
      if (choices.size() >= 2 + kMostFlips)
        break;
      if (graph.exprs()[expr].oneReliesOnOne() && graph.exprs()[expr].kind != ExprKind::movement)
        if (std::optional<Edges> flipped = flip(own, expr))
          choices.push_back(std::move(*flipped));
    }
    return choices;
  }

  std::optional<Edges> flip(Edges edges, unsigned expr) const {
    bool flipped = false;
    for (unsigned edge : graph.outEdges(expr)) {
      auto entry = edges.find(edge);
      if (entry == edges.end())
        continue;
      EdgeChoice &choice = entry->second;
      if (choice.scope == tile::Scope::block)
        choice = {tile::Scope::thread, true, "recomputed where it is read: measured to be faster than buffering it"};
      else
        choice = {tile::Scope::block, false, "computed once and buffered: measured to be faster than recomputing it"};
      flipped = true;
    }
    return flipped ? std::optional(std::move(edges)) : std::nullopt;
  }

  /// Returns the group with each tiling that the backend lists.
  std::vector<PlannedGroup> tilings(const PlannedGroup &part) const {
    std::vector<PlannedGroup> parts;
    for (IterationSpace &space : backendOf(target).tilings(graph, part.choice, target, part.space)) {
      PlannedGroup &tiled = parts.emplace_back(part);
      tiled.space = std::move(space);
      predict(tiled);
    }
    return parts;
  }

  void predict(PlannedGroup &part) const {
    part.work = workOf(graph, part.space, target);
    part.predicted = estimate(part.work, target);
  }

  double secondsOf(const PlannedGroup &part) const {
    return part.predicted.seconds + backendOf(target).startSeconds(part.space, target);
  }

  //===--------------------------------------------------------------------===//
  // Several kernels
  //===--------------------------------------------------------------------===//

  std::vector<Candidate> cutCandidates() const {
    std::vector<Candidate> found;
    auto consider = [&](ArrayRef<SmallVector<unsigned>> pieces) {
      if (std::optional<Candidate> candidate = inPieces(pieces); candidate && candidate->kernels.size() > 1)
        found.push_back(std::move(*candidate));
    };
    for (size_t at = 1; at < all.size(); ++at)
      consider(
          {SmallVector<unsigned>(ArrayRef(all).take_front(at)), SmallVector<unsigned>(ArrayRef(all).drop_front(at))});
    sort(found);
    // IREE's dispatches come first, so that they are always measured.
    size_t cuts = found.size();
    consider(dispatchesOfIree(graph, all));
    std::rotate(found.begin(), found.begin() + cuts, found.end());
    return found;
  }

  std::optional<Candidate> inPieces(ArrayRef<SmallVector<unsigned>> pieces) const {
    Candidate candidate;
    for (const SmallVector<unsigned> &piece : pieces) {
      if (llvm::all_of(piece, [&](unsigned expr) { return isView(graph.exprs()[expr]); }))
        continue;
      OrDeclined<PlannedGroup> part = planGroup(groups, piece);
      if (!part)
        return std::nullopt;
      candidate.seconds += secondsOf(*part);
      candidate.kernels.push_back(std::move(*part));
    }
    return candidate;
  }

  //===--------------------------------------------------------------------===//
  // Conversion to plans
  //===--------------------------------------------------------------------===//

  static void sort(std::vector<Candidate> &candidates) {
    llvm::stable_sort(candidates, [](const Candidate &a, const Candidate &b) { return a.seconds < b.seconds; });
  }

  void add(const Candidate &candidate) {
    PlanDraft draft = draftOf(candidate);
    if (!draft.verify().empty())
      return; // kernels depend on each other
    Plan plan = planOf(orderKernels(problem, std::move(draft)).decisions);
    if (plan.verify(graph).empty() && known.insert(llvm::formatv("{0}", toJson(plan)).str()).second)
      plans.push_back(std::move(plan));
  }

  PlanDraft draftOf(const Candidate &candidate) const {
    PlanDraft draft(graph, problem.block());
    Decisions &decisions = draft.decisions;
    decisions.reasons.assign(graph.exprs().size(), kBorderView.str());
    for (auto [index, part] : llvm::enumerate(candidate.kernels)) {
      for (unsigned expr : part.choice.exprs)
        decisions.partOf[expr] = index;
      decisions.parts.push_back(part);
      decisions.kernels.push_back({static_cast<unsigned>(index)});
      draft.partition.join(part.choice.exprs);
    }
    explainLaunches(graph, decisions, [](const TensorEdge &) {
      return Declined{"two kernels were measured to be faster than one", "another machine"};
    });
    return draft;
  }

  Plan planOf(const Decisions &decisions) const {
    Plan plan = writePlan(graph, target, problem.options.policy, problem.options.numerics, decisions);
    addLeastMovement(plan, graph, target, decisions);
    return plan;
  }

  FusionProblem problem;
  const TensorGraph &graph = problem.graph;
  const Target &target = problem.machine;
  const GroupProblem &groups = problem.groups;
  std::vector<unsigned> all;
  std::vector<Plan> plans;
  std::set<std::string> known; ///< JSON of the plans that were added
};
} // namespace

std::vector<Plan> tilewright::planCandidates(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                                             unsigned count) {
  return CandidateLister(graph, target, options).list(count);
}
