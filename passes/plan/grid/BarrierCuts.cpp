#include "passes/plan/grid/BarrierCuts.h"

#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace tilewright;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {
class Cutter {
public:
  Cutter(const TensorGraph &graph, ArrayRef<unsigned> exprs) : graph(graph), exprs(exprs) {}

  std::vector<BarrierCut> run() const {
    std::vector<BarrierCut> cuts;
    for (unsigned own : exprs) {
      if (graph.exprs()[own].kind != ExprKind::contraction)
        continue;
      add(cuts, [&](unsigned expr) { return expr == own || graph.dependsOn(expr, own); });
      add(cuts, [&](unsigned expr) { return standsBehind(expr, own); });
    }
    return cuts;
  }

private:
  /// Returns true if each element of the expression depends on many elements of the result of `own`, or of elementwise
  /// ops on that result.
  bool standsBehind(unsigned expr, unsigned own) const {
    return llvm::any_of(exprs, [&](unsigned many) {
      return isMany(many) && graph.dependsOn(many, own) && (expr == many || graph.dependsOn(expr, many));
    });
  }

  bool isMany(unsigned expr) const {
    ExprKind kind = graph.exprs()[expr].kind;
    return kind == ExprKind::reduction || kind == ExprKind::contraction;
  }

  void add(std::vector<BarrierCut> &cuts, llvm::function_ref<bool(unsigned)> isBehind) const {
    std::vector<bool> behind(graph.exprs().size());
    for (unsigned expr : exprs)
      behind[expr] = isBehind(expr);
    takeAlong(behind);
    BarrierCut cut = piecesInFront(behind);
    if (cut.empty())
      return;
    SmallVector<unsigned> &last = cut.emplace_back();
    llvm::copy_if(exprs, std::back_inserter(last), [&](unsigned expr) { return behind[expr]; });
    if (!last.empty() && !llvm::is_contained(cuts, cut))
      cuts.push_back(std::move(cut));
  }

  /// Moves expressions behind the barrier if only expressions there read them and they depend on the group's inputs
  /// alone.
  void takeAlong(std::vector<bool> &behind) const {
    for (unsigned expr : llvm::reverse(exprs)) {
      SmallVector<unsigned> readers = readersOf(expr);
      bool isOfInputs = !isMany(expr) && llvm::none_of(exprs, [&](unsigned other) {
        return isMany(other) && graph.dependsOn(expr, other);
      });
      if (isOfInputs && !readers.empty() && llvm::all_of(readers, [&](unsigned reader) { return behind[reader]; }))
        behind[expr] = true;
    }
  }

  SmallVector<unsigned> readersOf(unsigned expr) const {
    SmallVector<unsigned> readers;
    for (unsigned edge : graph.outEdges(expr))
      if (unsigned reader = graph.edges()[edge].consumer; llvm::is_contained(exprs, reader))
        readers.push_back(reader);
    return readers;
  }

  /// Splits the expressions in front of the barrier into components that do not depend on each other. Each can be a
  /// group of its own.
  BarrierCut piecesInFront(const std::vector<bool> &behind) const {
    llvm::EquivalenceClasses<unsigned> joined;
    for (unsigned expr : exprs) {
      if (behind[expr])
        continue;
      joined.insert(expr);
      for (unsigned reader : readersOf(expr))
        if (!behind[reader])
          joined.unionSets(expr, reader);
    }
    std::map<unsigned, SmallVector<unsigned>> pieces; // by leader
    for (unsigned expr : exprs)
      if (!behind[expr])
        pieces[joined.getLeaderValue(expr)].push_back(expr);
    BarrierCut cut;
    for (auto &[leader, piece] : pieces)
      cut.push_back(std::move(piece));
    llvm::sort(cut, [](ArrayRef<unsigned> a, ArrayRef<unsigned> b) { return a.front() < b.front(); });
    return cut;
  }

  const TensorGraph &graph;
  ArrayRef<unsigned> exprs;
};
} // namespace

std::vector<BarrierCut> tilewright::barrierCuts(const TensorGraph &graph, ArrayRef<unsigned> exprs) {
  return Cutter(graph, exprs).run();
}
