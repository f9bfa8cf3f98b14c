// Moves the borders of fusion groups that have grown: transposes go to the group that reads them, and reshapes leave.
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"

using namespace mlir;
using namespace tilewright;

namespace {
class BorderMover : PlannerStep {
public:
  using PlannerStep::PlannerStep;

  /// On GPUs a transpose that another part alone reads goes there, where both are predicted to take less time then:
  /// what it transposes is written as threads have it, and read by another index. While parts grow it is taken by
  /// whoever makes it.
  void handTransposesOn() {
    for (unsigned expr = graph.exprs().size(); expr-- > 0 && target.backend == Backend::cuda;)
      if (int64_t reader = onlyReaderElsewhere(expr); reader >= 0 && permutesElements(graph.exprs()[expr]))
        handOn(expr, reader);
  }

  /// Reshapes at the border of a part: outside it they are free, inside they only make indices harder.
  void trimViews() {
    for (std::optional<PlannedGroup> &part : decisions.parts)
      while (part) {
        auto view = llvm::find_if(part->choice.exprs, [&](unsigned expr) { return isBorderView(*part, expr); });
        if (view == part->choice.exprs.end())
          break;
        unsigned expr = *view;
        SmallVector<unsigned> rest(part->choice.exprs);
        llvm::erase(rest, expr);
        std::optional<PlannedGroup> trimmed;
        if (!rest.empty() && !(trimmed = planGroup(graph, rest, target)))
          break;
        if (trimmed)
          trimmed->apartSeconds = part->apartSeconds;
        part = std::move(trimmed);
        leave(expr, kBorderView);
      }
  }

private:
  static bool permutesElements(const TensorExpr &expr) {
    return expr.kind == ExprKind::movement && expr.inputs.size() == 1 && expr.inputs[0].guard == IntegerSet() &&
           !isView(expr) && expr.inputs[0].map.isPermutation();
  }

  /// The part of all readers of a part's op, if it is one and another one; -1 if not.
  int64_t onlyReaderElsewhere(unsigned expr) const {
    if (decisions.partOf[expr] < 0 || graph.escapes(expr) || graph.outEdges(expr).empty())
      return -1;
    int64_t reader = decisions.partOf[graph.edges()[graph.outEdges(expr).front()].consumer];
    bool isOnly = reader != decisions.partOf[expr] && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
                    return decisions.partOf[graph.edges()[edge].consumer] == reader;
                  });
    return isOnly ? reader : -1;
  }

  /// By time, and where that stays by what blocks ask the L2 for.
  static bool isBetter(const PlannedGroup &a, const PlannedGroup &b, const PlannedGroup &thanA, const PlannedGroup &thanB) {
    double seconds = a.predicted.seconds + b.predicted.seconds,
           before = thanA.predicted.seconds + thanB.predicted.seconds;
    auto asked = [](const PlannedGroup &part) { return part.space.blockWork.movedBytes; };
    return seconds < before || (seconds == before && asked(a) + asked(b) < asked(thanA) + asked(thanB));
  }

  void handOn(unsigned expr, unsigned reader) {
    if (isApart(decisions.partOf[expr]) || isApart(reader))
      return;
    std::optional<PlannedGroup> &from = decisions.parts[decisions.partOf[expr]], &to = decisions.parts[reader];
    SmallVector<unsigned> rest(from->choice.exprs), more(to->choice.exprs);
    llvm::erase(rest, expr);
    more.insert(llvm::lower_bound(more, expr), expr);
    std::optional<PlannedGroup> without = rest.empty() ? std::nullopt : planGroup(graph, rest, target);
    std::optional<PlannedGroup> with = without ? planGroup(graph, more, target) : std::nullopt;
    if (!with || !isBetter(*without, *with, *from, *to))
      return;
    without->apartSeconds = from->apartSeconds;
    with->apartSeconds = to->apartSeconds;
    from = std::move(without);
    to = std::move(with);
    decisions.partOf[expr] = reader;
  }

  bool isBorderView(const PlannedGroup &part, unsigned expr) const {
    if (!isView(graph.exprs()[expr]))
      return false;
    auto inside = [&](unsigned other) { return part.choice.contains(other); };
    bool read = llvm::any_of(graph.outEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].consumer); });
    bool fed = llvm::any_of(graph.inEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].producer); });
    return !read || !fed;
  }
};
} // namespace

void tilewright::moveBorders(PlannerState &state) {
  BorderMover mover(state);
  mover.handTransposesOn();
  mover.trimViews();
}
