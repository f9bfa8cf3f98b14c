// Writes a subprogram's numerics attribute into the bodies of its expressions. Roundings become ops, which later passes
// neither add nor remove, and freedoms become fastmath flags of the ops that have them. Upstream's emulation of narrow
// floats is not used, because it would remove every rounding inside a body, whatever was fused into it, without the
// plan knowing.
#include "passes/Passes.h"
#include "passes/graph/Rounding.h"
#include "passes/plan/apply/ExprBuilder.h"
#include "passes/normalize/Roundings.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_APPLYNUMERICS
#include "passes/Passes.h.inc"

namespace {
struct ApplyNumerics : impl::ApplyNumericsBase<ApplyNumerics> {
  using ApplyNumericsBase::ApplyNumericsBase;

  /// Removes roundings between two operations of one body that tolerate their absence.
  void relax(Block &body) {
    SmallVector<arith::ExtFOp> extensions(body.getOps<arith::ExtFOp>());
    numLeftOut += llvm::count_if(extensions, [](arith::ExtFOp extend) { return leaveOutRounding(extend); });
  }

  /// Replaces a division by a constant by a multiplication with its reciprocal. The constant must be far from the ends
  /// of its type's range, so that its reciprocal is as well.
  static void multiplyInstead(arith::DivFOp division) {
    APFloat divisor(0.0f);
    if (!division.getType().isF32() && !division.getType().isF64())
      return;
    if (!matchPattern(division.getRhs(), m_ConstantFloat(&divisor)))
      return;
    constexpr int kMostExponent = 100;
    if (!divisor.isNormal() || std::abs(ilogb(divisor)) > kMostExponent)
      return;
    APFloat reciprocal(divisor.getSemantics(), 1);
    reciprocal.divide(divisor, APFloat::rmNearestTiesToEven);
    OpBuilder builder(division);
    auto constant = builder.getFloatAttr(division.getType(), reciprocal);
    Value factor = arith::ConstantOp::create(builder, division.getLoc(), constant);
    division.replaceAllUsesWith(
        arith::MulFOp::create(builder, division.getLoc(), division.getLhs(), factor).getResult());
    division.erase();
  }

  /// Allows reciprocals for divisions, and approximate functions (by an instruction, or fused with their reader).
  static void allowFastMath(Block &body) {
    auto allow = [](auto ops, arith::FastMathFlags flag) {
      for (auto op : ops)
        op.setFastmath(op.getFastmath() | flag);
    };
    auto divisions =
        llvm::make_filter_range(body.getOps<arith::DivFOp>(), [](arith::DivFOp op) { return !isRoundedToInteger(op); });
    allow(divisions, arith::FastMathFlags::arcp);
    for (arith::DivFOp division : llvm::make_early_inc_range(divisions))
      multiplyInstead(division);
    allow(body.getOps<math::TanhOp>(), arith::FastMathFlags::afn);
    allow(body.getOps<math::ExpOp>(), arith::FastMathFlags::afn);
    allow(body.getOps<math::Exp2Op>(), arith::FastMathFlags::afn);
  }

  /// Allows sums to add products before they are rounded. A micro kernel does so in any case.
  static void allowFusedSums(tile::ExprOp expr) {
    if (!expr.isReduction() || expr.getMicroKernel())
      return;
    for (auto sum : expr.getBodyBlock().getOps<arith::AddFOp>())
      sum.setFastmath(sum.getFastmath() | arith::FastMathFlags::contract);
  }

  void runOnOperation() override {
    getOperation().walk([&](tile::SubprogramOp subprogram) { apply(subprogram); });
  }

  void apply(tile::SubprogramOp subprogram) {
    tile::NumericsAttr numerics = subprogram.getNumericsAttr();
    for (auto expr : subprogram.getBody().getOps<tile::ExprOp>()) {
      Block &body = expr.getBodyBlock();
      widenArithmetic(body);
      if (!numerics || numerics.getRoundings() == tile::Roundings::relaxed)
        relax(body);
      if (allowsFastMath(subprogram)) {
        allowFastMath(body);
        allowFusedSums(expr);
      }
      eraseUnused(body);
    }
  }
};
} // namespace
} // namespace tilewright
