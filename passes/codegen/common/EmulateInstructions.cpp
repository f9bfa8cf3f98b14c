// Emulates instructions that x86-64 has only since AVX2 or later. LLVM would call library functions for these ops, and
// IREE's loader cannot resolve such calls.
//
// - An f32 fma becomes a product and a sum in f64. The product is exact. The sum is rounded twice instead of once,
//   which changes the last bit in about one of 2^29 cases. An f64 fma becomes a product and a sum, because our
//   functions use it only where they have bits to spare.
// - Conversions of f16 work on the bits. They handle subnormal numbers as integers and never go through a subnormal
//   f32, because a runtime may flush those to zero.
// - Conversions of bf16 use upstream's expansion, unless the target has instructions for them. All other bf16 values
//   are only moved, and become i16: LLVM emits library calls for bf16 on targets without bf16 registers, and even with
//   them cannot store a single element.
#include "dialects/tile/TargetOf.h"
#include "passes/Passes.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace tilewright {
#define GEN_PASS_DEF_EMULATEINSTRUCTIONS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns `element`, or a vector of it if `like` is a vector.
Type shaped(Type element, Type like) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(vector.clone(element)) : element;
}

/// Builds integer arithmetic on values of one type, a scalar or a vector. Constants are given as numbers.
class Bits {
public:
  Bits(ImplicitLocOpBuilder &builder, Type type) : builder(builder), type(type) {}

  Value constant(int64_t value) {
    TypedAttr scalar = builder.getIntegerAttr(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      scalar = DenseElementsAttr::get(vector, Attribute(scalar));
    return arith::ConstantOp::create(builder, scalar);
  }
  Value band(Value a, int64_t b) { return arith::AndIOp::create(builder, a, constant(b)); }
  Value bor(Value a, Value b) { return arith::OrIOp::create(builder, a, b); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, a, b); }
  Value shiftLeft(Value a, int64_t by) { return arith::ShLIOp::create(builder, a, constant(by)); }
  Value shiftRight(Value a, int64_t by) { return arith::ShRUIOp::create(builder, a, constant(by)); }
  Value less(Value a, int64_t b) { return arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, a, constant(b)); }
  Value select(Value condition, Value a, Value b) { return arith::SelectOp::create(builder, condition, a, b); }
  Value fromFloat(Value a) { return arith::BitcastOp::create(builder, type, a); }
  Value toFloat(Value a) { return arith::BitcastOp::create(builder, shaped(builder.getF32Type(), type), a); }

private:
  ImplicitLocOpBuilder &builder;
  Type type;
};

struct EmulateFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    auto wide = [&](Value value) -> Value {
      return element.isF64() ? value
                             : arith::ExtFOp::create(builder, shaped(builder.getF64Type(), op.getType()), value);
    };
    Value product = arith::MulFOp::create(builder, wide(op.getA()), wide(op.getB()));
    Value sum = arith::AddFOp::create(builder, product, wide(op.getC()));
    rewriter.replaceOp(op, element.isF64() ? sum : arith::TruncFOp::create(builder, op.getType(), sum));
    return success();
  }
};

/// Extends f16 to f64 through f32, which is exact. LLVM has no other way, and would compare in f16, by a call, where an
/// f64 was extended from it.
struct WidenThroughF32 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isF16() || !getElementTypeOrSelf(op.getType()).isF64())
      return failure();
    Type single = shaped(rewriter.getF32Type(), op.getType());
    Value wide = arith::ExtFOp::create(rewriter, op.getLoc(), single, op.getIn());
    rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), wide);
    return success();
  }
};

