// Expands IREE's arg_compare (argmax, argmin) into two reductions and a select, all of which fuse: the extremum of a
// row, then the least index that attains it. A single reduction that carries both would have to visit the elements in
// order, one at a time. The op belongs to IREE and is unregistered here, so it is recognised by its name, operands and
// comparison.
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_EXPANDARGCOMPARE
#include "passes/Passes.h.inc"

namespace {
constexpr llvm::StringLiteral kArgCompare = "iree_linalg_ext.arg_compare";

/// The meaning of an arg_compare: along `dimension` of `input`, find the element that wins over all others, starting
/// from `initValue` at `initIndex`.
struct ArgCompare {
  Value input;
  int64_t dimension;
  TypedAttr initValue, initIndex;
  Operation *comparison; ///< op on the block arguments that is true if the first wins over the second
};

TypedAttr filledWith(Value tensor) {
  auto fill = tensor.getDefiningOp<linalg::FillOp>();
  TypedAttr value;
  return fill && matchPattern(fill.getInputs()[0], m_Constant(&value)) ? value : TypedAttr();
}

/// Returns the region's comparison if it is strict, so that the first of equal elements wins, or null.
Operation *strictComparison(Region &region) {
  if (!region.hasOneBlock() || !llvm::hasNItems(region.front(), 2) || region.getNumArguments() != 2)
    return nullptr;
  Operation *compare = &region.front().front(), *yield = compare->getNextNode();
  if (compare->getOperands() != ValueRange(region.getArguments()) || yield->getOperands() != compare->getResults())
    return nullptr;
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  if (auto floats = dyn_cast<arith::CmpFOp>(compare))
    return llvm::is_contained({F::OGT, F::OLT}, floats.getPredicate()) ? compare : nullptr;
  auto integers = dyn_cast<arith::CmpIOp>(compare);
  return integers && llvm::is_contained({I::sgt, I::slt, I::ugt, I::ult}, integers.getPredicate()) ? compare : nullptr;
}

std::optional<ArgCompare> match(Operation *op) {
  if (op->getName().getStringRef() != kArgCompare || op->getNumOperands() != 3 || op->getNumResults() != 2 ||
      op->getNumRegions() != 1)
    return std::nullopt;
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto dimension = properties ? properties.getAs<IntegerAttr>("dimension") : IntegerAttr();
  auto segments = properties ? properties.getAs<DenseI32ArrayAttr>("operandSegmentSizes") : DenseI32ArrayAttr();
  auto input = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto index = dyn_cast<RankedTensorType>(op->getResult(1).getType());
  if (!dimension || !segments || segments.asArrayRef() != ArrayRef<int32_t>{1, 0, 1, 1, 0} || !input || !index ||
      !input.hasStaticShape() || !index.getElementType().isSignlessInteger() || dimension.getInt() < 0 ||
      dimension.getInt() >= input.getRank() || index.getRank() != input.getRank() - 1)
    return std::nullopt;
  unsigned width = index.getElementType().getIntOrFloatBitWidth();
  if (width < 64 && input.getDimSize(dimension.getInt()) >= (int64_t(1) << (width - 1)))
    return std::nullopt;
  ArgCompare matched{op->getOperand(0), dimension.getInt(), filledWith(op->getOperand(1)),
                     filledWith(op->getOperand(2)), strictComparison(op->getRegion(0))};
  if (!matched.initValue || !matched.initIndex || !matched.comparison)
    return std::nullopt;
  if (auto value = dyn_cast<FloatAttr>(matched.initValue); value && value.getValue().isNaN())
    return std::nullopt; // no element wins over NaN
  return matched;
}

class Expander {
public:
  Expander(Operation *op, const ArgCompare &what)
      : op(op), what(what), loc(op->getLoc()), builder(op), inputType(cast<RankedTensorType>(what.input.getType())),
        indexType(cast<RankedTensorType>(op->getResult(1).getType())) {
    AffineMap all = builder.getMultiDimIdentityMap(inputType.getRank());
    identity = all;
    row = all.dropResult(what.dimension);
    iterators.assign(inputType.getRank(), utils::IteratorType::parallel);
    iterators[what.dimension] = utils::IteratorType::reduction;
  }

  void expand() {
    Value best = reduceValue();
    Value first = reduceIndex(best);
    op->getResult(0).replaceAllUsesWith(best);
    op->getResult(1).replaceAllUsesWith(orInit(first));
    op->erase();
  }

private:
  Value constant(OpBuilder &at, TypedAttr value) { return arith::ConstantOp::create(at, loc, value); }

