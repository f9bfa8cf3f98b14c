// Expands IREE's quantize and dequantize ops into elementwise arithmetic, which fuses with the ops around it and in
// which tile-lower-quantized-matmul finds zero points and scales. The ops belong to IREE and are unregistered here, so
// they are recognised by their names, maps and bounds. ONNX does not define the result for NaN, which no integer
// represents; here it is the lower bound, as in ONNX Runtime.
#include "passes/Passes.h"
#include "passes/graph/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_EXPANDQUANTIZATION
#include "passes/Passes.h.inc"

namespace {
constexpr llvm::StringLiteral kQuantize = "iree_linalg_ext.quantize_affine";
constexpr llvm::StringLiteral kDequantize = "iree_linalg_ext.dequantize_affine";

/// A quantize or dequantize op. Its operands are the input, the scale, an optional zero point and the tensor that the
/// result is written into; each has a map.
struct Quantization {
  Operation *op;
  SmallVector<AffineMap> maps;
  int64_t low, high; ///< bounds of the quantized numbers
  bool isUnsigned;   ///< true if the quantized numbers are unsigned
  bool hasZeroPoint, unsignedZeroPoint;

  bool quantizes() const { return op->getName().getStringRef() == kQuantize; }
  Value scale() const { return op->getOperand(1); }
  Value zeroPoint() const { return hasZeroPoint ? op->getOperand(2) : Value(); }
  Type quantizedType() const {
    return getElementTypeOrSelf(quantizes() ? op->getResult(0).getType() : op->getOperand(0).getType());
  }
};

/// Width in bits up to which differences and sums of integers are exact in f32.
constexpr unsigned kMostExactBits = 16;

/// Returns true if arithmetic in f32, with intermediate integers in i32, gives the op's exact result.
bool isExact(const Quantization &what) {
  Type wide = getElementTypeOrSelf((what.quantizes() ? what.op->getOperand(0) : what.op->getResult(0)).getType());
  auto narrow = dyn_cast<IntegerType>(what.quantizedType());
  if (!wide.isF32() || !getElementTypeOrSelf(what.scale()).isF32() || !narrow)
    return false;
  if (what.hasZeroPoint && !getElementTypeOrSelf(what.zeroPoint()).isInteger())
    return false;
  bool isNarrow = narrow.getWidth() <= kMostExactBits;
  return isNarrow || (narrow.getWidth() == 32 && !what.quantizes() && !what.hasZeroPoint); // a bias
}

std::optional<Quantization> match(Operation *op) {
  StringRef name = op->getName().getStringRef();
  unsigned operands = op->getNumOperands();
  if ((name != kQuantize && name != kDequantize) || operands < 3 || operands > 4 || op->getNumResults() != 1)
    return std::nullopt;
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto maps = properties ? properties.getAs<ArrayAttr>("indexing_maps") : ArrayAttr();
  auto low = properties ? properties.getAs<IntegerAttr>("quant_min") : IntegerAttr();
  auto high = properties ? properties.getAs<IntegerAttr>("quant_max") : IntegerAttr();
  if (!maps || maps.size() != operands || !low || !high)
    return std::nullopt;
  Quantization what{op, {}, low.getInt(), high.getInt(), false, operands == 4, properties.contains("zp_unsigned")};
  what.isUnsigned = properties.contains(what.quantizes() ? "storage_unsigned" : "input_unsigned");
  for (Attribute map : maps) {
    if (!isa<AffineMapAttr>(map))
      return std::nullopt;
    what.maps.push_back(cast<AffineMapAttr>(map).getValue());
  }
  return isExact(what) ? std::optional(what) : std::nullopt;
}

/// Converts an integer of any width to i32.
Value widen(ImplicitLocOpBuilder &builder, Value value, bool isUnsigned) {
  Type wide = builder.getI32Type();
  unsigned width = value.getType().getIntOrFloatBitWidth();
  if (width == 32)
    return value;
  if (width > 32) // the value is in the range of a narrow type
    return arith::TruncIOp::create(builder, wide, value);
  return isUnsigned ? arith::ExtUIOp::create(builder, wide, value).getResult()
                    : arith::ExtSIOp::create(builder, wide, value).getResult();
}

Value constant(ImplicitLocOpBuilder &builder, double value) {
  return arith::ConstantOp::create(builder, builder.getF32FloatAttr(static_cast<float>(value)));
}

/// Returns the zero point in a body, in i32, as a constant if it is known.
Value zeroPointIn(ImplicitLocOpBuilder &builder, const Quantization &what, Value element) {
  auto known = dyn_cast_or_null<IntegerAttr>(constantElement(what.zeroPoint()));
  if (!known)
    return widen(builder, element, what.unsignedZeroPoint);
  const APInt &number = known.getValue();
  int64_t value = what.unsignedZeroPoint ? number.getZExtValue() : number.getSExtValue();
  return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value quantized(ImplicitLocOpBuilder &builder, const Quantization &what, ValueRange elements) {
  Value number = math::RoundEvenOp::create(builder, arith::DivFOp::create(builder, elements[0], elements[1]));
  if (what.hasZeroPoint) {
    Value zero = zeroPointIn(builder, what, elements[2]);
    number = arith::AddFOp::create(builder, number, arith::SIToFPOp::create(builder, builder.getF32Type(), zero));
  }
  number = arith::MaxNumFOp::create(builder, number, constant(builder, static_cast<double>(what.low)));
  number = arith::MinNumFOp::create(builder, number, constant(builder, static_cast<double>(what.high)));
  return what.isUnsigned ? arith::FPToUIOp::create(builder, what.quantizedType(), number).getResult()
                         : arith::FPToSIOp::create(builder, what.quantizedType(), number).getResult();
}

Value dequantized(ImplicitLocOpBuilder &builder, const Quantization &what, ValueRange elements) {
  Value number = widen(builder, elements[0], what.isUnsigned);
  if (what.hasZeroPoint)
    number = arith::SubIOp::create(builder, number, zeroPointIn(builder, what, elements[2]));
  number = arith::SIToFPOp::create(builder, builder.getF32Type(), number);
  return arith::MulFOp::create(builder, number, elements[1]);
}

void expand(const Quantization &what) {
  OpBuilder builder(what.op);
  Location loc = what.op->getLoc();
  Value into = what.op->getOperands().back();
  SmallVector<utils::IteratorType> loops(what.maps[0].getNumDims(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, TypeRange(into.getType()), what.op->getOperands().drop_back(), into, what.maps, loops,
      [&](OpBuilder &body, Location at, ValueRange elements) {
        ImplicitLocOpBuilder inside(at, body);
        SmallVector<Value> values(elements);
        if (auto scale = constantElement(what.scale()))
          values[1] = arith::ConstantOp::create(inside, scale);
        Value result = what.quantizes() ? quantized(inside, what, values) : dequantized(inside, what, values);
        linalg::YieldOp::create(inside, result);
      });
  what.op->replaceAllUsesWith(generic);
  what.op->erase();
}

struct ExpandQuantization : impl::ExpandQuantizationBase<ExpandQuantization> {
  using ExpandQuantizationBase::ExpandQuantizationBase;

  void runOnOperation() override {
    SmallVector<Quantization> found;
    getOperation().walk([&](Operation *op) {
      if (std::optional<Quantization> what = match(op))
        found.push_back(*what);
    });
    for (const Quantization &what : found)
      expand(what);
    if (found.empty())
      markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright
