// Evaluates the maximum's operand symbolically at a general point of its domain. Each undecided comparison of indices
// is then assumed to be true and to be false. If one of the assumptions makes the operand a mask, the margin of the
// comparison gives the end of the points that count.
#include "passes/graph/CausalBound.h"

#include "passes/graph/Triangles.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace tilewright;

namespace {
constexpr double kMask = -0x1p100;    ///< a finite number this low hides whatever it is added to
constexpr double kScore = 0x1p98;     ///< constants up to this size are part of a score
constexpr unsigned kMostSteps = 4096; ///< steps of evaluation before all points are assumed to count

/// The knowledge about a value at a point of the maximum's domain.
struct Known {
  enum Kind { nothing, score, masked, number, index, truth } kind = nothing;
  double value = 0;   ///< value of a number; of a masked value: -infinity, or finite
  AffineExpr expr;    ///< value of an index, over the domain
  bool holds = false; ///< value of a truth
  static Known ofNumber(double value) { return {number, value, {}, false}; }
  static Known ofTruth(bool holds) { return {truth, 0, {}, holds}; }
  static Known ofIndex(AffineExpr expr) { return {index, 0, expr, false}; }
  static Known ofScore() { return {score, 0, {}, false}; }
  static Known ofMasked(double value) { return {masked, value, {}, false}; }
  bool is(Kind other) const { return kind == other; }
};

/// Returns true if a value is so low that it does not count beside a score.
bool isMask(const Known &of) { return of.is(Known::masked) || (of.is(Known::number) && of.value <= kMask); }

/// Evaluates elements of a graph's tensors at all points of a domain at once, assuming one comparison to be true or
/// false.
class Evaluator {
public:
  Evaluator(const TensorGraph &graph, ArrayRef<int64_t> domain) : graph(graph), domain(domain) {}

  /// Margins of the comparisons found, each of which tests whether its margin is at least zero.
  SmallVector<AffineExpr> margins;
  AffineExpr given;   ///< margin whose comparison is assumed, or null
  bool holds = false; ///< assumed result of that comparison

  /// Evaluates the element of `tensor` at `place`, a map from the domain.
  Known at(Value tensor, AffineMap place) {
    if (++steps > kMostSteps)
      return {};
    if (TypedAttr constant = constantElement(tensor))
      return ofConstant(constant);
    int64_t id = tensor.getDefiningOp() ? graph.indexOf(tensor.getDefiningOp()) : -1;
    if (id < 0)
      return inTriangles(tensor, place);
    const TensorExpr &expr = graph.exprs()[id];
    if (expr.kind == ExprKind::contraction)
      return Known::ofScore();
    if (!expr.oneReliesOnOne())
      return {};
    unsigned result = cast<OpResult>(tensor).getResultNumber();
    AffineMap point = composeInDomain(expr.pointOf(result), place, domain);
    if (expr.op->getNumRegions() == 0 || !isa<linalg::LinalgOp>(expr.op))
      return moved(expr, point);
    return inBody(expr, point, expr.op->getRegion(0).front().getTerminator()->getOperand(result));
  }

private:
  Known moved(const TensorExpr &expr, AffineMap point) {
    if (expr.inputs.size() != 1 || expr.inputs[0].guard != IntegerSet())
      return {};
    return at(expr.inputs[0].tensor, composeInDomain(expr.inputs[0].map, point, domain));
  }

