// Computes the sum of (x - b)^2 in one pass over x, where b depends on the sum of x and is usually its mean. x is
// divided into parts that a workgroup can hold. For each part, the workgroup computes the sum, and then S1 and S2, the
// sums of x - c and of its square, where c is the mean of the part. Once b is known, the part's sum of (x - b)^2 is
//   S2 + t (2 S1 + n t),
// where n is the number of elements of the part and t = c - b (Chan, Golub and LeVeque, "Algorithms for computing the
// sample variance", 1983). S1 is zero except for the rounding of c, so no terms cancel, whatever x is. A single shift c
// for all of x would not do, because it may be far from the mean of x. If x fits the workgroup's memory, two passes
// also read it only once.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/Form.h"
#include "passes/graph/FormPass.h"
#include "passes/graph/Rounding.h"
#include "passes/graph/SumOfSquares.h"
#include "passes/normalize/TwoPhaseReduction.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_ONEPASSVARIANCE
#include "passes/Passes.h.inc"

namespace {
/// `squares` adds up (x - b)^2 and `total` adds up x or its extension to a wider float. b depends on `total` and does
/// not vary along the reduced dims.
struct SumOfSquares {
  linalg::GenericOp squares, total;
  Value x, b;
  AffineMap bMap; ///< map from the domain of both sums to b
};

/// Returns the ops that read x or its extension.
SmallVector<Operation *> readersBehindExtension(Value x) {
  SmallVector<Operation *> readers;
  for (Operation *user : x.getUsers()) {
    readers.push_back(user);
    if (user->getNumResults() == 1 && beforeExtension(user->getResult(0)) == x)
      llvm::append_range(readers, user->getUsers());
  }
  return readers;
}

/// Returns the sum of x or of its extension, over the same elements as `squares`, that b depends on. Null if there is
/// none, so that b is known before x is read.
linalg::GenericOp totalBehind(Value b, Value x, linalg::GenericOp squares) {
  SetVector<Operation *> behind;
  BackwardSliceOptions options;
  options.inclusive = true;
  if (failed(getBackwardSlice(b, &behind, options)))
    return {};
  for (Operation *user : readersBehindExtension(x)) {
    auto sum = dyn_cast<linalg::GenericOp>(user);
    if (sum && behind.contains(user) && isPlainSum(sum) && sum.getResultTypes() == squares.getResultTypes() &&
        sum.getIndexingMaps() == squares.getIndexingMaps() && sum.getIteratorTypes() == squares.getIteratorTypes())
      return sum;
  }
  return {};
}

std::optional<SumOfSquares> match(linalg::GenericOp squares) {
  std::optional<SquaredDifference> difference = squaredDifference(squares);
  if (!difference || !cast<RankedTensorType>(difference->x.getType()).hasStaticShape())
    return std::nullopt;
  AffineMap bMap = difference->subtraction.getMatchingIndexingMap(difference->b);
  SmallVector<unsigned> reduced;
  squares.getReductionDims(reduced);
  if (llvm::any_of(reduced, [&](unsigned dim) { return bMap.isFunctionOfDim(dim); }))
    return std::nullopt;
  Value x = difference->x, b = difference->b->get();
  linalg::GenericOp total = totalBehind(b, x, squares);
  return total ? std::optional<SumOfSquares>({squares, total, x, b, bMap}) : std::nullopt;
}

/// Returns the number of elements that each sum adds up.
int64_t count(linalg::GenericOp sum) {
  int64_t elements = 1;
  for (auto [extent, iterator] : llvm::zip(sum.getStaticLoopRanges(), sum.getIteratorTypesArray()))
    elements *= iterator == utils::IteratorType::reduction ? extent : 1;
  return elements;
}

/// Returns the bytes of x that a workgroup would have to hold until b is known.
double residentBytes(const SumOfSquares &what, const CommonCosts &costs) {
  auto type = cast<RankedTensorType>(what.x.getType());
  linalg::GenericOp squares = what.squares;
  double bytes = static_cast<double>(count(squares)) * type.getElementTypeBitWidth() / 8;
  bool contiguous = squares.getIteratorTypesArray().back() == utils::IteratorType::parallel;
  return contiguous ? bytes * static_cast<double>(std::min(costs.varianceTile, type.getShape().back())) : bytes;
}

int64_t countParts(ArrayRef<SplitDim> split) {
  int64_t parts = 1;
  for (const SplitDim &dim : split)
    parts *= dim.parts;
  return parts;
}

/// Cuts the last dim into as few parts as possible, if whole dims give many more parts than needed. The sums then read
/// a view of x and cannot share a kernel with an op that computes x, so x must not be computed.
void cutLastDim(const SumOfSquares &what, double least, const CommonCosts &costs, ReductionSplit &split) {
  SplitDim &last = split.back();
  int64_t extent = last.parts, others = countParts(split) / extent;
  if (others * extent <= costs.varianceSpareParts * least || what.x.getDefiningOp<linalg::LinalgOp>())
    return;
  for (last.parts = std::max<int64_t>(2, std::ceil(least / others)); extent % last.parts != 0;)
    ++last.parts;
  if (!canCut(what.total, split))
    last.parts = extent;
}

/// Decides which dims divide x into parts. They are whole dims, so that the nests of all readers of x agree on its
/// dims. Of the choices whose parts fit a workgroup's memory, the one with the fewest parts wins, outer dims first.
/// Returns nothing if there is no such choice, as for rows.
std::optional<ReductionSplit> decideParts(const SumOfSquares &what, const Target &target) {
  linalg::GenericOp total = what.total;
  SmallVector<unsigned> reduced;
  total.getReductionDims(reduced);
  SmallVector<int64_t> extents = total.getStaticLoopRanges();
  const CommonCosts &costs = target.costs.common;
  double least = residentBytes(what, costs) / (costs.varianceMemory * static_cast<double>(target.blockBytes));
  int64_t fewest = count(total) / costs.variancePart + 1;
  std::optional<ReductionSplit> best;
  for (uint64_t chosen = 1; chosen < uint64_t(1) << reduced.size(); ++chosen) {
    if (best && llvm::isPowerOf2_64(chosen))
      break; // all further choices contain a dim inside those of the best choice
    ReductionSplit split;
    for (auto [bit, dim] : llvm::enumerate(reduced))
      if (chosen >> bit & 1)
        split.push_back({dim, extents[dim]});
    if (int64_t parts = countParts(split); static_cast<double>(parts) >= least && parts < fewest) {
      fewest = parts;
      best = split;
    }
  }
  if (best)
    cutLastDim(what, least, costs, *best);
  return best;
}

/// Decides by the memory that x takes: one pass if a workgroup cannot keep x for a second one.
FormChoice decideOnePass(const SumOfSquares &what, const Target &machine) {
  FormChoice choice;
  choice.form = tile::Form::twoMomentVariance;
  choice.numerics = numericsOfTwoPhases(what.total);
  Type element = getElementTypeOrSelf(what.x.getType());
  double bytes = residentBytes(what, machine.costs.common);
  std::optional<ReductionSplit> split;
  if (element.getIntOrFloatBitWidth() < 32 && !(isNarrowFloat(element) && machine.traits.narrowOnePass)) {
    choice.reason = "one pass over narrow numbers was never timed on such a machine";
    choice.wouldChange = "an input of f32, or another kind of machine";
  } else if (bytes <= static_cast<double>(machine.blockBytes)) {
    choice.reason = llvm::formatv("a workgroup keeps {0:f0} bytes of its input for a second pass", bytes);
    choice.wouldChange = "an input that the memory of a workgroup cannot hold";
  } else if (split = decideParts(what, machine); !split) {
    choice.reason = "no dims divide its input into parts that a workgroup can hold";
    choice.wouldChange = "other dims, or more memory of a workgroup";
  } else {
    choice.taken = true;
    choice.reason = llvm::formatv("no workgroup can keep {0:f0} bytes of its input for a second pass", bytes);
    setSplit(choice, *split);
  }
  return choice;
}

/// Rewrites a sum of squares as sums of parts, shifted by the mean of each part.
class Shifter {
public:
  Shifter(const SumOfSquares &what, ReductionSplit split)
      : what(what), squares(what.squares), total(what.total), loc(squares.getLoc()), builder(what.total),
        split(std::move(split)) {}

