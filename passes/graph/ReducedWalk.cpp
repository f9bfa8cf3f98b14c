// Assigns each root to a phase (before, inside or after the walk), finds the maximum that is used while it grows, and
// checks each root and each read. The first violation is the reason for a refusal.
#include "passes/graph/ReducedWalk.h"

#include "dialects/tile/TileDialect.h"
#include "passes/graph/Rounding.h"
#include "passes/graph/StartValue.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;

namespace {
class WalkDecider {
public:
  WalkDecider(ArrayRef<WalkedRoot> roots, int64_t dim,
              llvm::function_ref<SmallVector<Relation>(unsigned maximum)> relate)
      : roots(roots), dim(dim), relate(relate) {}

  Walk decide() {
    for (unsigned root = 0; root < roots.size(); ++root)
      walk.phases.push_back(phaseOf(root));
    findMaximum();
    for (unsigned root = 0; root < roots.size() && walk.refused.empty(); ++root) {
      if (walk.phases[root] == WalkPhase::inside)
        checkInside(root);
      for (const WalkedRead &read : roots[root].reads)
        if (walk.refused.empty())
          checkRead(root, read);
    }
    if (walk.refused.empty() && walk.grown.empty())
      refuse("no expression reduces it");
    walk.mayEnd = walk.refused.empty() && growsByExponentials();
    return std::move(walk);
  }

private:
  void refuse(StringRef why) { walk.refused = why.str(); }

  /// Returns true if a block leaves behind nothing but its maximum and sums of exponentials relative to it.
  bool growsByExponentials() const {
    for (unsigned root = 0; root < roots.size(); ++root)
      if (walk.phases[root] == WalkPhase::inside && !grows(root) && roots[root].leaves)
        return false;
    return walk.maximum >= 0 && walk.grown.size() == walk.rescaled.size() + 1;
  }

  bool grows(unsigned root) const {
    return llvm::any_of(roots[root].expr->reductions,
                        [&](int64_t reduced) { return roots[root].places[reduced] == dim; });
  }

  WalkPhase phaseOf(unsigned root) const {
    if (llvm::is_contained(roots[root].places, dim))
      return WalkPhase::inside;
    bool waits = llvm::any_of(roots[root].reads,
                              [&](const WalkedRead &read) { return walk.phases[read.producer] != WalkPhase::before; });
    return waits ? WalkPhase::after : WalkPhase::before;
  }

  /// Finds the maximum that roots of the walk read while it grows.
  void findMaximum() {
    for (unsigned root = 0; root < roots.size(); ++root)
      for (const WalkedRead &read : roots[root].reads) {
        if (walk.phases[root] != WalkPhase::inside || !grows(read.producer) || walk.maximum == read.producer)
          continue;
        if (walk.maximum >= 0 || !isRowMaximum(*roots[read.producer].expr, /*least=*/0))
          return refuse("an expression inside the walk reads a result that is complete only after it");
        walk.maximum = read.producer;
      }
    if (walk.maximum < 0)
      relations.assign(roots.size(), Relation::independent);
    else if (relations = relate(walk.maximum); relations.empty())
      refuse("its maximum must be complete before it is used");
  }

  void checkInside(unsigned number) {
    const WalkedRoot &root = roots[number];
    Relation relation = relations[number];
    if (relation == Relation::other)
      return refuse("a value that depends on its maximum is not proportional to exp(-maximum)");
    if (!grows(number)) {
      if (relation != Relation::independent && root.leaves)
        refuse("a result that leaves the kernel must be relative to the complete maximum");
      return;
    }
    walk.grown.push_back(number);
    if (static_cast<int64_t>(number) == walk.maximum)
      return;
    // Each block has its own sum, which is added to that of the blocks before.
    Type element = getElementTypeOrSelf(root.expr->op->getResult(0).getType());
    if (root.expr->op->getNumResults() != 1 || combiningKinds(*root.expr).front() != vector::CombiningKind::ADD ||
        !startsFromZero(root.expr->op) || !isa<FloatType>(element) || isNarrowFloat(element))
      return refuse("a reduction along it is not a sum that starts from zero and stays unrounded");
    if (relation != Relation::sum)
      return;
    if (!hasRowsOf(root, roots[walk.maximum]))
      return refuse("a sum along it combines several rows of the maximum");
    walk.rescaled.push_back(number);
  }

  static SmallVector<int64_t> resultPlaces(const WalkedRoot &root) {
    SmallVector<int64_t> places;
    for (AffineExpr index : root.expr->results[0].getResults())
      if (auto at = dyn_cast<AffineDimExpr>(index); at && root.places[at.getPosition()] >= 0)
        places.push_back(root.places[at.getPosition()]);
    return places;
  }

  /// Returns true if every element of a sum belongs to one element of the maximum.
  static bool hasRowsOf(const WalkedRoot &sum, const WalkedRoot &maximum) {
    return llvm::all_of(resultPlaces(maximum),
                        [own = resultPlaces(sum)](int64_t place) { return llvm::is_contained(own, place); });
  }

  /// Checks that blocks are read where they are computed, and rows of exponentials where the maximum of that row is.
  void checkRead(unsigned number, const WalkedRead &read) {
    WalkPhase from = walk.phases[read.producer], to = walk.phases[number];
    if (from == WalkPhase::after && to == WalkPhase::inside)
      return refuse("an expression inside the walk reads a result that is complete only after it");
    if (from != WalkPhase::inside)
      return;
    if (to != WalkPhase::inside && !grows(read.producer))
      return refuse("an expression after the walk reads a value that only one block of the dim holds");
    const WalkedRoot &producer = roots[read.producer];
    bool relative = to == WalkPhase::inside && relations[read.producer] != Relation::independent;
    SmallVector<int64_t> rows;
    if (relative)
      rows = resultPlaces(roots[walk.maximum]);
    for (auto [written, index] : llvm::zip(read.written.getResults(), read.read.getResults())) {
      auto at = dyn_cast<AffineDimExpr>(written), own = dyn_cast<AffineDimExpr>(index);
      int64_t place = at ? producer.places[at.getPosition()] : -1;
      bool mustAgree = place >= 0 && (place == dim || llvm::is_contained(rows, place));
      if (mustAgree && (!own || roots[number].places[own.getPosition()] != place || (relative && read.guarded)))
        return refuse("an expression reads another row or column than its own");
    }
  }

  ArrayRef<WalkedRoot> roots;
  int64_t dim;
  llvm::function_ref<SmallVector<Relation>(unsigned maximum)> relate;
  SmallVector<Relation> relations; ///< relation of each root to the maximum
  Walk walk;
};
} // namespace

Walk tilewright::decideWalk(ArrayRef<WalkedRoot> roots, int64_t dim,
                            llvm::function_ref<SmallVector<Relation>(unsigned maximum)> relate) {
  return WalkDecider(roots, dim, relate).decide();
}
