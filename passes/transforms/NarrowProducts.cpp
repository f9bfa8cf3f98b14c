// Quantised matmuls come widened: i8 less a zero point, in i32, multiplied and summed in i64 or i32. The sum of
// (a - za)(b - zb) is sum(ab) - za sum(b) - zb sum(a) + K za zb, whose first term is a matmul of bytes, for which
// processors have instructions; sums of weights are known at load, and the rest is arithmetic on its results. All of it
// is exact: what wraps does so modulo 2^32 as in the graph, and sums in i64 are taken only where i32 holds them.
#include "passes/Passes.h"
#include "passes/analysis/TensorExpr.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_NARROWPRODUCTS
#include "passes/Passes.h.inc"

namespace {
/// Terms of which no sum of two bytes' products, each at most 255 from zero, leaves i32.
constexpr int64_t kMostTerms = 33025;

/// A factor before it was widened and moved.
struct NarrowFactor {
  Value bytes;   ///< a tensor of i8
  AffineMap map; ///< where an element of the factor is in it
  bool isSigned;
  Value zeroPoint;               ///< a tensor of one i8, widened as the bytes are; null: none
  std::optional<int64_t> number; ///< the zero point, where it is known
};

std::optional<int64_t> integerOf(Value value) {
  TypedAttr constant = constantElement(value);
  auto integer = dyn_cast_or_null<IntegerAttr>(constant);
  return integer ? std::optional(integer.getValue().getSExtValue()) : std::nullopt;
}

/// A generic that computes each element from the elements at the same place, and from single ones.
linalg::GenericOp elementwise(Value tensor) {
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  if (!op || op->getNumResults() != 1 || op.getNumReductionLoops() > 0)
    return {};
  bool inPlace = llvm::all_of(op.getIndexingMapsArray(),
                              [](AffineMap map) { return map.isIdentity() || map.getNumResults() == 0; });
  return inPlace ? op : linalg::GenericOp();
}

/// The input of the generic that a body value is, or nothing.
Value inputBehind(linalg::GenericOp op, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && argument.getArgNumber() < op.getNumDpsInputs() ? op.getInputs()[argument.getArgNumber()] : Value();
}

/// The bytes that a body value widens, and how.
Value widenedFrom(linalg::GenericOp op, Value value, bool &isSigned) {
  Operation *widening = value.getDefiningOp();
  if (!isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(widening))
    return {};
  isSigned = isa<arith::ExtSIOp>(widening);
  Value bytes = inputBehind(op, widening->getOperand(0));
  return bytes && getElementTypeOrSelf(bytes).isInteger(8) ? bytes : Value();
}

Value yieldedBy(linalg::GenericOp op) { return op.getBody()->getTerminator()->getOperand(0); }

/// A tensor of i32 as widened bytes.
std::optional<NarrowFactor> widened(Value tensor) {
  linalg::GenericOp op = elementwise(tensor);
  NarrowFactor factor{};
  if (!op)
    return std::nullopt;
  factor.bytes = widenedFrom(op, yieldedBy(op), factor.isSigned);
  factor.map = op.getIndexingMapsArray().back();
  bool inPlace = factor.bytes && cast<ShapedType>(factor.bytes.getType()).getRank() == factor.map.getNumResults();
  return inPlace ? std::optional(factor) : std::nullopt;
}

/// Where a broadcast or a transpose has its elements from; null if the op is neither.
AffineMap movedFrom(linalg::LinalgOp op) {
  if (!op || op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() > 0)
    return {};
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Block &body = *op.getBlock();
  bool copies = body.getTerminator()->getOperand(0) == body.getArgument(0);
  return copies && maps[1].isIdentity() && maps[0].isProjectedPermutation() ? maps[0] : AffineMap();
}

/// A tensor of i32 as widened bytes less their zero point.
std::optional<NarrowFactor> narrowFactor(Value tensor) {
  auto copy = tensor.getDefiningOp<linalg::LinalgOp>();
  if (AffineMap from = movedFrom(copy)) {
    std::optional<NarrowFactor> factor = narrowFactor(copy.getDpsInputs()[0]);
    if (factor)
      factor->map = factor->map.compose(from);
    return factor;
  }
  if (std::optional<NarrowFactor> plain = widened(tensor))
    return plain;
  linalg::GenericOp op = elementwise(tensor);
  auto difference = op ? yieldedBy(op).getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  if (!difference)
    return std::nullopt;
  Value wide = inputBehind(op, difference.getLhs());
  std::optional<NarrowFactor> factor = wide ? widened(wide) : std::nullopt;
  bool isSigned = false;
  Value zeroPoint = widenedFrom(op, difference.getRhs(), isSigned);
  if (!factor || !zeroPoint || isSigned != factor->isSigned || cast<ShapedType>(zeroPoint.getType()).getRank() != 0)
    return std::nullopt;
  factor->zeroPoint = zeroPoint;
  factor->number = integerOf(zeroPoint);
  if (factor->number && !isSigned)
    factor->number = *factor->number & 0xff;
  return factor;
}

/// sum + first * second of two inputs, at most widened.
bool multipliesInputs(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() < 2 || op.getNumDpsInits() != 1)
    return false;
  Block &body = *op.getBlock();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddIOp>();
  if (!sum)
    return false;
  auto product = sum.getLhs().getDefiningOp<arith::MulIOp>();
  if (!product)
    product = sum.getRhs().getDefiningOp<arith::MulIOp>();
  if (!product || (sum.getLhs() != body.getArguments().back() && sum.getRhs() != body.getArguments().back()))
    return false;
  auto isInput = [&](Value value, unsigned number) {
    if (auto extended = value.getDefiningOp<arith::ExtSIOp>())
      value = extended.getIn();
    return value == body.getArgument(number);
  };
  return (isInput(product.getLhs(), 0) && isInput(product.getRhs(), 1)) ||
         (isInput(product.getLhs(), 1) && isInput(product.getRhs(), 0));
}