  void shift() {
    sumWithoutExtension();
    SplitViews views;
    phases = buildTwoPhases(builder, total, split, views);
    element = getElementTypeOrSelf(phases.partial.getResult(0).getType());
    mark(phases.partial);
    mark(phases.final);
    total.getResult(0).replaceAllUsesWith(phases.results[0]);
    Value means = meansOfParts();
    ValueRange moments = momentsOfParts(means);
    // The sums of the parts come first and next to each other, so that they share the kernel that reads x.
    phases.final->moveAfter(moments.front().getDefiningOp());
    if (Operation *rounding = phases.results[0].getDefiningOp(); rounding != phases.final)
      rounding->moveAfter(phases.final);
    builder.setInsertionPoint(squares);
    squares.getResult(0).replaceAllUsesWith(join(moments, means));
    total.erase();
    // Erase the sum of squares and the ops that only it used.
    for (Operation *dead = squares; dead && dead->use_empty();) {
      Operation *producer =
          dead == squares || isa<linalg::GenericOp>(dead) ? dead->getOperand(0).getDefiningOp() : nullptr;
      dead->erase();
      dead = isa_and_nonnull<linalg::GenericOp>(producer) ? producer : nullptr;
    }
  }

private:
  /// Lets the sum extend each element itself if it reads the extension of x, so that all sums read x.
  void sumWithoutExtension() {
    Value extended = total.getDpsInputs()[0];
    if (extended == what.x)
      return;
    auto narrow = linalg::GenericOp::create(
        builder, loc, total.getResultTypes(), what.x, total.getDpsInits(), total.getIndexingMapsArray(),
        total.getIteratorTypesArray(), [&](OpBuilder &at, Location, ValueRange values) {
          Value wide = arith::ExtFOp::create(at, loc, values[1].getType(), values[0]);
          linalg::YieldOp::create(at, loc, arith::AddFOp::create(at, loc, wide, values[1]).getResult());
        });
    total.replaceAllUsesWith(narrow);
    total.erase();
    total = narrow;
    builder.setInsertionPoint(total);
    if (extended.use_empty())
      extended.getDefiningOp()->erase();
  }

