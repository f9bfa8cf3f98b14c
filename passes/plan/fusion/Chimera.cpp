// The policy `chimera`: Chimera's chains of compute-intensive operators (section 4). A chain becomes one kernel if that is
// predicted to take less time with the best block order that can be executed; the order and the tiles follow from its
// data movement when its group is planned (ChainMovement.h). Everything outside a chain has a kernel of its own.
#include "passes/plan/fusion/GroupingPolicy.h"

using namespace mlir;
using namespace tilewright;

namespace {
class ChainFuser {
public:
  explicit ChainFuser(SearchSpace &space) : space(space), grouping(space) {}

  Grouping run() {
    for (unsigned second : space.exprs)
      for (unsigned first : space.exprs)
        if (isContraction(first) && isContraction(second) && isNext(first, second))
          fuse(first, second);
    return std::move(grouping);
  }

private:
  bool isContraction(unsigned expr) const { return space.graph.exprs()[expr].kind == ExprKind::contraction; }
  bool reaches(unsigned from, unsigned to) const {
    return space.dependences.reaches(space.dependences.nodeOf(from), space.dependences.nodeOf(to));
  }

  /// Returns the expressions on paths from one to the other, both included.
  SmallVector<unsigned> between(unsigned first, unsigned second) const {
    SmallVector<unsigned> found;
    for (unsigned expr : space.exprs)
      if (expr == first || expr == second || (reaches(first, expr) && reaches(expr, second)))
        found.push_back(expr);
    return found;
  }

  /// Returns true if no third contraction lies on a path between the two.
  bool isNext(unsigned first, unsigned second) const {
    return reaches(first, second) && llvm::none_of(space.exprs, [&](unsigned expr) {
             return isContraction(expr) && reaches(first, expr) && reaches(expr, second);
           });
  }

  void fuse(unsigned first, unsigned second) {
    SmallVector<unsigned> names;
    double apart = 0;
    for (unsigned expr : between(first, second)) {
      unsigned name = grouping.nameOf(expr);
      if (llvm::is_contained(names, name))
        continue;
      names.push_back(name);
      apart += grouping.group(name).seconds;
    }
    if (names.size() > 1 && grouping.canMerge(names) && grouping.merged(names).seconds < apart)
      grouping.merge(names);
  }

  SearchSpace &space;
  Grouping grouping;
};
} // namespace

std::vector<Grouping> tilewright::groupByChimera(SearchSpace &space) { return {ChainFuser(space).run()}; }