/// Rounds f64 to f16 or bf16 through an f32 that is rounded to odd: if it is not exact, its last bit is one. It then lies
/// on the same side of every point at which the narrow type rounds up or down, so that rounding again gives what
/// rounding once would.
struct NarrowThroughF32 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    if (!getElementTypeOrSelf(op.getIn()).isF64() || !(element.isF16() || element.isBF16()))
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Type single = shaped(builder.getF32Type(), op.getType());
    Bits bits(builder, shaped(builder.getI32Type(), op.getType()));
    Value nearest = arith::TruncFOp::create(builder, single, op.getIn());
    Value exact = math::AbsFOp::create(builder, op.getIn());
    Value rounded = math::AbsFOp::create(builder, arith::ExtFOp::create(builder, op.getIn().getType(), nearest));
    auto compare = [&](arith::CmpFPredicate predicate) -> Value {
      return arith::CmpFOp::create(builder, predicate, rounded, exact); // false for NaN
    };
    Value even = bits.fromFloat(nearest), isEven = bits.less(bits.band(even, 1), 1);
    Value one = bits.constant(1), none = bits.constant(0);
    Value up = bits.select(arith::AndIOp::create(builder, isEven, compare(arith::CmpFPredicate::OLT)), one, none);
    Value down = bits.select(arith::AndIOp::create(builder, isEven, compare(arith::CmpFPredicate::OGT)), one, none);
    Value odd = arith::SubIOp::create(builder, bits.add(even, up), down);
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), bits.toFloat(odd));
    return success();
  }
};

struct WidenHalf : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isF16() || !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Type narrow = shaped(builder.getI16Type(), op.getType()), wide = shaped(builder.getI32Type(), op.getType());
    Bits bits(builder, wide);
    Value half = arith::ExtUIOp::create(builder, wide, Value(arith::BitcastOp::create(builder, narrow, op.getIn())));
    Value sign = bits.shiftLeft(bits.band(half, 0x8000), 16), magnitude = bits.band(half, 0x7fff);
    Value shifted = bits.shiftLeft(magnitude, 13);
    Value normal = bits.add(shifted, bits.constant(int64_t(112) << 23)); // the biases of the exponents differ by 112
    Value count = arith::SIToFPOp::create(builder, op.getType(), magnitude);
    Value smallest = bits.toFloat(bits.constant(int64_t(127 - 24) << 23));
    Value subnormal = bits.fromFloat(arith::MulFOp::create(builder, count, smallest));
    Value special = bits.bor(shifted, bits.constant(0x7f800000)); // infinities and NaNs have all exponent bits set
    Value finite = bits.select(bits.less(magnitude, 0x0400), subnormal, normal);
    Value result = bits.select(bits.less(magnitude, 0x7c00), finite, special);
    rewriter.replaceOp(op, bits.toFloat(bits.bor(result, sign)));
    return success();
  }
};

struct NarrowToHalf : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isF32() || !getElementTypeOrSelf(op.getType()).isF16())
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Type narrow = shaped(builder.getI16Type(), op.getType()), wide = shaped(builder.getI32Type(), op.getType());
    Bits bits(builder, wide);
    Value input = bits.fromFloat(op.getIn());
    Value sign = bits.shiftRight(bits.band(input, 0x80000000), 16), magnitude = bits.band(input, 0x7fffffff);
    // Round to nearest even: add half a unit in the last place minus one, plus one if the last bit kept is odd. A carry
    // into the exponent is correct.
    Value odd = bits.band(bits.shiftRight(magnitude, 13), 1);
    Value rounded = bits.add(bits.add(magnitude, odd), bits.constant(0xfff - (int64_t(112) << 23)));
    Value normal = bits.shiftRight(rounded, 13);
    // The unit in the last place of 0.5 is the smallest f16 number, so adding 0.5 rounds subnormal results correctly.
    Value half = bits.constant(126 << 23);
    Value moved = arith::AddFOp::create(builder, bits.toFloat(magnitude), bits.toFloat(half));
    Value subnormal = arith::SubIOp::create(builder, bits.fromFloat(moved), half);
    Value finite = bits.select(bits.less(magnitude, (127 - 14) << 23), subnormal, normal);
    Value number = bits.select(bits.less(magnitude, 0x477ff000), finite, bits.constant(0x7c00)); // 65520: inf
    Value quiet = bits.bor(bits.band(bits.shiftRight(magnitude, 13), 0x3ff), bits.constant(0x7e00));
    Value result = bits.bor(bits.select(bits.less(magnitude, 0x7f800001), number, quiet), sign);
    Value stored = arith::TruncIOp::create(builder, narrow, result);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), stored);
    return success();
  }
};