  void mark(linalg::GenericOp op) { setForm(op, tile::Form::twoMomentVariance); }

  double countOfPart() { return static_cast<double>(count(total) / countParts(split)); }

  Value constant(OpBuilder &at, double value) {
    return arith::ConstantOp::create(at, loc, at.getFloatAttr(element, value));
  }

  /// Converts an element of x or b to the type of the sums.
  Value widened(OpBuilder &at, Value value) {
    return value.getType() == element ? value : arith::ExtFOp::create(at, loc, element, value).getResult();
  }

  Value meansOfParts() {
    Value sums = phases.partial.getResult(0);
    auto type = cast<RankedTensorType>(sums.getType());
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), element);
    AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
    SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
    auto means = linalg::GenericOp::create(builder, loc, type, sums, empty, ArrayRef{identity, identity}, parallel,
                                           [&](OpBuilder &at, Location, ValueRange values) {
                                             Value share = constant(at, 1 / countOfPart());
                                             linalg::YieldOp::create(
                                                 at, loc, arith::MulFOp::create(at, loc, values[0], share).getResult());
                                           });
    return means.getResult(0);
  }

  /// Returns S1 and S2, the sums of x - c and of its square, for each part.
  ValueRange momentsOfParts(Value means) {
    linalg::GenericOp partial = phases.partial;
    AffineMap read = partial.getIndexingMapsArray()[0], written = partial.getIndexingMapsArray()[1];
    Value init = partial.getDpsInits()[0];
    auto moments = linalg::GenericOp::create(
        builder, loc, TypeRange{init.getType(), init.getType()}, ValueRange{partial.getDpsInputs()[0], means},
        ValueRange{init, init}, ArrayRef{read, written, written, written}, partial.getIteratorTypesArray(),
        [&](OpBuilder &at, Location, ValueRange values) {
          Value shifted = arith::SubFOp::create(at, loc, widened(at, values[0]), values[1]);
          Value square = arith::MulFOp::create(at, loc, shifted, shifted);
          Value first = arith::AddFOp::create(at, loc, shifted, values[2]);
          Value second = arith::AddFOp::create(at, loc, square, values[3]);
          linalg::YieldOp::create(at, loc, ValueRange{first, second});
        });
    mark(moments);
    return moments.getResults();
  }

  /// Returns the map from an index of the result to one of the domain, with zeros for the reduced dims.
  AffineMap domainOfResult() {
    AffineMap written = squares.getIndexingMapsArray()[1];
    SmallVector<AffineExpr> exprs(written.getNumDims(), builder.getAffineConstantExpr(0));
    for (auto [position, expr] : llvm::enumerate(written.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        exprs[dim.getPosition()] = builder.getAffineDimExpr(position);
    return AffineMap::get(written.getNumResults(), 0, exprs, builder.getContext());
  }

  /// Returns the sum of S2 + t (2 S1 + n t) over the parts.
  Value join(ValueRange moments, Value means) {
    AffineMap all = phases.final.getIndexingMapsArray()[0], written = phases.final.getIndexingMapsArray()[1];
    AffineMap ofB = what.bMap.compose(domainOfResult()).compose(written);
    auto joined = linalg::GenericOp::create(
        builder, loc, phases.final.getResultTypes(), ValueRange{moments[0], moments[1], means, what.b},
        phases.final.getDpsInits(), ArrayRef{all, all, all, ofB, written}, phases.final.getIteratorTypesArray(),
        [&](OpBuilder &at, Location, ValueRange values) {
          Value t = arith::SubFOp::create(at, loc, values[2], widened(at, values[3]));
          Value twice = arith::MulFOp::create(at, loc, constant(at, 2), values[0]);
          Value moved = arith::MulFOp::create(at, loc, constant(at, countOfPart()), t);
          Value inner = arith::AddFOp::create(at, loc, twice, moved);
          Value square = arith::AddFOp::create(at, loc, values[1], arith::MulFOp::create(at, loc, t, inner));
          // Rounding must not make a sum of squares negative; a NaN stays NaN.
          Value positive = arith::MaximumFOp::create(at, loc, square, constant(at, 0));
          linalg::YieldOp::create(at, loc, arith::AddFOp::create(at, loc, positive, values[4]).getResult());
        });
    mark(joined);
    return roundedTo(builder, joined.getResult(0), cast<RankedTensorType>(squares.getResult(0).getType()));
  }

  const SumOfSquares &what;
  linalg::GenericOp squares;
  linalg::GenericOp total; ///< sums x itself, once `shift` has begun
  Location loc;
  OpBuilder builder;
  ReductionSplit split;
  Type element; ///< element type of the sums
  TwoPhases phases;
};

class OnePassVariance : public FormPass<impl::OnePassVarianceBase<OnePassVariance>> {
public:
  using FormPass::FormPass;

private:
  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    bool isChanged = false;
    SmallVector<linalg::GenericOp> sums;
    getOperation().walk([&](linalg::GenericOp op) { sums.push_back(op); });
    for (linalg::GenericOp sum : sums) {
      std::optional<SumOfSquares> what = match(sum);
      if (!what || !whyNotSplittable(what->total).empty())
        continue;
      FailureOr<FormChoice> choice =
          settle(decideOnePass(*what, *machine), sum.getOperation(),
                 [&](const FormChoice &choice) { return whyNotSplit(what->total, choice); });
      if (failed(choice))
        return;
      if (!choice->taken)
        continue;
      Shifter(*what, splitOf(*choice)).shift();
      isChanged = true;
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright
