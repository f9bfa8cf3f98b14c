// Front ends widen the operands of quantized matmuls: to i32 minus a zero point, multiplied and summed in i32 or i64,
// or dequantized, which is the same times a scale, in f32. The sum of (a - za)(b - zb) is
//   sum(ab) - za sum(b) - zb sum(a) + K za zb.
// Its first term is a matmul of bytes, for which CPUs have instructions; sums of weights are known when the program is
// loaded, and the rest is arithmetic on the result. All of it is exact: i32 wraps modulo 2^32 as in the graph, and sums
// in i64 and f32 are rewritten only if i32 holds every possible value. A sum in f32 is then rounded once, where the
// graph rounds each operand and each partial sum. It is multiplied by one scale after the other, because the product of
// the scales alone may be too small or too large for f32.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/Form.h"
#include "passes/graph/StartValue.h"
#include "passes/normalize/AccumulatorInit.h"
#include "passes/normalize/QuantizedOperand.h"
#include "passes/normalize/WidenAccumulators.h"
#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <vector>

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_LOWERQUANTIZEDMATMUL
#include "passes/Passes.h.inc"

namespace {
/// Greatest K for which no sum of products of two bytes, each of absolute value 255 or less, overflows i32.
constexpr int64_t kMostK = 33025;

/// Returns true if the body adds the product of its two inputs, possibly widened integers, to the accumulator.
bool multipliesInputs(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1)
    return false;
  Block &body = *op.getBlock();
  Operation *sum = body.getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::AddFOp>(sum))
    return false;
  Value accumulator = body.getArguments().back();
  bool isFirst = sum->getOperand(0) == accumulator;
  Operation *product = sum->getOperand(isFirst ? 1 : 0).getDefiningOp();
  if (!isa_and_nonnull<arith::MulIOp, arith::MulFOp>(product) || sum->getOperand(isFirst ? 0 : 1) != accumulator)
    return false;
  auto isInput = [&](Value value, unsigned number) {
    if (auto extended = value.getDefiningOp<arith::ExtSIOp>())
      value = extended.getIn();
    return value == body.getArgument(number);
  };
  Value first = product->getOperand(0), second = product->getOperand(1);
  return (isInput(first, 0) && isInput(second, 1)) || (isInput(first, 1) && isInput(second, 0));
}

/// A matmul of quantized bytes.
struct Product {
  linalg::LinalgOp op;
  QuantizedOperand lhs, rhs;
  int64_t k; ///< extent of K, over all reduced dims
};

bool isQuantized(Operation *op) { return isa<linalg::QuantizedMatmulOp, linalg::QuantizedBatchMatmulOp>(op); }

/// Returns an operand of an op that also has the zero points as operands.
std::optional<QuantizedOperand> operandWithZeroPoint(linalg::LinalgOp op, unsigned input) {
  Value bytes = op.getDpsInputs()[input], zeroPoint = op.getDpsInputs()[2 + input];
  if (!getElementTypeOrSelf(bytes).isInteger(8) || !zeroPoint.getType().isInteger(32))
    return std::nullopt;
  QuantizedOperand operand;
  operand.bytes = bytes;
  operand.map = op.getIndexingMapsArray()[input];
  operand.zeroPoint = QuantizationNumber{zeroPoint, /*isSigned=*/true, {}, constantElement(zeroPoint)};
  return operand;
}

/// Returns true if the number varies along parallel dims only, so that it can be applied to the result.
bool variesAlongResult(linalg::LinalgOp op, const std::optional<QuantizationNumber> &number) {
  if (!number || number->known || !number->isTensor())
    return true;
  return llvm::all_of(number->map.getResults(), [&](AffineExpr index) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    return dim ? op.getIteratorTypesArray()[dim.getPosition()] == utils::IteratorType::parallel
               : isa<AffineConstantExpr>(index);
  });
}

