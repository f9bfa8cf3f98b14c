// Propagates relations through each body op by op, and from expression to expression in program order. Unknown ops give
// `other`, which is always safe.
#include "passes/graph/OnlineSoftmax.h"

#include "passes/graph/Rounding.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace tilewright;

namespace {
using Relations = llvm::DenseMap<Value, Relation>; ///< by value of a body; absent: independent

Relation relationOf(Operation &op, const Relations &known, bool throughRoundings) {
  auto of = [&](unsigned i) { return known.lookup_or(op.getOperand(i), Relation::independent); };
  bool depends = llvm::any_of(op.getOperands(), [&](Value operand) { return known.contains(operand); });
  if (!depends)
    return Relation::independent;
  if (isa<arith::SubFOp>(op) && of(0) == Relation::independent && of(1) == Relation::maximum)
    return Relation::shifted;
  if (isa<math::ExpOp>(op) && of(0) == Relation::shifted)
    return Relation::proportional;
  if (throughRoundings && isa<arith::ExtFOp, arith::TruncFOp>(op) && of(0) == Relation::proportional)
    return Relation::proportional;
  if (isa<arith::MulFOp>(op) && ((of(0) == Relation::proportional && of(1) == Relation::independent) ||
                                 (of(0) == Relation::independent && of(1) == Relation::proportional)))
    return Relation::proportional;
  return Relation::other;
}

/// Returns the relation of the yielded value, or of what a reduction adds up.
Relation relationOfResult(const TensorExpr &expr, const Relations &known) {
  Value yielded = expr.op->getRegion(0).front().getTerminator()->getOperand(0);
  if (expr.oneReliesOnOne())
    return known.lookup_or(yielded, Relation::independent);
  // The accumulator is independent, so if the result is not, the value combined with it is not either.
  Operation *combine = yielded.getDefiningOp();
  if (!known.contains(yielded))
    return Relation::independent;
  bool adds = isa_and_nonnull<arith::AddFOp>(combine) && combiningKinds(expr).front() == vector::CombiningKind::ADD;
  bool proportional = adds && llvm::any_of(combine->getOperands(), [&](Value operand) {
                        return known.lookup_or(operand, Relation::independent) == Relation::proportional;
                      });
  return proportional ? Relation::sum : Relation::other;
}

Relation relationOf(const TensorExpr &expr, ArrayRef<Relation> inputs, bool throughRoundings) {
  if (llvm::all_of(inputs, [](Relation input) { return input == Relation::independent; }))
    return Relation::independent;
  bool guarded = llvm::any_of(llvm::zip(expr.inputs, inputs), [](auto pair) {
    auto &[access, input] = pair;
    return input != Relation::independent && access.guard != IntegerSet();
  });
  if (guarded || expr.op->getNumResults() != 1)
    return Relation::other;
  Type element = getElementTypeOrSelf(expr.op->getResult(0).getType());
  bool isRounded = throughRoundings && expr.oneReliesOnOne() && isNarrowFloat(element);
  if (!element.isF32() && !isRounded)
    return Relation::other;
  if (expr.op->getNumRegions() == 0)
    return inputs.size() == 1 ? inputs.front() : Relation::other;
  Relations known;
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input != Relation::independent) {
      BlockArgument element = elementOf(expr, i);
      if (!element)
        return Relation::other;
      known[element] = input;
    }
  for (Operation &op : expr.op->getRegion(0).front().without_terminator())
    if (Relation relation = relationOf(op, known, throughRoundings); relation != Relation::independent)
      for (Value result : op.getResults())
        known[result] = relation;
  return relationOfResult(expr, known);
}
} // namespace

SmallVector<Relation> tilewright::relateTo(ArrayRef<TensorExpr> exprs, unsigned maximum,
                                           llvm::function_ref<int64_t(unsigned, unsigned)> producerOf,
                                           bool throughRoundings) {
  SmallVector<Relation> relations(exprs.size(), Relation::independent);
  relations[maximum] = Relation::maximum;
  for (unsigned id = maximum + 1; id < exprs.size(); ++id) {
    SmallVector<Relation> inputs;
    for (unsigned input = 0; input < exprs[id].inputs.size(); ++input) {
      int64_t producer = producerOf(id, input);
      Relation relation = producer < 0 ? Relation::independent : relations[producer];
      inputs.push_back(relation == Relation::sum ? Relation::independent : relation);
    }
    relations[id] = relationOf(exprs[id], inputs, throughRoundings);
  }
  return relations;
}

bool tilewright::isRowMaximum(const TensorExpr &expr, int64_t least) {
  if (expr.reductions.size() != 1 || expr.op->getNumResults() != 1 || expr.domain[expr.reductions.front()] < least ||
      !getElementTypeOrSelf(expr.op->getResult(0).getType()).isF32())
    return false;
  if (combiningKinds(expr).front() != vector::CombiningKind::MAXIMUMF)
    return false;
  // A maximum that begins with NaN is NaN, whatever the row holds.
  auto structured = dyn_cast<linalg::LinalgOp>(expr.op);
  auto initial =
      structured ? dyn_cast_or_null<FloatAttr>(constantElement(structured.getDpsInits().front())) : FloatAttr();
  return !initial || !initial.getValue().isNaN();
}

int64_t tilewright::pointsPerReference(int64_t vectorBytes, int64_t vectorRegisters) {
  return vectorRegisters / 4 * (vectorBytes / 4);
}

int64_t tilewright::shortestOnlineRow(const Target &target) {
  return target.costs.common.referencesOfRow * pointsPerReference(target.vectorBytes, target.vectorRegisters);
}
