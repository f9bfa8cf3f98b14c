// Moves the borders of fusion groups that have finished growing. A transpose moves from the group that makes it to the
// group that reads it if the machine reads in any order and that is predicted to be faster. Reshapes at a border leave
// their group.
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"

using namespace mlir;
using namespace tilewright;

namespace {
class BorderMover : PlannerStep {
public:
  using PlannerStep::PlannerStep;

  /// Moves a transpose that only one other group reads into that group, if both are then predicted to take less time.
  /// The producer writes its elements as threads hold them, and the reader reads them by another index. While groups
  /// grow, a transpose joins its producer.
  void handTransposesOn() {
    for (unsigned expr = graph.exprs().size(); expr-- > 0 && target.traits.readsTransposed;)
      if (int64_t reader = onlyReaderElsewhere(expr); reader >= 0 && permutesElements(graph.exprs()[expr]))
        handOn(expr, reader);
  }

  /// Removes reshapes from the borders of groups. Outside they are free; inside they only complicate indices.
  void trimViews() {
    for (std::optional<PlannedGroup> &group : decisions.parts)
      while (group) {
        auto view = llvm::find_if(group->choice.exprs, [&](unsigned expr) { return isBorderView(*group, expr); });
        if (view == group->choice.exprs.end())
          break;
        unsigned expr = *view;
        SmallVector<unsigned> rest(group->choice.exprs);
        llvm::erase(rest, expr);
        std::optional<PlannedGroup> trimmed;
        if (!rest.empty()) {
          OrDeclined<PlannedGroup> planned = planGroup(groups, rest);
          if (!planned)
            break;
          trimmed = std::move(*planned);
          trimmed->apartSeconds = group->apartSeconds;
        }
        group = std::move(trimmed);
        leave(expr, kBorderView);
      }
  }

private:
  static bool permutesElements(const TensorExpr &expr) {
    return expr.kind == ExprKind::movement && expr.inputs.size() == 1 && expr.inputs[0].guard == IntegerSet() &&
           !isView(expr) && expr.inputs[0].map.isPermutation();
  }

  /// Returns the group of all readers of `expr`, if it is a single group and not that of `expr`; else -1.
  int64_t onlyReaderElsewhere(unsigned expr) const {
    if (decisions.partOf[expr] < 0 || graph.escapes(expr) || graph.outEdges(expr).empty())
      return -1;
    int64_t reader = decisions.partOf[graph.edges()[graph.outEdges(expr).front()].consumer];
    bool isOnly = reader != decisions.partOf[expr] && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
                    return decisions.partOf[graph.edges()[edge].consumer] == reader;
                  });
    return isOnly ? reader : -1;
  }

  /// Compares by predicted time and, if that is equal, by L2 traffic.
  static bool isBetter(const PlannedGroup &a, const PlannedGroup &b, const PlannedGroup &thanA,
                       const PlannedGroup &thanB) {
    double seconds = a.predicted.seconds + b.predicted.seconds,
           before = thanA.predicted.seconds + thanB.predicted.seconds;
    auto l2Bytes = [](const PlannedGroup &group) { return group.space.blockWork.movedBytes; };
    return seconds < before || (seconds == before && l2Bytes(a) + l2Bytes(b) < l2Bytes(thanA) + l2Bytes(thanB));
  }

  /// Moves `expr` to the group `reader` if that is better for both groups.
  void handOn(unsigned expr, unsigned reader) {
    if (isApart(decisions.partOf[expr]) || isApart(reader))
      return;
    std::optional<PlannedGroup> &from = decisions.parts[decisions.partOf[expr]], &to = decisions.parts[reader];
    SmallVector<unsigned> rest(from->choice.exprs), more(to->choice.exprs);
    llvm::erase(rest, expr);
    more.insert(llvm::lower_bound(more, expr), expr);
    if (rest.empty())
      return;
    OrDeclined<PlannedGroup> without = planGroup(groups, rest);
    if (!without)
      return;
    OrDeclined<PlannedGroup> with = planGroup(groups, more);
    if (!with || !isBetter(*without, *with, *from, *to))
      return;
    without->apartSeconds = from->apartSeconds;
    with->apartSeconds = to->apartSeconds;
    from = std::move(*without);
    to = std::move(*with);
    decisions.partOf[expr] = reader;
  }

  /// Returns true for a reshape that has no reader, or no producer, inside the group.
  bool isBorderView(const PlannedGroup &group, unsigned expr) const {
    if (!isView(graph.exprs()[expr]))
      return false;
    auto inside = [&](unsigned other) { return group.choice.contains(other); };
    bool read = llvm::any_of(graph.outEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].consumer); });
    bool fed = llvm::any_of(graph.inEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].producer); });
    return !read || !fed;
  }
};
} // namespace

PlanDraft tilewright::handTransposesOn(const FusionProblem &problem, PlanDraft plan) {
  BorderMover(problem, plan).handTransposesOn();
  return plan;
}

PlanDraft tilewright::trimViews(const FusionProblem &problem, PlanDraft plan) {
  BorderMover(problem, plan).trimViews();
  return plan;
}