  Known inBody(const TensorExpr &expr, AffineMap point, Value value) {
    if (++steps > kMostSteps)
      return {};
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      for (const TensorAccess &access : expr.inputs)
        if (access.operand == argument.getArgNumber() && access.guard == IntegerSet())
          return at(access.tensor, composeInDomain(access.map, point, domain));
      return ofScalarOperand(expr, argument);
    }
    Operation *op = value.getDefiningOp();
    if (TypedAttr constant = constantElement(value))
      return ofConstant(constant);
    if (auto index = dyn_cast<linalg::IndexOp>(op))
      return Known::ofIndex(point.getResult(index.getDim()));
    if (op->getNumResults() != 1)
      return {};
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      Known condition = inBody(expr, point, select.getCondition());
      if (!condition.is(Known::truth))
        return {};
      return inBody(expr, point, condition.holds ? select.getTrueValue() : select.getFalseValue());
    }
    SmallVector<Known> operands;
    for (Value operand : op->getOperands())
      operands.push_back(inBody(expr, point, operand));
    Known result = apply(op, operands);
    return result.is(Known::index) && mayWrap(result.expr, op->getResult(0).getType()) ? Known() : result;
  }

  /// Returns true if the type cannot hold the index everywhere. At most 32 bits are assumed, so that combinations of
  /// two indices stay bounded.
  bool mayWrap(AffineExpr index, Type type) const {
    unsigned width = type.isInteger() ? std::min(type.getIntOrFloatBitWidth(), 32u) : 32;
    tilewright::Interval range = boundExpr(index, domainRanges(domain));
    return range.low < llvm::minIntN(width) || range.high > llvm::maxIntN(width);
  }

  /// Evaluates an element of a constant of two triangles, which a comparison of its indices selects.
  Known inTriangles(Value tensor, AffineMap place) {
    std::optional<Triangles> triangles = trianglesOf(tensor);
    if (!triangles)
      return {};
    ArrayRef<AffineExpr> index = place.getResults().take_back(2);
    Known isAbove = atLeastZero(index[1] - index[0] - triangles->diagonal);
    if (!isAbove.is(Known::truth))
      return {};
    double value = isAbove.holds ? triangles->above : triangles->below;
    return getElementTypeOrSelf(tensor.getType()).isInteger(1) ? Known::ofTruth(value != 0) : Known::ofNumber(value);
  }

  /// Evaluates a splat, which is an operand that the body reads without an access.
  static Known ofScalarOperand(const TensorExpr &expr, BlockArgument argument) {
    unsigned number = argument.getArgNumber();
    if (number >= expr.op->getNumOperands())
      return {};
    TypedAttr constant = constantElement(expr.op->getOperand(number));
    return constant ? ofConstant(constant) : Known();
  }

  static Known ofConstant(TypedAttr constant) {
    if (auto real = dyn_cast<FloatAttr>(constant))
      return Known::ofNumber(real.getValueAsDouble());
    auto integer = dyn_cast<IntegerAttr>(constant);
    if (!integer || integer.getValue().getSignificantBits() > 32)
      return {};
    if (integer.getType().isInteger(1))
      return Known::ofTruth(!integer.getValue().isZero());
    return Known::ofIndex(getAffineConstantExpr(integer.getValue().getSExtValue(), constant.getContext()));
  }

  Known apply(Operation *op, ArrayRef<Known> of) {
    return llvm::TypeSwitch<Operation *, Known>(op)
        .Case<arith::ExtFOp, arith::TruncFOp, arith::IndexCastOp, arith::ExtSIOp>(
            [&](auto) { return of[0].is(Known::truth) ? Known() : of[0]; })
        .Case<arith::ExtUIOp>([&](auto) { return of[0].is(Known::truth) ? asIndex(op, of[0].holds) : Known(); })
        .Case<arith::UIToFPOp>([&](auto) { return of[0].is(Known::truth) ? Known::ofNumber(of[0].holds) : Known(); })
        .Case<arith::SIToFPOp>([&](auto) { return asNumber(of[0]); })
        .Case<arith::AddIOp>([&](auto) { return indices(of, [](AffineExpr a, AffineExpr b) { return a + b; }); })
        .Case<arith::SubIOp>([&](auto) { return indices(of, [](AffineExpr a, AffineExpr b) { return a - b; }); })
        .Case<arith::MulIOp>([&](auto) {
          bool linear = of[0].is(Known::index) && of[1].is(Known::index) &&
                        (isa<AffineConstantExpr>(of[0].expr) || isa<AffineConstantExpr>(of[1].expr));
          return linear ? Known::ofIndex(of[0].expr * of[1].expr) : Known();
        })
        .Case<arith::AndIOp>([&](auto) { return connective(of, /*decided=*/false); })
        .Case<arith::OrIOp>([&](auto) { return connective(of, /*decided=*/true); })
        .Case<arith::XOrIOp>([&](auto) {
          bool known = of[0].is(Known::truth) && of[1].is(Known::truth);
          return known ? Known::ofTruth(of[0].holds != of[1].holds) : Known();
        })
        .Case<arith::CmpIOp>([&](auto compare) { return comparison(compare.getPredicate(), of); })
        .Case<arith::CmpFOp>([&](auto compare) { return comparison(compare.getPredicate(), of); })
        .Case<arith::AddFOp>([&](auto) { return sum(of[0], of[1]); })
        .Case<arith::SubFOp>([&](auto) {
          Known other = of[1];
          other.value = -other.value;
          return other.is(Known::masked) ? Known() : sum(of[0], other);
        })
        .Case<arith::MulFOp>([&](auto) {
          bool numbers = of[0].is(Known::number) && of[1].is(Known::number);
          return numbers ? Known::ofNumber(of[0].value * of[1].value) : scaled(of);
        })
        .Case<arith::DivFOp>([&](auto) { return of[0].is(Known::score) ? scaled(of) : Known(); })
        .Default([](Operation *) { return Known(); });
  }

  static Known asIndex(Operation *op, bool holds) {
    return Known::ofIndex(getAffineConstantExpr(holds ? 1 : 0, op->getContext()));
  }

  static Known asNumber(const Known &of) {
    auto constant = of.is(Known::index) ? dyn_cast<AffineConstantExpr>(of.expr) : AffineConstantExpr();
    return constant ? Known::ofNumber(constant.getValue()) : Known();
  }

  static Known indices(ArrayRef<Known> of, llvm::function_ref<AffineExpr(AffineExpr, AffineExpr)> combine) {
    bool both = of[0].is(Known::index) && of[1].is(Known::index);
    return both ? Known::ofIndex(combine(of[0].expr, of[1].expr)) : Known();
  }

  static Known connective(ArrayRef<Known> of, bool decided) {
    for (const Known &operand : of)
      if (operand.is(Known::truth) && operand.holds == decided)
        return operand;
    return of[0].is(Known::truth) && of[1].is(Known::truth) ? of[0] : Known();
  }

  /// Adds two values. A mask hides what it is added to, unless that is another mask or the mask is -infinity.
  static Known sum(const Known &a, const Known &b) {
    for (auto [mask, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      if (!isMask(*mask))
        continue;
      if (std::isinf(mask->value) && !(other->is(Known::number) && std::isinf(other->value) && other->value > 0))
        return Known::ofMasked(mask->value);
      bool plain = other->is(Known::score) || (other->is(Known::number) && std::abs(other->value) <= kScore);
      return plain ? Known::ofMasked(mask->value) : Known();
    }
    if (a.is(Known::number) && b.is(Known::number))
      return Known::ofNumber(a.value + b.value);
    return scaled({a, b});
  }

  /// Combines a score with another score or with an ordinary number.
  static Known scaled(ArrayRef<Known> of) {
    bool anyScore = false;
    for (const Known &operand : of) {
      if (!operand.is(Known::score) && !(operand.is(Known::number) && std::abs(operand.value) <= kScore))
        return {};
      anyScore |= operand.is(Known::score);
    }
    return anyScore ? Known::ofScore() : Known();
  }

  Known comparison(arith::CmpIPredicate predicate, ArrayRef<Known> of) {
    using P = arith::CmpIPredicate;
    if (!of[0].is(Known::index) || !of[1].is(Known::index))
      return {};
    AffineExpr a = of[0].expr, b = of[1].expr;
    auto [low, high] = boundExpr(a - b, domainRanges(domain));
    if (predicate == P::eq || predicate == P::ne) {
      if (low == 0 && high == 0)
        return Known::ofTruth(predicate == P::eq);
      return low > 0 || high < 0 ? Known::ofTruth(predicate == P::ne) : Known();
    }
    switch (predicate) {
    case P::slt:
      return atLeastZero(b - a - 1);
    case P::sle:
      return atLeastZero(b - a);
    case P::sgt:
      return atLeastZero(a - b - 1);
    case P::sge:
      return atLeastZero(a - b);
    default:
      return {};
    }
  }

  Known atLeastZero(AffineExpr margin) {
    margin = simplifyAffineExpr(margin, domain.size(), 0);
    auto [low, high] = boundExpr(margin, domainRanges(domain));
    if (low >= 0 || high < 0)
      return Known::ofTruth(low >= 0);
    if (given && margin == given)
      return Known::ofTruth(holds);
    if (given && simplifyAffineExpr(-margin - 1, domain.size(), 0) == given)
      return Known::ofTruth(!holds);
    if (!llvm::is_contained(margins, margin))
      margins.push_back(margin);
    return {};
  }

  static Known comparison(arith::CmpFPredicate predicate, ArrayRef<Known> of) {
    if (!of[0].is(Known::number) || !of[1].is(Known::number))
      return {};
    return Known::ofTruth(arith::applyCmpPredicate(predicate, APFloat(of[0].value), APFloat(of[1].value)));
  }

  const TensorGraph &graph;
  ArrayRef<int64_t> domain;
  unsigned steps = 0;
};
} // namespace

int64_t tilewright::slopeAlong(AffineExpr linear, unsigned dim, unsigned numDims) {
  MLIRContext *context = linear.getContext();
  AffineExpr next = linear.replace(getAffineDimExpr(dim, context), getAffineDimExpr(dim, context) + 1);
  auto slope = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(next - linear, numDims, 0));
  return slope ? slope.getValue() : 0;
}

int64_t tilewright::largestOver(AffineExpr linear, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  SmallVector<AffineExpr> corner;
  for (auto [dim, bounds] : llvm::enumerate(llvm::zip(low, high))) {
    auto [from, to] = bounds;
    bool grows = slopeAlong(linear, dim, low.size()) > 0;
    corner.push_back(getAffineConstantExpr(grows ? to : from, linear.getContext()));
  }
  return cast<AffineConstantExpr>(linear.replaceDimsAndSymbols(corner, {})).getValue();
}

/// Returns true if an expression contains only sums and multiples.
static bool isLinear(AffineExpr expr) {
  return !expr.walk([](AffineExpr inner) {
                using Kind = AffineExprKind;
                Kind kind = inner.getKind();
                bool divides = kind == Kind::Mod || kind == Kind::FloorDiv || kind == Kind::CeilDiv;
                return divides ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

/// Returns the end of the points along `dim` at which `margin` is at least zero, if they have one end.
static std::optional<AffineExpr> endAlong(AffineExpr margin, unsigned dim, unsigned numDims) {
  AffineExpr rest = simplifyAffineExpr(margin + getAffineDimExpr(dim, margin.getContext()), numDims, 0);
  if (rest.isFunctionOfDim(dim) || !isLinear(rest))
    return std::nullopt;
  return rest + 1;
}

std::optional<AffineExpr> tilewright::endOfCounted(const TensorGraph &graph, unsigned id) {
  const TensorExpr &maximum = graph.exprs()[id];
  if (maximum.inputs.size() != 1 || maximum.reductions.size() != 1)
    return std::nullopt;
  const TensorAccess &access = maximum.inputs[0];
  Evaluator find(graph, maximum.domain);
  find.at(access.tensor, access.map);
  int64_t reduced = maximum.reductions.front();
  unsigned rank = maximum.domain.size();
  for (AffineExpr margin : find.margins)
    for (bool counts : {true, false}) {
      std::optional<AffineExpr> end = endAlong(counts ? margin : -margin - 1, reduced, rank);
      if (!end)
        continue;
      Evaluator beyond(graph, maximum.domain), within(graph, maximum.domain);
      beyond.given = within.given = margin;
      beyond.holds = !counts;
      within.holds = counts;
      Known hidden = beyond.at(access.tensor, access.map);
      Interval ends = boundExpr(*end, domainRanges(maximum.domain));
      if (!isMask(hidden) || ends.low >= maximum.domain[reduced])
        continue;
      bool someCounts = ends.low >= 1 && within.at(access.tensor, access.map).is(Known::score);
      if (std::isinf(hidden.value) || someCounts)
        return end;
    }
  return std::nullopt;
}