/// Returns true if the operand is indexed by dims only, and by every reduced dim.
bool isWholeOperand(linalg::LinalgOp op, const QuantizedOperand &operand) {
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  return operand.map.isProjectedPermutation() &&
         llvm::all_of(reduced, [&](unsigned dim) { return operand.map.isFunctionOfDim(dim); });
}

/// Matches a matmul of quantized bytes.
std::optional<Product> matchProduct(linalg::LinalgOp op, bool isStrict) {
  if (op.hasDynamicShape() || op.getNumReductionLoops() == 0 || op->getNumResults() != 1 ||
      !op.hasPureTensorSemantics() || !startsFromZero(op))
    return std::nullopt;
  Type sum = getElementTypeOrSelf(op->getResult(0));
  bool isFloat = sum.isF32();
  if (!sum.isInteger(32) && !sum.isInteger(64) && (!isFloat || isStrict))
    return std::nullopt;
  bool quantized = isQuantized(op);
  if (!quantized && !multipliesInputs(op))
    return std::nullopt;
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  auto operand = [&](unsigned input) {
    return quantized ? operandWithZeroPoint(op, input)
                     : quantizedOperand(op.getDpsInputs()[input], op.getIndexingMapsArray()[input], loops);
  };
  auto lhs = operand(0);
  auto rhs = lhs ? operand(1) : std::nullopt;
  if (!rhs)
    return std::nullopt;
  for (const QuantizedOperand *each : {&*lhs, &*rhs})
    if (each->scale.has_value() != isFloat || !isWholeOperand(op, *each) || !variesAlongResult(op, each->zeroPoint) ||
        !variesAlongResult(op, each->scale))
      return std::nullopt;
  int64_t k = 1;
  for (auto [size, kind] : llvm::zip(loops, op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && llvm::MulOverflow(k, size, k))
      return std::nullopt;
  bool isBounded = k <= kMostK && lhs->hasByteZeroPoint() && rhs->hasByteZeroPoint();
  if (!sum.isInteger(32) && !isBounded)
    return std::nullopt;
  return Product{op, *lhs, *rhs, k};
}

/// Rewrites a quantized matmul as one of bytes and an elementwise op that applies zero points and scales.
class ProductRewriter {
public:
  ProductRewriter(OpBuilder &builder, Product &product)
      : builder(builder), product(product), op(product.op), loc(op.getLoc()),
        result(cast<RankedTensorType>(op->getResult(0).getType())) {}

  Value rewrite() {
    product.lhs.moveBytes(builder);
    product.rhs.moveBytes(builder);
    sums = addOperand(multiplyBytes(), builder.getMultiDimIdentityMap(result.getRank()));
    if (!isZero(product.lhs))
      addCorrection(product.rhs, product.lhs);
    if (!isZero(product.rhs))
      addCorrection(product.lhs, product.rhs);
    addScales();
    bool isDone = corrections.empty() && result.getElementType().isInteger(32);
    return isDone ? inputs[sums] : finish();
  }

private:
  /// A term that is subtracted from the sums of products: the sums of one operand times the zero point of the other.
  struct Correction {
    unsigned sums;                ///< index of the sums among the inputs of the last op
    const QuantizationNumber *by; ///< the zero point
    int number;                   ///< index of the zero point among the inputs of the last op; -1: it is not an input
  };
  struct Scale {
    const QuantizationNumber *by;
    int number; ///< index of the scale among the inputs of the last op; -1: it is not an input
  };

  static bool isZero(const QuantizedOperand &operand) {
    return !operand.zeroPoint || operand.zeroPoint->integer() == std::optional<int64_t>(0);
  }

  unsigned addOperand(Value tensor, AffineMap map) {
    inputs.push_back(tensor);
    maps.push_back(map);
    return inputs.size() - 1;
  }

  /// Makes the tensor of an unknown number an input of the last op. Returns its index, or -1 if there is no tensor.
  int addNumber(const QuantizationNumber &number) {
    if (number.known || !number.isTensor())
      return -1;
    return static_cast<int>(addOperand(number.value, fromResult(number.map)));
  }

  /// Converts a map over the parallel loops into one over the result's dims.
  AffineMap fromResult(AffineMap map) {
    SmallVector<AffineExpr> exprs(map.getNumDims(), builder.getAffineConstantExpr(0));
    for (auto [position, index] : llvm::enumerate(op.getIndexingMapsArray().back().getResults()))
      exprs[cast<AffineDimExpr>(index).getPosition()] = builder.getAffineDimExpr(position);
    return map.replaceDimsAndSymbols(exprs, {}, result.getRank(), 0);
  }

  Value filled(ArrayRef<int64_t> shape) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
    Value empty = tensor::EmptyOp::create(builder, loc, shape, builder.getI32Type());
    return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  }

  static Value extend(OpBuilder &body, Location loc, Value byte, bool isSigned) {
    Type wide = body.getI32Type();
    return isSigned ? arith::ExtSIOp::create(body, loc, wide, byte).getResult()
                    : arith::ExtUIOp::create(body, loc, wide, byte).getResult();
  }

  Value multiplyBytes() {
    Value init = filled(result.getShape());
    SmallVector<AffineMap> accesses = {product.lhs.map, product.rhs.map, op.getIndexingMapsArray().back()};
    auto generic = linalg::GenericOp::create(
        builder, loc, init.getType(), ValueRange{product.lhs.bytes, product.rhs.bytes}, init, accesses,
        op.getIteratorTypesArray(), [&](OpBuilder &body, Location at, ValueRange elements) {
          Value lhs = extend(body, at, elements[0], product.lhs.isSigned);
          Value rhs = extend(body, at, elements[1], product.rhs.isSigned);
          Value term = arith::MulIOp::create(body, at, lhs, rhs);
          linalg::YieldOp::create(body, at, arith::AddIOp::create(body, at, elements[2], term).getResult());
        });
    return generic.getResult(0);
  }

  /// Adds the correction for the zero point of `by`: the sums of the operand `summed` over the reduced dims.
  void addCorrection(const QuantizedOperand &summed, const QuantizedOperand &by) {
    SmallVector<utils::IteratorType> all = op.getIteratorTypesArray(), kinds;
    SmallVector<AffineExpr> from, into, kept;
    SmallVector<int64_t> shape;
    unsigned dims = 0;
    // The loops are the operand's dims, in its order.
    for (AffineExpr index : summed.map.getResults()) {
      unsigned dim = cast<AffineDimExpr>(index).getPosition();
      AffineExpr own = builder.getAffineDimExpr(dims++);
      from.push_back(own);
      kinds.push_back(all[dim]);
      if (all[dim] == utils::IteratorType::reduction)
        continue;
      into.push_back(own);
      shape.push_back(op.getStaticLoopRanges()[dim]);
      kept.push_back(index);
    }
    Value init = filled(shape);
    SmallVector<AffineMap> accesses = {AffineMap::get(dims, 0, from, builder.getContext()),
                                       AffineMap::get(dims, 0, into, builder.getContext())};
    auto generic = linalg::GenericOp::create(
        builder, loc, init.getType(), summed.bytes, init, accesses, kinds,
        [&](OpBuilder &body, Location at, ValueRange elements) {
          Value term = extend(body, at, elements[0], summed.isSigned);
          linalg::YieldOp::create(body, at, arith::AddIOp::create(body, at, elements[1], term).getResult());
        });
    AffineMap map = fromResult(AffineMap::get(all.size(), 0, kept, builder.getContext()));
    unsigned input = addOperand(generic.getResult(0), map);
    corrections.push_back({input, &*by.zeroPoint, addNumber(*by.zeroPoint)});
  }

  void addScales() {
    for (const QuantizedOperand *operand : {&product.lhs, &product.rhs})
      if (operand->scale)
        scales.push_back({&*operand->scale, addNumber(*operand->scale)});
  }

  /// Computes sum(ab) - za sum(b) - zb sum(a) + K za zb from the elements of the last op's inputs.
  Value correct(OpBuilder &body, Location at, ValueRange elements) {
    auto element = [&](int input) { return input < 0 ? Value() : elements[input]; };
    Value sum = elements[sums];
    SmallVector<Value> numbers;
    for (const Correction &each : corrections) {
      numbers.push_back(each.by->inBody(body, at, element(each.number)));
      Value term = arith::MulIOp::create(body, at, elements[each.sums], numbers.back());
      sum = arith::SubIOp::create(body, at, sum, term);
    }
    if (numbers.size() < 2)
      return sum;
    Value count = arith::ConstantOp::create(body, at, body.getI32IntegerAttr(static_cast<int32_t>(product.k)));
    Value both = arith::MulIOp::create(body, at, numbers[0], numbers[1]);
    return arith::AddIOp::create(body, at, sum, arith::MulIOp::create(body, at, both, count));
  }

  /// Returns the product of both scales, if they are known and f32 represents it as a normal number.
  std::optional<float> knownScale() const {
    double scale = 1;
    for (const Scale &each : scales) {
      auto known = dyn_cast_or_null<FloatAttr>(each.by->known);
      if (!known)
        return std::nullopt;
      scale *= known.getValueAsDouble();
    }
    auto rounded = static_cast<float>(scale);
    return std::isnormal(rounded) ? std::optional(rounded) : std::nullopt;
  }

  Value multiply(OpBuilder &body, Location at, Value sum, ValueRange elements) {
    Value number = arith::SIToFPOp::create(body, at, body.getF32Type(), sum);
    if (std::optional<float> scale = knownScale()) {
      Value by = arith::ConstantOp::create(body, at, body.getF32FloatAttr(*scale));
      return arith::MulFOp::create(body, at, number, by);
    }
    for (const Scale &each : scales) {
      Value by = each.by->inBody(body, at, each.number < 0 ? Value() : elements[each.number]);
      number = arith::MulFOp::create(body, at, number, by);
    }
    return number;
  }

  Value finish() {
    maps.push_back(builder.getMultiDimIdentityMap(result.getRank()));
    Value init = tensor::EmptyOp::create(builder, loc, result.getShape(), result.getElementType());
    SmallVector<utils::IteratorType> loops(result.getRank(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(builder, loc, result, inputs, init, maps, loops,
                                             [&](OpBuilder &body, Location at, ValueRange elements) {
                                               Value sum = correct(body, at, elements);
                                               if (result.getElementType().isInteger(64))
                                                 sum = arith::ExtSIOp::create(body, at, body.getI64Type(), sum);
                                               else if (!scales.empty())
                                                 sum = multiply(body, at, sum, elements);
                                               linalg::YieldOp::create(body, at, sum);
                                             });
    if (!scales.empty())
      setForm(generic, tile::Form::integerSum);
    return generic.getResult(0);
  }

  OpBuilder &builder;
  Product &product;
  linalg::LinalgOp op;
  Location loc;
  RankedTensorType result;
  SmallVector<Value> inputs; ///< inputs of the last op, the one that applies corrections and scales
  SmallVector<AffineMap> maps;
  unsigned sums = 0; ///< index of the sums of products among `inputs`
  SmallVector<Correction> corrections;
  SmallVector<Scale> scales;
};

struct LowerQuantizedMatmul : impl::LowerQuantizedMatmulBase<LowerQuantizedMatmul> {
  using LowerQuantizedMatmulBase::LowerQuantizedMatmulBase;

  void runOnOperation() override {
    bool isWider = widenAccumulators(getOperation(), numerics == "strict");
    std::vector<Product> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (std::optional<Product> product = matchProduct(op, numerics == "strict"))
        products.push_back(*product);
    });
    for (Product &product : products) {
      OpBuilder builder(product.op);
      Value rewritten = ProductRewriter(builder, product).rewrite();
      product.op->getResult(0).replaceAllUsesWith(rewritten);
      ++numLowered;
    }
    if (!products.empty())
      for (Block &block : getOperation().getBody())
        eraseUnused(block);
    if (products.empty() && !isWider)
      markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright
