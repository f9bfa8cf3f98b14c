// Expands transcendental functions without libm. f32 functions are our own (VectorMath.h); all others use upstream's
// algebraic simplifications and expansions. A function that remained would become a call of libm in the object file,
// which IREE's loader cannot resolve. It is therefore an error here, where the op and its location are known.
#include "dialects/tile/TargetOf.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/codegen/common/NestEmitter.h"
#include "passes/codegen/common/VectorMath.h"
#include "passes/graph/OwnMaximum.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>
#include <limits>

namespace tilewright {
#define GEN_PASS_DEF_LOWERMATH
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using vecmath::Num;

namespace {
/// The target's instructions for exponentials, beyond plain arithmetic.
struct Instructions {
  bool scalef, ex2;

  explicit Instructions(const Target &target)
      : scalef(StringRef(target.features).contains("+avx512vl")), ex2(target.has("ex2")) {}

  vecmath::Emitter emitter(OpBuilder &builder, Location loc) const { return {builder, loc, scalef, ex2}; }
  /// Returns an emitter for an op that may not be approximated.
  vecmath::Emitter exactEmitter(OpBuilder &builder, Location loc) const { return {builder, loc, scalef}; }
};

/// Replaces an f32 op by the code that `Function` emits for its operands.
template <typename Op, auto Function> struct Expand : OpRewritePattern<Op> {
  Expand(MLIRContext *context, const Instructions &instructions)
      : OpRewritePattern<Op>(context, /*benefit=*/2), instructions(instructions) {}

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    bool approximates = bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
    vecmath::Emitter emitter =
        approximates ? instructions.emitter(rewriter, op.getLoc()) : instructions.exactEmitter(rewriter, op.getLoc());
    if constexpr (std::is_invocable_v<decltype(Function), Num, Num>)
      rewriter.replaceOp(op, Function({emitter, op.getLhs()}, {emitter, op.getRhs()}).get());
    else
      rewriter.replaceOp(op, Function({emitter, op.getOperand()}).get());
    return success();
  }

  Instructions instructions;
};

/// Returns the only user of a value if it is an op of the given kind, or null.
template <typename Op> Op onlyReader(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

arith::AddFOp onlySumWithOne(Value value) {
  auto sum = onlyReader<arith::AddFOp>(value);
  bool addsOne = sum && llvm::any_of(sum->getOperands(), [](Value term) { return matchPattern(term, m_OneFloat()); });
  return addsOne ? sum : nullptr;
}

/// Returns the other factor if the only user of the value is a product, or null.
Value onlyCofactor(Value value) {
  auto product = onlyReader<arith::MulFOp>(value);
  return product ? (product.getLhs() == value ? product.getRhs() : product.getLhs()) : Value();
}

/// Returns true if the op is an f32 function that may be approximated, so that it can be fused with its user.
template <typename Op> bool mayBeFused(Op op) {
  return bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn) && getElementTypeOrSelf(op.getType()).isF32();
}

/// Splits a product x * c with a constant c into x and c. Returns the value itself and 1 if it is no such product.
std::pair<Num, double> splitConstantFactor(Num value) {
  APFloat factor(0.0f);
  auto product = value.get().getDefiningOp<arith::MulFOp>();
  if (!product || !matchPattern(product.getRhs(), m_ConstantFloat(&factor)))
    return {value, 1.0};
  return {Num(value.where(), product.getLhs()), factor.convertToFloat()};
}

/// Returns -2 x. A constant factor of x absorbs the -2, unless that overflows.
Num timesMinusTwo(Num x) {
  auto [rest, factor] = splitConstantFactor(x);
  return std::abs(factor) < std::numeric_limits<float>::max() / 2 ? rest * (-2 * factor) : x * -2.0;
}

/// Returns 2 y / (1 + exp(negated)), which overflows only where y (1 + tanh x) overflows.
Num twiceTimesSigmoid(Num y, Num negated) {
  auto [rest, factor] = splitConstantFactor(y);
  if (factor == 0.5)
    return vecmath::timesSigmoid(rest, negated);
  if (std::abs(factor) < 0.5)
    return vecmath::timesSigmoid(rest * (2 * factor), negated);
  return vecmath::timesTwiceSigmoid(y, negated);
}

/// Replaces 1 + tanh x, which gelu contains, by 2 / (1 + exp(-2x)). That is cheaper, and exact where the sum would
/// cancel. If the sum is a factor of a product, the other factor becomes the dividend.
struct FuseOnePlusTanh : OpRewritePattern<math::TanhOp> {
  FuseOnePlusTanh(MLIRContext *context, const Instructions &instructions)
      : OpRewritePattern(context, /*benefit=*/3), instructions(instructions) {}

  LogicalResult matchAndRewrite(math::TanhOp op, PatternRewriter &rewriter) const override {
    auto sum = onlySumWithOne(op.getResult());
    if (!mayBeFused(op) || !sum)
      return failure();
    Value cofactor = onlyCofactor(sum.getResult());
    Operation *last = cofactor ? *sum->user_begin() : sum;
    rewriter.setInsertionPoint(last);
    vecmath::Emitter emitter = instructions.emitter(rewriter, op.getLoc());
    Num negated = timesMinusTwo({emitter, op.getOperand()});
    Num result =
        cofactor ? twiceTimesSigmoid({emitter, cofactor}, negated) : vecmath::timesSigmoid(negated.like(2.0), negated);
    rewriter.replaceOp(last, result.get());
    return success();
  }

  Instructions instructions;
};

/// Replaces a product with a sigmoid, x * (1 / (1 + exp(-y))), which silu contains, by the quotient x / (1 + exp(-y)).
struct FuseTimesSigmoid : OpRewritePattern<math::ExpOp> {
  FuseTimesSigmoid(MLIRContext *context, const Instructions &instructions)
      : OpRewritePattern(context, /*benefit=*/4), instructions(instructions) {}

  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    auto sum = onlySumWithOne(op.getResult());
    auto quotient = mayBeFused(op) && sum ? onlyReader<arith::DivFOp>(sum.getResult()) : arith::DivFOp();
    if (!quotient || !matchPattern(quotient.getLhs(), m_OneFloat()))
      return failure();
    Value cofactor = onlyCofactor(quotient.getResult());
    if (!cofactor)
      return failure();
    Operation *product = *quotient->user_begin();
    rewriter.setInsertionPoint(product);
    vecmath::Emitter emitter = instructions.emitter(rewriter, op.getLoc());
    Num result = vecmath::timesSigmoid({emitter, cofactor}, {emitter, op.getOperand()});
    rewriter.replaceOp(product, result.get());
    return success();
  }

  Instructions instructions;
};

/// Replaces an exponential by a cheaper variant that the attribute `mark` permits.
struct ExpandMarkedExp : OpRewritePattern<math::ExpOp> {
  using Function = vecmath::Num(vecmath::Num);

  ExpandMarkedExp(MLIRContext *context, PatternBenefit benefit, StringRef mark, Function *function,
                  const Instructions &instructions)
      : OpRewritePattern(context, benefit), mark(mark), function(function), instructions(instructions) {}

  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!op->hasAttr(mark) || !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    vecmath::Emitter emitter = instructions.emitter(rewriter, op.getLoc());
    rewriter.replaceOp(op, function({emitter, op.getOperand()}).get());
    return success();
  }

  StringRef mark;
  Function *function;
  Instructions instructions;
};

/// Converts to narrow integers by way of 32 bits. Front ends use the signed conversion for unsigned bytes too, for
/// which 128 and above are poison. A conversion to 32 bits and a truncation give the intended byte on every processor.
struct WidenConversion : OpRewritePattern<arith::FPToSIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::FPToSIOp op, PatternRewriter &rewriter) const override {
    constexpr unsigned kWord = 32;
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    if (element.getIntOrFloatBitWidth() >= kWord)
      return failure();
    Type word = rewriter.getIntegerType(kWord);
    if (auto vector = dyn_cast<VectorType>(type))
      word = vector.clone(word);
    Value wide = arith::FPToSIOp::create(rewriter, op.getLoc(), word, op.getIn());
    rewriter.replaceOpWithNewOp<arith::TruncIOp>(op, type, wide);
    return success();
  }
};