  Value filled(Type type, TypedAttr value) {
    auto tensor = cast<RankedTensorType>(type);
    Value empty = tensor::EmptyOp::create(builder, loc, tensor.getShape(), tensor.getElementType());
    return linalg::FillOp::create(builder, loc, constant(builder, value), empty).getResult(0);
  }

  Value wins(OpBuilder &at, Value a, Value b) {
    IRMapping operands;
    operands.map(what.comparison->getOperands(), ValueRange{a, b});
    return at.clone(*what.comparison, operands)->getResult(0);
  }

  /// Returns the extremum of both; NaN never wins.
  Value extremum(OpBuilder &at, Value a, Value b) {
    if (auto floats = dyn_cast<arith::CmpFOp>(what.comparison))
      return floats.getPredicate() == arith::CmpFPredicate::OGT ? arith::MaxNumFOp::create(at, loc, a, b).getResult()
                                                                : arith::MinNumFOp::create(at, loc, a, b).getResult();
    switch (cast<arith::CmpIOp>(what.comparison).getPredicate()) {
    case arith::CmpIPredicate::sgt:
      return arith::MaxSIOp::create(at, loc, a, b);
    case arith::CmpIPredicate::slt:
      return arith::MinSIOp::create(at, loc, a, b);
    case arith::CmpIPredicate::ugt:
      return arith::MaxUIOp::create(at, loc, a, b);
    default:
      return arith::MinUIOp::create(at, loc, a, b);
    }
  }

  Value reduceValue() {
    Value init = filled(op->getResult(0).getType(), what.initValue);
    auto generic = linalg::GenericOp::create(builder, loc, init.getType(), what.input, init, ArrayRef{identity, row},
                                             iterators, [&](OpBuilder &at, Location, ValueRange values) {
                                               linalg::YieldOp::create(at, loc, extremum(at, values[0], values[1]));
                                             });
    return generic.getResult(0);
  }

  /// The index for "no element has won", which is greater than every index.
  TypedAttr none() {
    unsigned width = indexType.getElementType().getIntOrFloatBitWidth();
    return builder.getIntegerAttr(indexType.getElementType(), APInt::getSignedMaxValue(width));
  }

  Value reduceIndex(Value best) {
    Value init = filled(indexType, none());
    auto generic = linalg::GenericOp::create(
        builder, loc, indexType, ValueRange{what.input, best}, init, ArrayRef{identity, row, row}, iterators,
        [&](OpBuilder &at, Location, ValueRange values) {
          Value isBest =
              isa<FloatType>(values[0].getType())
                  ? arith::CmpFOp::create(at, loc, arith::CmpFPredicate::OEQ, values[0], values[1]).getResult()
                  : arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, values[0], values[1]).getResult();
          Value won = arith::AndIOp::create(at, loc, isBest, wins(at, values[0], constant(at, what.initValue)));
          Value here = arith::IndexCastOp::create(at, loc, indexType.getElementType(),
                                                  linalg::IndexOp::create(at, loc, what.dimension));
          Value candidate = arith::SelectOp::create(at, loc, won, here, constant(at, none()));
          linalg::YieldOp::create(at, loc, arith::MinSIOp::create(at, loc, candidate, values[2]).getResult());
        });
    return generic.getResult(0);
  }

  Value orInit(Value first) {
    SmallVector<utils::IteratorType> parallel(indexType.getRank(), utils::IteratorType::parallel);
    AffineMap map = builder.getMultiDimIdentityMap(indexType.getRank());
    Value empty = tensor::EmptyOp::create(builder, loc, indexType.getShape(), indexType.getElementType());
    auto generic = linalg::GenericOp::create(
        builder, loc, indexType, first, empty, ArrayRef{map, map}, parallel,
        [&](OpBuilder &at, Location, ValueRange values) {
          Value nothing = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, values[0], constant(at, none()));
          Value index = arith::SelectOp::create(at, loc, nothing, constant(at, what.initIndex), values[0]);
          linalg::YieldOp::create(at, loc, index);
        });
    return generic.getResult(0);
  }

  Operation *op;
  const ArgCompare &what;
  Location loc;
  OpBuilder builder;
  RankedTensorType inputType, indexType;
  AffineMap identity, row;
  SmallVector<utils::IteratorType> iterators;
};

class ExpandArgCompare : public impl::ExpandArgCompareBase<ExpandArgCompare> {
  void runOnOperation() override {
    SmallVector<std::pair<Operation *, ArgCompare>> found;
    getOperation().walk([&](Operation *op) {
      if (std::optional<ArgCompare> what = match(op))
        found.push_back({op, *what});
    });
    for (auto &[op, what] : found)
      Expander(op, what).expand();
    if (found.empty())
      markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace tilewright