/// Rounds an f64 constant to bf16 in one step. Attributes of models may be f64, and rounding them to f32 first would
/// round twice.
struct NarrowConstant : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    llvm::APFloat value(0.0);
    if (!getElementTypeOrSelf(op.getType()).isBF16() || !matchPattern(op.getIn(), m_ConstantFloat(&value)))
      return failure();
    bool exact;
    value.convert(llvm::APFloat::BFloat(), llvm::APFloat::rmNearestTiesToEven, &exact);
    TypedAttr constant = FloatAttr::get(rewriter.getBF16Type(), value);
    if (auto vector = dyn_cast<VectorType>(op.getType()))
      constant = DenseElementsAttr::get(vector, Attribute(constant));
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, constant);
    return success();
  }
};

/// An op that needs operands or results of type bf16: a conversion or a target instruction. It keeps its types when all
/// other bf16 values become i16.
struct Instruction {
  Operation *op;
  SmallVector<Type> operands, results;
};

SmallVector<Instruction> collectInstructions(Operation *function) {
  auto isBf16 = [](Type type) { return getElementTypeOrSelf(type).isBF16(); };
  SmallVector<Instruction> instructions;
  function->walk([&](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp, LLVM::CallIntrinsicOp, LLVM::InlineAsmOp>(op) &&
        (llvm::any_of(op->getOperandTypes(), isBf16) || llvm::any_of(op->getResultTypes(), isBf16)))
      instructions.push_back({op, llvm::to_vector(op->getOperandTypes()), llvm::to_vector(op->getResultTypes())});
  });
  return instructions;
}

/// Restores the types of an instruction's operands and results, which have become i16, with bitcasts around it.
void restore(const Instruction &instruction) {
  OpBuilder builder(instruction.op);
  for (auto [operand, type] : llvm::zip(instruction.op->getOpOperands(), instruction.operands))
    if (operand.get().getType() != type)
      operand.set(arith::BitcastOp::create(builder, instruction.op->getLoc(), type, operand.get()));
  builder.setInsertionPointAfter(instruction.op);
  for (auto [result, type] : llvm::zip(instruction.op->getResults(), instruction.results)) {
    Type bits = result.getType();
    if (bits == type)
      continue;
    result.setType(type);
    auto cast = arith::BitcastOp::create(builder, instruction.op->getLoc(), bits, result);
    result.replaceAllUsesExcept(cast, cast);
  }
}

void carryBf16AsBits(Operation *function) {
  SmallVector<Instruction> instructions = collectInstructions(function);
  auto bits = IntegerType::get(function->getContext(), 16);
  AttrTypeReplacer replacer;
  replacer.addReplacement([=](BFloat16Type) -> Type { return bits; });
  replacer.addReplacement([=](FloatAttr value) -> std::optional<Attribute> {
    if (!value.getType().isBF16())
      return std::nullopt;
    return IntegerAttr::get(bits, value.getValue().bitcastToAPInt());
  });
  replacer.addReplacement([=](DenseElementsAttr values) -> std::optional<Attribute> {
    if (!values.getElementType().isBF16())
      return std::nullopt;
    return values.bitcast(bits);
  });
  replacer.recursivelyReplaceElementsIn(function, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
  function->walk([](arith::BitcastOp cast) {
    if (cast.getIn().getType() == cast.getType()) {
      cast.replaceAllUsesWith(cast.getIn());
      cast.erase();
    }
  });
  llvm::for_each(instructions, restore);
}

struct EmulateInstructions : tilewright::impl::EmulateInstructionsBase<EmulateInstructions> {
  using EmulateInstructionsBase::EmulateInstructionsBase;

  void runOnOperation() override {
    FailureOr<Target> known = targetOrError(getOperation(), targetOf(getOperation(), target));
    if (failed(known))
      return signalPassFailure();
    RewritePatternSet doubles(&getContext());
    doubles.add<NarrowConstant>(&getContext(), /*benefit=*/2); // a constant is rounded now
    doubles.add<WidenThroughF32, NarrowThroughF32>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(doubles));
    RewritePatternSet patterns(&getContext());
    if (!known->has("fma"))
      patterns.add<EmulateFma>(&getContext());
    if (!known->has("f16c"))
      patterns.add<WidenHalf, NarrowToHalf>(&getContext());
    if (known->has("minmax")) // arith-expand, which would expand them, too, does not run
      arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    if (!known->has("avx512bf16"))
      arith::populateExpandBFloat16Patterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    carryBf16AsBits(getOperation());
  }
};
} // namespace
