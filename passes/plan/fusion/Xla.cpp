// The policy `xla`: the fusions of XLA's rules, the baseline of FusionStitching's table 2 and Welder's "base". A producer
// joins the group of its readers if all of them are in that group and its values stay in registers (thread composition);
// a reduction ends its group, and so does a value that is expensive and would be computed again for each of several
// points. Contractions stay apart. The rules look at no prediction.
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/GroupingPolicy.h"

using namespace mlir;
using namespace tilewright;

namespace {
class XlaFuser {
public:
  explicit XlaFuser(SearchSpace &space) : space(space), grouping(space) {}

  /// Consumers come before their producers, as in XLA's instruction fusion.
  Grouping run() {
    for (unsigned expr : llvm::reverse(space.exprs))
      fuseIntoReaders(expr);
    for (unsigned expr : space.exprs)
      for (unsigned sibling : space.siblingsOf(expr))
        fuseSiblings(expr, sibling);
    return std::move(grouping);
  }

private:
  const TensorExpr &at(unsigned expr) const { return space.graph.exprs()[expr]; }

  bool isMany(unsigned expr) const { return !at(expr).oneReliesOnOne(); }

  /// Returns true if a reader computes the value of the producer at more points than it has elements, and that costs a
  /// special function.
  bool repeatsDear(unsigned producer, unsigned reader) const {
    return specialOps(at(producer)) > 0 && at(reader).domainSize() > at(producer).domainSize();
  }

  void fuseIntoReaders(unsigned expr) {
    ArrayRef<unsigned> readers = space.readersOf(expr);
    if (isMany(expr) || space.graph.escapes(expr) || readers.empty())
      return;
    unsigned reader = grouping.nameOf(readers.front());
    bool fits = llvm::all_of(readers, [&](unsigned other) {
      return grouping.nameOf(other) == reader && !repeatsDear(expr, other);
    });
    if (fits && !grouping.group(reader).contracts)
      fuse(grouping.nameOf(expr), reader);
  }

  /// Fuses reductions that read a tensor in common over the same domain (multi-output fusion).
  void fuseSiblings(unsigned expr, unsigned sibling) {
    unsigned a = grouping.nameOf(expr), b = grouping.nameOf(sibling);
    if (a != b && isMany(expr) && isMany(sibling) && at(expr).domain == at(sibling).domain &&
        !grouping.group(a).contracts && !grouping.group(b).contracts)
      fuse(a, b);
  }

  void fuse(unsigned a, unsigned b) {
    if (grouping.canMerge({a, b}) && grouping.merged({a, b}).isPossible() && grouping.merged({a, b}).inRegisters)
      grouping.merge({a, b});
  }

  SearchSpace &space;
  Grouping grouping;
};
} // namespace

std::vector<Grouping> tilewright::groupByXla(SearchSpace &space) { return {XlaFuser(space).run()}; }
