// Quantised matmuls come widened: i8 less a zero point, in i32, multiplied and summed in i64 or i32; or dequantised,
// which is that times a scale, in f32. The sum of (a - za)(b - zb) is sum(ab) - za sum(b) - zb sum(a) + K za zb, whose
// first term is a matmul of bytes, for which processors have instructions; sums of weights are known at load, and the
// rest is arithmetic on its results. All of it is exact: what wraps does so modulo 2^32 as in the graph, and sums in
// i64 and f32 are taken only where i32 holds them. A sum in f32 is then rounded once and multiplied by the scales one
// after another, whose product alone might be too small or too large for f32; the graph rounds each factor and each
// partial sum.
#include "passes/Passes.h"
#include "passes/graph/TensorExpr.h"
#include "passes/graph/Form.h"
#include "passes/support/EraseUnused.h"
#include "passes/normalize/QuantizedOperand.h"
#include "passes/normalize/AccumulatorInit.h"
#include "passes/normalize/WidenAccumulators.h"

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
/// Terms of which no sum of two bytes' products, each at most 255 from zero, leaves i32.
constexpr int64_t kMostK = 33025;

/// sum + first * second of two inputs, integers at most widened.
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

struct Product {
  linalg::LinalgOp op;
  QuantizedOperand left, right;
  int64_t terms;
};

bool isQuantized(Operation *op) { return isa<linalg::QuantizedMatmulOp, linalg::QuantizedBatchMatmulOp>(op); }

/// A factor of an op that has zero points as operands of its own.
std::optional<QuantizedOperand> operandFactor(linalg::LinalgOp op, unsigned input) {
  Value bytes = op.getDpsInputs()[input], zeroPoint = op.getDpsInputs()[2 + input];
  if (!getElementTypeOrSelf(bytes).isInteger(8) || !zeroPoint.getType().isInteger(32))
    return std::nullopt;
  QuantizedOperand factor;
  factor.bytes = bytes;
  factor.map = op.getIndexingMapsArray()[input];
  factor.zeroPoint = QuantizationNumber{zeroPoint, /*isSigned=*/true, {}, constantElement(zeroPoint)};
  return factor;
}

/// Whether the places are dims that are not summed, or single points.
bool variesAlongResult(linalg::LinalgOp op, const std::optional<QuantizationNumber> &number) {
  if (!number || number->known || !number->isTensor())
    return true;
  return llvm::all_of(number->map.getResults(), [&](AffineExpr index) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    return dim ? op.getIteratorTypesArray()[dim.getPosition()] == utils::IteratorType::parallel
               : isa<AffineConstantExpr>(index);
  });
}

/// Whether every summed dim is one of the factor's, which has dims alone.
bool isWholeFactor(linalg::LinalgOp op, const QuantizedOperand &factor) {
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  return factor.map.isProjectedPermutation() &&
         llvm::all_of(reduced, [&](unsigned dim) { return factor.map.isFunctionOfDim(dim); });
}

/// A matmul of quantised bytes, if that is what the op is.
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
  auto factor = [&](unsigned input) {
    return quantized ? operandFactor(op, input)
                     : quantizedFactor(op.getDpsInputs()[input], op.getIndexingMapsArray()[input], loops);
  };
  auto left = factor(0);
  auto right = left ? factor(1) : std::nullopt;
  if (!right)
    return std::nullopt;
  for (const QuantizedOperand *each : {&*left, &*right})
    if (each->scale.has_value() != isFloat || !isWholeFactor(op, *each) || !variesAlongResult(op, each->zeroPoint) ||
        !variesAlongResult(op, each->scale))
      return std::nullopt;
  int64_t terms = 1;
  for (auto [size, kind] : llvm::zip(loops, op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && llvm::MulOverflow(terms, size, terms))
      return std::nullopt;
  bool isBounded = terms <= kMostK && left->hasByteZeroPoint() && right->hasByteZeroPoint();
  if (!sum.isInteger(32) && !isBounded)
    return std::nullopt;
  return Product{op, *left, *right, terms};
}

class Narrower {
public:
  Narrower(OpBuilder &builder, Product &product)
      : builder(builder), product(product), op(product.op), loc(op.getLoc()),
        result(cast<RankedTensorType>(op->getResult(0).getType())) {}

  Value narrow() {
    product.left.moveBytes(builder);
    product.right.moveBytes(builder);
    sums = addOperand(multiplyBytes(), builder.getMultiDimIdentityMap(result.getRank()));
    if (!isZero(product.left))
      addCorrection(product.right, product.left);
    if (!isZero(product.right))
      addCorrection(product.left, product.right);
    addScales();
    bool isDone = corrections.empty() && result.getElementType().isInteger(32);
    return isDone ? inputs[sums] : finish();
  }

private:
  /// What is taken off the sums of products: sums of one factor, times the zero point of the other.
  struct Correction {
    unsigned sums; ///< which input of the last op
    const QuantizationNumber *by;
    int number; ///< which input has it; -1: none
  };
  struct Scale {
    const QuantizationNumber *by;
    int number;
  };

  static bool isZero(const QuantizedOperand &factor) {
    return !factor.zeroPoint || factor.zeroPoint->integer() == std::optional<int64_t>(0);
  }

  unsigned addOperand(Value tensor, AffineMap map) {
    inputs.push_back(tensor);
    maps.push_back(map);
    return inputs.size() - 1;
  }

  /// The tensor of a number that is not known, read from the result's dims.
  int addNumber(const QuantizationNumber &number) {
    if (number.known || !number.isTensor())
      return -1;
    return static_cast<int>(addOperand(number.value, fromResult(number.map)));
  }

  /// A map from dims of the loops that are not summed, from the result's instead.
  AffineMap fromResult(AffineMap map) {
    SmallVector<AffineExpr> places(map.getNumDims(), builder.getAffineConstantExpr(0));
    for (auto [position, index] : llvm::enumerate(op.getIndexingMapsArray().back().getResults()))
      places[cast<AffineDimExpr>(index).getPosition()] = builder.getAffineDimExpr(position);
    return map.replaceDimsAndSymbols(places, {}, result.getRank(), 0);
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
    SmallVector<AffineMap> accesses = {product.left.map, product.right.map, op.getIndexingMapsArray().back()};
    auto generic = linalg::GenericOp::create(
        builder, loc, init.getType(), ValueRange{product.left.bytes, product.right.bytes}, init, accesses,
        op.getIteratorTypesArray(), [&](OpBuilder &body, Location at, ValueRange elements) {
          Value left = extend(body, at, elements[0], product.left.isSigned);
          Value right = extend(body, at, elements[1], product.right.isSigned);
          Value term = arith::MulIOp::create(body, at, left, right);
          linalg::YieldOp::create(body, at, arith::AddIOp::create(body, at, elements[2], term).getResult());
        });
    return generic.getResult(0);
  }

  /// The sums of a factor over the reduced dims.
  void addCorrection(const QuantizedOperand &summed, const QuantizedOperand &by) {
    SmallVector<utils::IteratorType> all = op.getIteratorTypesArray(), kinds;
    SmallVector<AffineExpr> from, into, kept;
    SmallVector<int64_t> shape;
    unsigned dims = 0;
    // The dims that the factor has, in the order in which it has them.
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
    AffineMap place = fromResult(AffineMap::get(all.size(), 0, kept, builder.getContext()));
    unsigned input = addOperand(generic.getResult(0), place);
    corrections.push_back({input, &*by.zeroPoint, addNumber(*by.zeroPoint)});
  }

  void addScales() {
    for (const QuantizedOperand *factor : {&product.left, &product.right})
      if (factor->scale)
        scales.push_back({&*factor->scale, addNumber(*factor->scale)});
  }

  /// sum(ab) - za sum(b) - zb sum(a) + K za zb, of the elements of the last op's inputs.
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
    Value count = arith::ConstantOp::create(body, at, body.getI32IntegerAttr(static_cast<int32_t>(product.terms)));
    Value both = arith::MulIOp::create(body, at, numbers[0], numbers[1]);
    return arith::AddIOp::create(body, at, sum, arith::MulIOp::create(body, at, both, count));
  }

  /// The product of both scales, where they are known and nothing of it is lost.
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
      generic->setAttr(kFormAttr, builder.getStringAttr("scales after a sum of integers"));
    return generic.getResult(0);
  }

  OpBuilder &builder;
  Product &product;
  linalg::LinalgOp op;
  Location loc;
  RankedTensorType result;
  SmallVector<Value> inputs; ///< of the last op
  SmallVector<AffineMap> maps;
  unsigned sums = 0; ///< which of them are the sums of products
  SmallVector<Correction> corrections;
  SmallVector<Scale> scales;
};

struct LowerQuantizedMatmul : impl::LowerQuantizedMatmulBase<LowerQuantizedMatmul> {
  using LowerQuantizedMatmulBase::LowerQuantizedMatmulBase;

  void runOnOperation() override {
    widenAccumulators(getOperation(), numerics == "strict");
    std::vector<Product> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (std::optional<Product> product = matchProduct(op, numerics == "strict"))
        products.push_back(*product);
    });
    for (Product &product : products) {
      OpBuilder builder(product.op);
      Value narrowed = Narrower(builder, product).narrow();
      product.op->getResult(0).replaceAllUsesWith(narrowed);
      ++numNarrowed;
    }
    if (!products.empty())
      for (Block &block : getOperation().getBody())
        eraseUnused(block);
  }
};
} // namespace
} // namespace tilewright