/// Rounds to the nearest integer, with ties away from zero, in any float type. Upstream expands only f32.
struct ExpandRound : OpRewritePattern<math::RoundOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RoundOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value x = op.getOperand();
    auto like = [&](double number) -> Value {
      TypedAttr scalar = rewriter.getFloatAttr(getElementTypeOrSelf(x), number);
      auto vector = dyn_cast<VectorType>(x.getType());
      return arith::ConstantOp::create(rewriter, loc, vector ? DenseElementsAttr::get(vector, scalar) : scalar);
    };
    Value whole = math::TruncOp::create(rewriter, loc, x);
    Value rest = math::AbsFOp::create(rewriter, loc, arith::SubFOp::create(rewriter, loc, x, whole));
    Value isHalf = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::OGE, rest, like(0.5));
    Value next =
        arith::AddFOp::create(rewriter, loc, whole, math::CopySignOp::create(rewriter, loc, like(1.0), x).getResult());
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isHalf, next, whole);
    return success();
  }
};

void addOwnFunctions(RewritePatternSet &patterns, const Instructions &instructions) {
  patterns.add<
      FuseOnePlusTanh, FuseTimesSigmoid, Expand<math::ExpOp, vecmath::exp>, Expand<math::Exp2Op, vecmath::exp2>,
      Expand<math::ExpM1Op, vecmath::expm1>, Expand<math::SinhOp, vecmath::sinh>, Expand<math::CoshOp, vecmath::cosh>,
      Expand<math::TanhOp, vecmath::tanh>, Expand<math::ErfOp, vecmath::erf>, Expand<math::LogOp, vecmath::log>,
      Expand<math::Log2Op, vecmath::log2>, Expand<math::Log10Op, vecmath::log10>, Expand<math::Log1pOp, vecmath::log1p>,
      Expand<math::AsinhOp, vecmath::asinh>, Expand<math::AcoshOp, vecmath::acosh>,
      Expand<math::AtanhOp, vecmath::atanh>, Expand<math::RsqrtOp, vecmath::rsqrt>, Expand<math::SinOp, vecmath::sin>,
      Expand<math::CosOp, vecmath::cos>, Expand<math::TanOp, vecmath::tan>, Expand<math::AsinOp, vecmath::asin>,
      Expand<math::AcosOp, vecmath::acos>, Expand<math::AtanOp, vecmath::atan>, Expand<math::Atan2Op, vecmath::atan2>,
      Expand<math::CbrtOp, vecmath::cbrt>, Expand<math::PowFOp, vecmath::pow>>(patterns.getContext(), instructions);
  patterns.add<ExpandRound, WidenConversion>(patterns.getContext());
  patterns.add<ExpandMarkedExp>(patterns.getContext(), /*benefit=*/3, kSmallArgumentAttr, vecmath::expOfSmall,
                                instructions);
  patterns.add<ExpandMarkedExp>(patterns.getContext(), /*benefit=*/4, kForBf16Attr, vecmath::expForBf16, instructions);
}

bool isInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundEvenOp, math::SqrtOp,
             math::FmaOp, math::CopySignOp, math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(op);
}

struct LowerMath : tilewright::impl::LowerMathBase<LowerMath> {
  using LowerMathBase::LowerMathBase;

  LogicalResult lower(func::FuncOp function) {
    FailureOr<Target> known = targetOrError(function, targetOf(function, target));
    if (failed(known))
      return failure();
    RewritePatternSet patterns(&getContext());
    addOwnFunctions(patterns, Instructions(*known));
    populateMathAlgebraicSimplificationPatterns(patterns);
    math::populateExpansionPatterns(patterns, {"rsqrt", "fpowi", "ctlz"});
    populatePolynomialApproximateErfcPattern(patterns);
    return applyPatternsGreedily(function, std::move(patterns));
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(lower(function)))
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
