// Raises tensor ops to tile.expr, from users to producers: once every reduction is raised, fills that only initialised
// accumulators are dead and need no expression.
#include "passes/Passes.h"
#include "passes/plan/apply/ExprRewriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_RAISETENSOREXPRS
#include "passes/Passes.h.inc"

namespace {
/// Returns true for ops that could be tensor expressions. Those that cannot be raised get a remark.
bool isCandidate(Operation *op) {
  return isa<linalg::LinalgOp>(op) || isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp,
                                          tensor::InsertSliceOp, tensor::PadOp, tensor::ConcatOp>(op);
}

/// Returns true for a fill that initialises an op that is not raised. Such a fill is not raised either.
bool startsAccumulator(Operation *op) {
  return isa<linalg::FillOp>(op) && llvm::any_of(op->getUses(), [](OpOperand &use) {
           auto user = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
           return user && user.isDpsInit(&use);
         });
}

class RaiseTensorExprs : public impl::RaiseTensorExprsBase<RaiseTensorExprs> {
  LogicalResult raiseOp(Operation *op, std::string &reason) {
    FailureOr<TensorExpr> expr = describe(op, &reason);
    if (failed(expr))
      return failure();
    if (expr->kind == ExprKind::contraction || startsAccumulator(op)) {
      reason = "left to the contraction's own compiler";
      return failure();
    }
    OpBuilder builder(op);
    SmallVector<Value> inputs =
        llvm::map_to_vector(expr->inputs, [](const TensorAccess &access) { return access.tensor; });
    FailureOr<tile::ExprOp> raised = raise(builder, *expr, inputs, &reason);
    if (failed(raised))
      return failure();
    op->replaceAllUsesWith(*raised);
    op->erase();
    return success();
  }

  void runOnOperation() override {
    SmallVector<Operation *> candidates;
    getOperation()->walk([&](Operation *op) {
      if (isCandidate(op) || isa<tensor::EmptyOp>(op))
        candidates.push_back(op);
    });
    for (Operation *op : llvm::reverse(candidates)) {
      std::string reason;
      if (isOpTriviallyDead(op)) {
        op->erase();
      } else if (!isCandidate(op)) {
        continue;
      } else if (succeeded(raiseOp(op, reason))) {
        ++numRaised;
      } else {
        ++numLeft;
        remark::missed(op->getLoc(), remark::RemarkOpts::name("left").category("tile-raise")) << reason;
      }
    }
  }
};
} // namespace
} // namespace tilewright
