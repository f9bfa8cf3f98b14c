#include "passes/plan/space/PlanNumerics.h"
#include "passes/graph/Form.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/graph/OwnMaximum.h"
#include "passes/graph/ReducedWalk.h"
#include "passes/graph/Rounding.h"
#include "passes/support/SpellType.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

SmallVector<StringRef> tilewright::accumulationTypes(const Numerics &numerics) {
  SmallVector<StringRef> types;
  StringRef(numerics.accumulation).split(types, ", ", -1, /*KeepEmpty=*/false);
  return types;
}

/// Returns the type of an accumulator. A sum of narrow floats would lose most of its terms in a narrow accumulator, so
/// it is widened unless numerics are strict. An extremum is exact in any type and uses f32, which the hardware can
/// compare.
static std::string accumulationOf(Type element, std::optional<vector::CombiningKind> kind, NumericsMode mode) {
  bool widens = isNarrowFloat(element) && kind && !(isSumOrProduct(kind) && mode == NumericsMode::strict);
  return widens ? "f32" : spell(element);
}

static int64_t pointsPerResult(const TensorExpr &expr) {
  int64_t points = 1;
  for (int64_t dim : expr.reductions)
    points *= expr.domain[dim];
  return points;
}

/// Returns the roundings left out per element of the result: those inside the body and those of partial sums.
static int64_t roundingsRemoved(const TensorExpr &expr, const Numerics &numerics, NumericsMode mode) {
  if (mode == NumericsMode::strict || expr.kind == ExprKind::movement || expr.op->getNumRegions() == 0)
    return 0;
  int64_t points = pointsPerResult(expr);
  int64_t removed = points * countAvoidableRoundings(expr.op->getRegion(0).front());
  if (expr.oneReliesOnOne())
    return removed;
  for (auto [type, kind, result] :
       llvm::zip(accumulationTypes(numerics), combiningKinds(expr), expr.op->getResultTypes()))
    if (isSumOrProduct(kind) && type != spell(getElementTypeOrSelf(result)))
      removed += points - 1;
  return removed;
}

std::string tilewright::whyNotNumerics(NumericsMode mode, const Target &target) {
  if (mode != NumericsMode::tf32 || target.has("tf32"))
    return "";
  return "numerics 'tf32' are for GPUs; target '" + target.name +
         "' multiplies f32 without rounding: choose default or strict";
}

Numerics tilewright::decideNumerics(const TensorExpr &expr, NumericsMode mode, bool regroups) {
  Numerics numerics;
  if (!expr.oneReliesOnOne()) {
    SmallVector<std::string> types;
    for (auto [result, kind] : llvm::zip(expr.op->getResultTypes(), combiningKinds(expr))) {
      Type element = getElementTypeOrSelf(result);
      types.push_back(accumulationOf(element, kind, mode));
      bool inOrder = mode == NumericsMode::strict && isNarrowFloat(element);
      numerics.reassociates |= regroups && isa<FloatType>(element) && isSumOrProduct(kind) && !inOrder;
    }
    numerics.accumulation = llvm::join(types, ", ");
  }
  numerics.roundingsRemoved = roundingsRemoved(expr, numerics, mode);
  return numerics;
}

static std::string checkReduction(const TensorExpr &expr, const Numerics &numerics, NumericsMode mode) {
  SmallVector<StringRef> types = accumulationTypes(numerics);
  if (types.size() != expr.op->getNumResults())
    return llvm::formatv("accumulates in '{0}', which is not one type for each of its {1} results",
                         numerics.accumulation, expr.op->getNumResults());
  for (auto [type, result, kind] : llvm::zip(types, expr.op->getResultTypes(), combiningKinds(expr))) {
    Type element = getElementTypeOrSelf(result);
    if (type != spell(element) && type != accumulationOf(element, kind, NumericsMode::standard))
      return llvm::formatv("cannot accumulate {0} in {1}", spell(element), type);
    if (mode == NumericsMode::strict && isSumOrProduct(kind) && isNarrowFloat(element)) {
      if (type != spell(element))
        return llvm::formatv("strict numerics accumulate {0} as the graph does, not in {1}", spell(element), type);
      if (numerics.reassociates)
        return llvm::formatv("strict numerics add {0} in the order of the graph", spell(element));
    }
  }
  return "";
}

