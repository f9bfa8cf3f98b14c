#include "passes/graph/SumOfSquares.h"

#include "passes/graph/OwnMaximum.h"
#include "passes/graph/StartValue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;

/// Returns the only op of a body besides its yield, if it is an Op, or null.
template <typename Op> static Op onlyOp(linalg::GenericOp generic) {
  Block &body = *generic.getBody();
  auto op = llvm::hasNItems(body, 2) ? dyn_cast<Op>(&body.front()) : Op();
  return op && body.getTerminator()->getOperands() == op->getResults() ? op : Op();
}

/// Returns the value that a body squares, or null.
static Value squared(linalg::GenericOp generic) {
  if (auto product = onlyOp<arith::MulFOp>(generic); product && product.getLhs() == product.getRhs())
    return product.getLhs();
  APInt exponent;
  if (auto power = onlyOp<math::FPowIOp>(generic);
      power && matchPattern(power.getRhs(), m_ConstantInt(&exponent)) && exponent == 2)
    return power.getLhs();
  APFloat real(0.0f);
  if (auto power = onlyOp<math::PowFOp>(generic);
      power && matchPattern(power.getRhs(), m_ConstantFloat(&real)) && real.isExactlyValue(2.0))
    return power.getLhs();
  return {};
}

/// Returns the tensor that a body's element is read from, if it is read at the result's index, or null.
static Value tensorReadAtItsIndex(linalg::GenericOp generic, Value element) {
  OpOperand *input = element ? inputOf(generic, element) : nullptr;
  return input && generic.getMatchingIndexingMap(input).isIdentity() ? input->get() : Value();
}

Value tilewright::beforeExtension(Value tensor) {
  linalg::GenericOp producer = elementwiseOp(tensor);
  auto extend = producer ? onlyOp<arith::ExtFOp>(producer) : arith::ExtFOp();
  Value narrow = extend ? tensorReadAtItsIndex(producer, extend.getIn()) : Value();
  return narrow ? narrow : tensor;
}

bool tilewright::isPlainSum(linalg::GenericOp sum) {
  if (sum.getNumResults() != 1 || sum.getNumDpsInputs() != 1 || sum.getNumReductionLoops() == 0)
    return false;
  return onlyOp<arith::AddFOp>(sum) && sum.getIndexingMapsArray()[0].isIdentity() && startsFromZero(sum);
}

std::optional<SquaredDifference> tilewright::squaredDifference(linalg::GenericOp sum) {
  if (!isPlainSum(sum))
    return std::nullopt;
  linalg::GenericOp square = elementwiseOp(beforeExtension(sum.getDpsInputs()[0]));
  Value difference = square ? tensorReadAtItsIndex(square, squared(square)) : Value();
  linalg::GenericOp subtraction = difference ? elementwiseOp(beforeExtension(difference)) : linalg::GenericOp();
  auto subtract = subtraction ? onlyOp<arith::SubFOp>(subtraction) : arith::SubFOp();
  if (!subtract)
    return std::nullopt;
  Value x = tensorReadAtItsIndex(subtraction, subtract.getLhs());
  OpOperand *b = inputOf(subtraction, subtract.getRhs());
  return x && b ? std::optional<SquaredDifference>({x, b, square, subtraction}) : std::nullopt;
}

int64_t tilewright::totalOfSquares(const TensorGraph &graph, unsigned squares) {
  auto sum = dyn_cast<linalg::GenericOp>(graph.exprs()[squares].op);
  std::optional<SquaredDifference> difference = sum ? squaredDifference(sum) : std::nullopt;
  if (!difference || getElementTypeOrSelf(difference->x) != getElementTypeOrSelf(sum.getResult(0)))
    return -1;
  int64_t total = -1;
  SmallVector<Value> open = {difference->b->get()};
  while (!open.empty()) {
    Value tensor = open.pop_back_val();
    if (constantElement(tensor))
      continue;
    int64_t expr = tensor.getDefiningOp() ? graph.indexOf(tensor.getDefiningOp()) : -1;
    if (expr < 0 || (total >= 0 && !graph.exprs()[expr].oneReliesOnOne() && expr != total))
      return -1;
    if (graph.exprs()[expr].oneReliesOnOne())
      for (const TensorAccess &access : graph.exprs()[expr].inputs)
        open.push_back(access.tensor);
    else
      total = expr;
  }
  auto other = total < 0 ? linalg::GenericOp() : dyn_cast<linalg::GenericOp>(graph.exprs()[total].op);
  bool isAlike = other && isPlainSum(other) && other.getIndexingMaps() == sum.getIndexingMaps() &&
                 other.getIteratorTypes() == sum.getIteratorTypes() && other.getResultTypes() == sum.getResultTypes();
  return isAlike ? total : -1;
}
