// Reshapes between a maximum and its subtraction are looked through, because exports add and remove dims of one point
// there.
#include "passes/graph/OwnMaximum.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::behindViews(Value value) {
  while (Operation *view = value.getDefiningOp()) {
    if (!isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(view))
      break;
    value = view->getOperand(0);
  }
  return value;
}

OpOperand *tilewright::inputOf(linalg::LinalgOp op, Value element) {
  auto argument = dyn_cast<BlockArgument>(element);
  bool isInput = argument && argument.getOwner() == op.getBlock() &&
                 static_cast<int64_t>(argument.getArgNumber()) < op.getNumDpsInputs();
  return isInput ? op.getDpsInputOperand(argument.getArgNumber()) : nullptr;
}

linalg::GenericOp tilewright::elementwiseOp(Value value) {
  auto generic = value.getDefiningOp<linalg::GenericOp>();
  bool plain = generic && generic.getNumResults() == 1 && generic.getNumReductionLoops() == 0 &&
               generic.getMatchingIndexingMap(generic.getDpsInitOperand(0)).isIdentity();
  return plain ? generic : linalg::GenericOp();
}

/// Returns true if `op` is the maximum, over some dims, of its only input, which it reads in place.
static bool isMaximum(linalg::LinalgOp op) {
  if (!op || op.getNumDpsInputs() != 1 || op->getNumResults() != 1 || op.getNumReductionLoops() == 0 ||
      !op.getIndexingMapsArray().front().isIdentity())
    return false;
  Block &body = *op.getBlock();
  Operation *largest = body.getTerminator()->getOperand(0).getDefiningOp();
  return isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(largest) && llvm::hasNItems(body, 2) &&
         llvm::is_contained(largest->getOperands(), body.getArgument(0)) &&
         llvm::is_contained(largest->getOperands(), body.getArgument(1));
}

/// Returns the dims of more than one point that a map names, in its order. Reshapes may add and remove dims of one
/// point.
static SmallVector<unsigned> dimsOf(linalg::LinalgOp op, AffineMap map) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<unsigned> dims;
  for (AffineExpr index : map.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(index); dim && ranges[dim.getPosition()] != 1)
      dims.push_back(dim.getPosition());
  return dims;
}

bool tilewright::isBelowOwnMaximum(linalg::LinalgOp op, arith::SubFOp difference) {
  OpOperand *of = inputOf(op, difference.getLhs()), *largest = inputOf(op, difference.getRhs());
  if (!of || !largest || !op.getMatchingIndexingMap(of).isIdentity())
    return false;
  auto maximum = behindViews(largest->get()).getDefiningOp<linalg::LinalgOp>();
  return isMaximum(maximum) && maximum.getDpsInputs()[0] == of->get() &&
         dimsOf(op, op.getMatchingIndexingMap(largest)) == dimsOf(maximum, maximum.getIndexingMapsArray().back());
}

bool tilewright::isOnlyTakenOffItsOwn(linalg::LinalgOp op) {
  if (!isMaximum(op))
    return false;
  SmallVector<Value> shown{op->getResult(0)};
  while (!shown.empty())
    for (OpOperand &use : shown.pop_back_val().getUses()) {
      if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(use.getOwner())) {
        shown.push_back(use.getOwner()->getResult(0));
        continue;
      }
      auto reader = dyn_cast<linalg::LinalgOp>(use.getOwner());
      if (!reader || !reader.isDpsInput(&use))
        return false;
      BlockArgument element = reader.getMatchingBlockArgument(&use);
      for (Operation *user : element.getUsers())
        if (auto difference = dyn_cast<arith::SubFOp>(user);
            !difference || difference.getRhs() != element || !isBelowOwnMaximum(reader, difference))
          return false;
    }
  return true;
}