struct Product {
  linalg::LinalgOp op;
  NarrowFactor left, right;
  int64_t terms;
};

bool isQuantized(Operation *op) { return isa<linalg::QuantizedMatmulOp, linalg::QuantizedBatchMatmulOp>(op); }

std::optional<NarrowFactor> quantizedFactor(linalg::LinalgOp op, unsigned input) {
  Value bytes = op.getDpsInputs()[input];
  std::optional<int64_t> zeroPoint = integerOf(op.getDpsInputs()[2 + input]);
  if (!getElementTypeOrSelf(bytes).isInteger(8) || !zeroPoint)
    return std::nullopt;
  AffineMap inPlace = AffineMap::getMultiDimIdentityMap(cast<ShapedType>(bytes.getType()).getRank(), op.getContext());
  return NarrowFactor{bytes, inPlace, /*isSigned=*/true, {}, zeroPoint};
}

/// A matmul of quantised bytes, if that is what the op is.
std::optional<Product> matchProduct(linalg::LinalgOp op) {
  if (op.hasDynamicShape() || op.getNumReductionLoops() == 0 || op->getNumResults() != 1)
    return std::nullopt;
  std::optional<int64_t> init = integerOf(op.getDpsInits()[0]);
  Type sum = getElementTypeOrSelf(op->getResult(0));
  if (!init || *init != 0 || (!sum.isInteger(32) && !sum.isInteger(64)))
    return std::nullopt;
  bool quantized = isQuantized(op);
  if (!quantized && !(op.getNumDpsInputs() == 2 && multipliesInputs(op)))
    return std::nullopt;
  auto left = quantized ? quantizedFactor(op, 0) : narrowFactor(op.getDpsInputs()[0]);
  auto right = quantized ? quantizedFactor(op, 1) : narrowFactor(op.getDpsInputs()[1]);
  if (!left || !right)
    return std::nullopt;
  left->map = left->map.compose(op.getIndexingMapsArray()[0]);
  right->map = right->map.compose(op.getIndexingMapsArray()[1]);
  // What is summed for a zero point has to have every reduced dim.
  SmallVector<unsigned> reduced;
  op.getReductionDims(reduced);
  if (llvm::any_of(reduced,
                   [&](unsigned dim) { return !left->map.isFunctionOfDim(dim) || !right->map.isFunctionOfDim(dim); }))
    return std::nullopt;
  int64_t terms = 1;
  for (auto [size, kind] : llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction && llvm::MulOverflow(terms, size, terms))
      return std::nullopt;
  if (sum.isInteger(64) && terms > kMostTerms)
    return std::nullopt;
  return Product{op, *left, *right, terms};
}

class Narrower {
public:
  Narrower(OpBuilder &builder, const Product &product)
      : builder(builder), product(product), op(product.op), loc(op.getLoc()),
        result(cast<RankedTensorType>(op->getResult(0).getType())) {}

  Value narrow() {
    Value sums = multiplyBytes();
    terms.push_back({sums, builder.getMultiDimIdentityMap(result.getRank())});
    if (!isZero(product.left))
      addCorrection(product.right, product.left);
    if (!isZero(product.right))
      addCorrection(product.left, product.right);
    return finish();
  }

private:
  static bool isZero(const NarrowFactor &factor) { return factor.number ? *factor.number == 0 : !factor.zeroPoint; }

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
    SmallVector<AffineMap> maps = {product.left.map, product.right.map, op.getIndexingMapsArray().back()};
    auto generic = linalg::GenericOp::create(
        builder, loc, init.getType(), ValueRange{product.left.bytes, product.right.bytes}, init, maps,
        op.getIteratorTypesArray(), [&](OpBuilder &body, Location at, ValueRange elements) {
          Value left = extend(body, at, elements[0], product.left.isSigned);
          Value right = extend(body, at, elements[1], product.right.isSigned);
          Value term = arith::MulIOp::create(body, at, left, right);
          linalg::YieldOp::create(body, at, arith::AddIOp::create(body, at, elements[2], term).getResult());
        });
    return generic.getResult(0);
  }

  /// The sums of a factor over the reduced dims, and the map of their dims from the result's.
  void addCorrection(const NarrowFactor &summed, const NarrowFactor &by) {
    AffineMap written = op.getIndexingMapsArray().back();
    SmallVector<utils::IteratorType> all = op.getIteratorTypesArray(), kinds;
    SmallVector<AffineExpr> place(all.size()), from, into, kept;
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
      for (auto [position, expr] : llvm::enumerate(written.getResults()))
        if (expr == index)
          kept.push_back(builder.getAffineDimExpr(position));
    }
    Value init = filled(shape);
    SmallVector<AffineMap> maps = {AffineMap::get(dims, 0, from, builder.getContext()),
                                   AffineMap::get(dims, 0, into, builder.getContext())};
    auto sums = linalg::GenericOp::create(
        builder, loc, init.getType(), summed.bytes, init, maps, kinds,
        [&](OpBuilder &body, Location at, ValueRange elements) {
          Value term = extend(body, at, elements[0], summed.isSigned);
          linalg::YieldOp::create(body, at, arith::AddIOp::create(body, at, elements[1], term).getResult());
        });
    terms.push_back({sums.getResult(0), AffineMap::get(result.getRank(), 0, kept, builder.getContext())});
    points.push_back(&by);
  }

  /// The zero point in the body of the last op: a number, or one of its inputs.
  Value zeroPoint(OpBuilder &body, Location at, const NarrowFactor &factor, Value element) {
    if (factor.number)
      return arith::ConstantOp::create(body, at, body.getI32IntegerAttr(*factor.number));
    return extend(body, at, element, factor.isSigned);
  }

  /// sum(ab) - za sum(b) - zb sum(a) + K za zb
  Value finish() {
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (auto &[tensor, map] : terms) {
      inputs.push_back(tensor);
      maps.push_back(map);
    }
    for (const NarrowFactor *factor : points)
      if (!factor->number) {
        inputs.push_back(factor->zeroPoint);
        maps.push_back(AffineMap::get(result.getRank(), 0, builder.getContext()));
      }
    bool isWide = result.getElementType().isInteger(64);
    if (points.empty() && !isWide)
      return terms[0].first;
    maps.push_back(builder.getMultiDimIdentityMap(result.getRank()));
    Value init = tensor::EmptyOp::create(builder, loc, result.getShape(), result.getElementType());
    SmallVector<utils::IteratorType> loops(result.getRank(), utils::IteratorType::parallel);
    auto generic = linalg::GenericOp::create(
        builder, loc, result, inputs, init, maps, loops, [&](OpBuilder &body, Location at, ValueRange elements) {
          Value sum = elements[0];
          unsigned next = terms.size();
          SmallVector<Value> numbers;
          for (const NarrowFactor *factor : points)
            numbers.push_back(zeroPoint(body, at, *factor, factor->number ? Value() : elements[next++]));
          for (auto [i, number] : llvm::enumerate(numbers)) {
            Value term = arith::MulIOp::create(body, at, elements[1 + i], number);
            sum = arith::SubIOp::create(body, at, sum, term);
          }
          if (numbers.size() == 2) {
            Value count =
                arith::ConstantOp::create(body, at, body.getI32IntegerAttr(static_cast<int32_t>(product.terms)));
            Value both = arith::MulIOp::create(body, at, numbers[0], numbers[1]);
            sum = arith::AddIOp::create(body, at, sum, arith::MulIOp::create(body, at, both, count));
          }
          if (isWide)
            sum = arith::ExtSIOp::create(body, at, builder.getI64Type(), sum);
          linalg::YieldOp::create(body, at, sum);
        });
    return generic.getResult(0);
  }

  OpBuilder &builder;
  const Product &product;
  linalg::LinalgOp op;
  Location loc;
  RankedTensorType result;
  SmallVector<std::pair<Value, AffineMap>> terms; ///< the products' sums, then those of the factors
  SmallVector<const NarrowFactor *> points;       ///< what each of the latter is multiplied with
};

/// Erases what nobody reads any more; users stand after what they use.
void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct NarrowProducts : impl::NarrowProductsBase<NarrowProducts> {
  using NarrowProductsBase::NarrowProductsBase;

  static bool isProjected(const NarrowFactor &factor) { return factor.map.isProjectedPermutation(); }

  void runOnOperation() override {
    SmallVector<Product> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      std::optional<Product> product = matchProduct(op);
      if (product && isProjected(product->left) && isProjected(product->right))
        products.push_back(*product);
    });
    for (const Product &product : products) {
      linalg::LinalgOp op = product.op;
      OpBuilder builder(op);
      Value narrowed = Narrower(builder, product).narrow();
      op->getResult(0).replaceAllUsesWith(narrowed);
      op->erase();
      ++numNarrowed;
    }
    if (!products.empty())
      for (Block &block : getOperation().getBody())
        eraseUnused(block);
  }
};
} // namespace
} // namespace tilewright
