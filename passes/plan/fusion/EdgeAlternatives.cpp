#include "passes/plan/fusion/EdgeAlternatives.h"

#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/fusion/SizeFlips.h"
#include "passes/plan/scopes/ChooseScopes.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

using Pieces = SmallVector<SmallVector<unsigned>>;

namespace {
/// Groups in place of one, and their predicted seconds.
struct Cut {
  Pieces pieces;
  double seconds = std::numeric_limits<double>::infinity();
};

class EdgeAnalyst {
public:
  EdgeAnalyst(const FusionProblem &problem, const PlanDraft &plan)
      : problem(problem), graph(problem.graph), decisions(plan.decisions), partition(plan.partition), search(problem),
        space(search.space), sizes(problem.groups) {}

  std::vector<EdgeAlternative> run() {
    std::vector<EdgeAlternative> found;
    for (unsigned edge = 0; edge < graph.edges().size(); ++edge) {
      int64_t from = decisions.partOf[graph.edges()[edge].producer], to = decisions.partOf[graph.edges()[edge].consumer];
      if (from < 0 || to < 0)
        continue;
      found.push_back(from == to                       ? insideGroup(edge, from)
                      : kernelOf(from) == kernelOf(to) ? insideKernel(edge, from, to)
                                                       : betweenKernels(edge, from, to));
    }
    return found;
  }

private:
  unsigned kernelOf(unsigned group) const {
    auto holds = [&](ArrayRef<unsigned> members) { return llvm::is_contained(members, group); };
    return llvm::find_if(decisions.kernels, holds) - decisions.kernels.begin();
  }

  Value tensorOf(unsigned edge) const {
    const TensorEdge &entry = graph.edges()[edge];
    return graph.exprs()[entry.producer].op->getResult(entry.result);
  }

  //===--------------------------------------------------------------------===//
  // Inside a group
  //===--------------------------------------------------------------------===//

  EdgeAlternative insideGroup(unsigned edge, unsigned number) {
    const PlannedGroup &group = *decisions.parts[number];
    EdgeAlternative found{edge, group.edges.find(edge)->second.scope, group.predicted.seconds};
    OrDeclined<double> flipped = secondsFlipped(edge, group);
    Cut cut = bestCut(edge, group);
    if (flipped && *flipped <= cut.seconds) {
      found.other = found.scope == tile::Scope::thread ? tile::Scope::block : tile::Scope::thread;
      found.otherSeconds = *flipped;
      found.flip = llvm::formatv("{0} less for {1}", microseconds(*flipped - found.seconds),
                                 found.other == tile::Scope::thread ? "computing it again" : "the buffer");
    } else if (cut.seconds < std::numeric_limits<double>::infinity()) {
      found.otherSeconds = cut.seconds;
      found.flip = flipBetween(found.seconds, cut, edge);
    } else {
      found.reason = flipped.why().reason;
      found.flip = flipped.why().wouldChange;
    }
    if (found.otherSeconds && std::abs(*found.otherSeconds - found.seconds) <= kTie * found.seconds)
      found.flip = "anything that costs time: both are predicted alike";
    else if (found.otherSeconds && *found.otherSeconds < found.seconds)
      found.flip = "nothing: it is predicted faster, but the policy did not try it or the difference is within the error";
    return found;
  }

  /// Returns the seconds of the group with the producer's value in a buffer instead of registers, or the other way
  /// round.
  OrDeclined<double> secondsFlipped(unsigned edge, const PlannedGroup &group) const {
    unsigned producer = graph.edges()[edge].producer;
    bool isBuffered = group.edges.find(edge)->second.scope == tile::Scope::block;
    if (isBuffered && !graph.exprs()[producer].oneReliesOnOne())
      return Declined{"a reduction hands its result over when it is complete", "nothing"};
    llvm::DenseMap<unsigned, EdgeChoice> edges = group.edges;
    for (unsigned other : graph.outEdges(producer))
      if (auto choice = edges.find(other); choice != edges.end())
        choice->second = {isBuffered ? tile::Scope::thread : tile::Scope::block, isBuffered, ""};
    OrDeclined<PlannedGroup> flipped = planGroupWith(problem.groups, group.choice.exprs, std::move(edges));
    return flipped ? OrDeclined<double>(flipped->predicted.seconds) : flipped.why();
  }

