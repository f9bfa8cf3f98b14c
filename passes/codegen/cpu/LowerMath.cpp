// Transcendental functions without libm: upstream's algebraic simplifications, expansions and polynomials, on vectors.
// A function that stays would become a libm call in the object, which IREE's loader cannot resolve, so it is an error
// here, where the op is known.
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tilewright {
#define GEN_PASS_DEF_LOWERMATH
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;

namespace {
/// log10 x = ln x * log10 e; upstream has no polynomial for it.
struct ExpandLog10 : OpRewritePattern<math::Log10Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Log10Op op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    TypedAttr scale = FloatAttr::get(getElementTypeOrSelf(type), 0.43429448190325182765);
    if (auto vector = dyn_cast<VectorType>(type))
      scale = DenseElementsAttr::get(vector, Attribute(scale));
    Value log = math::LogOp::create(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, log, arith::ConstantOp::create(rewriter, op.getLoc(), scale));
    return success();
  }
};

bool isInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp, math::SqrtOp,
             math::FmaOp, math::CopySignOp, math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(op);
}

struct LowerMath : tilewright::impl::LowerMathBase<LowerMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandLog10>(&getContext());
    populateMathAlgebraicSimplificationPatterns(patterns);
    math::populateExpansionPatterns(patterns, {"sinh", "cosh", "tan", "asinh", "acosh", "atanh", "exp2", "powf", "round",
                                               "rsqrt", "fpowi", "ctlz"});
    populateMathPolynomialApproximationPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) || isInstruction(op))
        return;
      op->emitError("has no expansion without libm; leave the op that contains it out of the plan");
      signalPassFailure();
    });
  }
};
} // namespace