std::string tilewright::checkNumerics(const TensorExpr &expr, const OpPlan &op, NumericsMode mode) {
  // A plan may always complete a maximum before it is used.
  using tile::Form;
  Form form = formOf(expr);
  bool waits = (form == Form::onlineSoftmax || isOnlineSoftmaxOfBlocks(form)) && op.form == Form::asIs;
  bool countsAll = form == Form::onlineSoftmaxWithBound && op.form == Form::onlineSoftmaxOfBlocks;
  if (op.form != form && !waits && !countsAll)
    return llvm::formatv("has the form '{0}', not '{1}'", tile::stringifyForm(form), tile::stringifyForm(op.form));
  if (mode == NumericsMode::strict && op.form != Form::asIs)
    return "strict numerics keep the graph's algebra, so its form must be 'as-is'";
  if (expr.oneReliesOnOne() && (!op.numerics.accumulation.empty() || op.numerics.reassociates))
    return "accumulates nothing";
  if (!expr.oneReliesOnOne())
    if (std::string why = checkReduction(expr, op.numerics, mode); !why.empty())
      return why;
  int64_t removed = roundingsRemoved(expr, op.numerics, mode);
  if (op.numerics.roundingsRemoved != removed)
    return llvm::formatv("leaves out {0} roundings per element, not {1}", removed, op.numerics.roundingsRemoved);
  return "";
}

/// Returns true if the op subtracts a maximum from the element, and that maximum was rounded like the inputs it was
/// taken from. An unrounded element could lie far above it, so its exponential could overflow.
static bool isBelowNarrowMaximum(linalg::LinalgOp op, BlockArgument element) {
  return llvm::any_of(element.getUsers(), [&](Operation *user) {
    auto difference = dyn_cast<arith::SubFOp>(user);
    return difference && isNarrowFloat(difference.getType()) && difference.getLhs() == element &&
           isBelowOwnMaximum(op, difference);
  });
}

/// Returns true if the consumer may be given an unrounded value. A maximum in f32 may, if the ops that subtract it are
/// given unrounded values, too.
static bool readerTolerates(const TensorGraph &graph, const TensorEdge &edge) {
  const TensorExpr &consumer = graph.exprs()[edge.consumer];
  BlockArgument element = elementOf(consumer, edge.input);
  auto structured = dyn_cast<linalg::LinalgOp>(consumer.op);
  if (!element || !structured)
    return element && toleratesUnrounded(element);
  if (!isNarrowFloat(element.getType()) && isOnlyTakenOffItsOwn(structured))
    return true;
  return toleratesUnrounded(element) && !isBelowNarrowMaximum(structured, element);
}

/// Returns true if an op only widens narrow floats to f32, and all its readers may be given unrounded values.
static bool widensForTolerant(const TensorGraph &graph, unsigned id) {
  const TensorExpr &expr = graph.exprs()[id];
  if (expr.op->getNumRegions() == 0 || !expr.oneReliesOnOne() || graph.escapes(id))
    return false;
  Block &body = expr.op->getRegion(0).front();
  return llvm::hasNItems(body, 2) && isa<arith::ExtFOp>(body.front()) &&
         llvm::all_of(graph.outEdges(id), [&](unsigned edge) { return readerTolerates(graph, graph.edges()[edge]); });
}

bool tilewright::mayStayUnrounded(const TensorGraph &graph, const TensorEdge &edge) {
  const TensorExpr &producer = graph.exprs()[edge.producer];
  return isNarrowFloat(getElementTypeOrSelf(producer.op->getResult(edge.result).getType())) &&
         (readerTolerates(graph, edge) || widensForTolerant(graph, edge.consumer));
}

bool tilewright::isRounded(const TensorGraph &graph, const TensorEdge &edge) {
  return graph.exprs()[edge.producer].kind != ExprKind::movement ||
         llvm::any_of(graph.inEdges(edge.producer),
                      [&](unsigned before) { return isRounded(graph, graph.edges()[before]); });
}

bool tilewright::mayUseReciprocals(const TensorExpr &expr, NumericsMode mode) {
  return mode != NumericsMode::strict && isa<linalg::LinalgOp, tile::ExprOp>(expr.op) &&
         llvm::any_of(expr.op->getRegion(0).getOps<arith::DivFOp>(),
                      [](arith::DivFOp division) { return !isRoundedToInteger(division); });
}