  /// Returns the best way to cut the group such that the edge leads from one piece to another: behind all that the
  /// producer depends on, or in front of all that depends on the consumer.
  Cut bestCut(unsigned edge, const PlannedGroup &group) {
    const TensorEdge &entry = graph.edges()[edge];
    Cut best;
    for (bool behindProducer : {true, false}) {
      SmallVector<unsigned> front, back;
      for (unsigned expr : group.choice.exprs) {
        bool isFront = behindProducer ? expr == entry.producer || reaches(expr, entry.producer)
                                      : expr != entry.consumer && !reaches(entry.consumer, expr);
        (isFront ? front : back).push_back(expr);
      }
      Cut cut{{}, 0};
      for (ArrayRef<unsigned> side : {ArrayRef<unsigned>(front), ArrayRef<unsigned>(back)})
        addPieces(side, cut);
      if (cut.seconds < best.seconds)
        best = std::move(cut);
    }
    return best;
  }

  bool reaches(unsigned from, unsigned to) const {
    return space.dependences.reaches(space.dependences.nodeOf(from), space.dependences.nodeOf(to));
  }

  /// Adds the expressions as one group, or one for each expression if that is impossible.
  void addPieces(ArrayRef<unsigned> exprs, Cut &cut) {
    const CostedGroup &whole = space.groupOf(exprs);
    if (whole.isPossible()) {
      cut.pieces.push_back(whole.exprs);
      cut.seconds += whole.seconds;
      return;
    }
    for (unsigned expr : exprs) {
      cut.pieces.push_back({expr});
      cut.seconds += space.alone(expr).seconds;
    }
  }

  /// Says what would make two kernels as fast as one.
  std::string flipBetween(double seconds, const Cut &cut, unsigned edge) {
    double margin = (cut.seconds - seconds) / std::max<size_t>(1, cut.pieces.size() - 1);
    std::string flip = margin < problem.machine.launchSeconds
                           ? llvm::formatv("a launch that costs {0} less", microseconds(margin)).str()
                           : llvm::formatv("one kernel that takes {0} longer", microseconds(cut.seconds - seconds)).str();
    if (std::string size = sizes.nearest(cut.pieces, tensorOf(edge)); !size.empty())
      return size + ", or " + flip;
    return flip;
  }

  //===--------------------------------------------------------------------===//
  // Between groups
  //===--------------------------------------------------------------------===//

  /// An edge at scope grid against two launches. What else is in the kernel stays with one of the ends.
  EdgeAlternative insideKernel(unsigned edge, unsigned from, unsigned to) const {
    ArrayRef<unsigned> kernel = decisions.kernels[kernelOf(from)];
    auto predict = [&](ArrayRef<unsigned> groups) {
      return predictionOf(graph, decisions, groups, problem.machine).seconds;
    };
    EdgeAlternative found{edge, tile::Scope::grid, predict(kernel)};
    size_t before = std::max<size_t>(1, llvm::find(kernel, to) - kernel.begin());
    found.otherSeconds = predict(kernel.take_front(before)) + predict(kernel.drop_front(before));
    found.flip = llvm::formatv("a barrier of the grid that costs {0} more",
                               microseconds(*found.otherSeconds - found.seconds));
    return found;
  }

  EdgeAlternative betweenKernels(unsigned edge, unsigned from, unsigned to) {
    const PlannedGroup &a = *decisions.parts[from], &b = *decisions.parts[to];
    EdgeAlternative found{edge, tile::Scope::launch, a.predicted.seconds + b.predicted.seconds, tile::Scope::block};
    if (!partition.canMerge(partition.groupOf(a.choice.exprs.front()), partition.groupOf(b.choice.exprs.front()))) {
      found.reason = "another op depends on the producer's kernel and the consumer's kernel on it, or a pass failed on one";
      found.flip = "the ops between the two in the kernel";
      return found;
    }
    SmallVector<unsigned> both(a.choice.exprs);
    llvm::append_range(both, b.choice.exprs);
    llvm::sort(both);
    const CostedGroup &merged = space.groupOf(both);
    if (!merged.isPossible()) {
      found.reason = merged.why.reason;
      found.flip = merged.why.wouldChange;
      return found;
    }
    OrDeclined<PlannedGroup> whole = planGroup(problem.groups, both);
    found.other = whole->edges.find(edge)->second.scope;
    found.otherSeconds = merged.seconds;
    double margin = merged.seconds - found.seconds;
    found.flip = margin < 0 ? "nothing: it is predicted faster, but the policy did not try it"
                            : llvm::formatv("a launch that costs {0} more", microseconds(margin)).str();
    std::string size = margin < 0 ? "" : sizes.nearest({a.choice.exprs, b.choice.exprs}, tensorOf(edge));
    if (!size.empty())
      found.flip = size + ", or " + found.flip;
    return found;
  }

  const FusionProblem &problem;
  const TensorGraph &graph;
  const Decisions &decisions;
  const Partition &partition;
  GroupSearch search;
  SearchSpace &space;
  SizeFlips sizes;
};
} // namespace

std::vector<EdgeAlternative> tilewright::alternativesOf(const FusionProblem &problem, const PlanDraft &plan) {
  return EdgeAnalyst(problem, plan).run();
}
