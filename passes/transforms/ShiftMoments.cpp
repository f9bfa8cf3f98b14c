// The sum of (x - b)^2 in one pass over x. With any shift c it is S2 - t (2 S1 - n t), where S1 and S2 are the sums of
// x - c and of its square, n how many there are, and t = b - c; so x need not be kept until b, most often its mean, is
// known. The shift is an element of x: without one the terms cancel where the mean is large against the deviation
// (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983). Where x fits the workgroup's memory
// the two-pass form stays: it is more exact, and reads x once as well.
#include "passes/Passes.h"
#include "passes/plan/PlanNumerics.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SHIFTMOMENTS
#include "passes/Passes.h.inc"

namespace {
constexpr int64_t kLeastTile = 64; ///< elements of a contiguous parallel dim in a tile

/// `sum` adds (x - b)^2 up; b does not change along the reduced dims.
struct SumOfSquares {
  linalg::GenericOp sum;
  Value x, b;
  AffineMap bMap; ///< from the domain of `sum` to b
};

/// The only op of a body besides its yield, if it is an Op.
template <typename Op> Op onlyOp(linalg::GenericOp generic) {
  Block &body = *generic.getBody();
  auto op = llvm::hasNItems(body, 2) ? dyn_cast<Op>(&body.front()) : Op();
  return op && body.getTerminator()->getOperands() == op->getResults() ? op : Op();
}

/// An op that computes each element of its only result from elements of its inputs.
linalg::GenericOp elementwiseProducer(Value tensor) {
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  bool elementwise = generic && generic.getNumResults() == 1 && generic.getNumReductionLoops() == 0 &&
                     generic.getMatchingIndexingMap(generic.getDpsInitOperand(0)).isIdentity();
  return elementwise ? generic : linalg::GenericOp();
}

/// The input that a value of the body is an element of, or null.
OpOperand *inputOf(linalg::GenericOp generic, Value element) {
  auto argument = dyn_cast<BlockArgument>(element);
  if (!argument || argument.getOwner() != generic.getBody() || argument.getArgNumber() >= generic.getNumDpsInputs())
    return nullptr;
  return generic.getDpsInputOperand(argument.getArgNumber());
}

Value squared(linalg::GenericOp generic) {
  if (auto product = onlyOp<arith::MulFOp>(generic); product && product.getLhs() == product.getRhs())
    return product.getLhs();
  APInt exponent;
  if (auto power = onlyOp<math::FPowIOp>(generic);
      power && matchPattern(power.getRhs(), m_ConstantInt(&exponent)) && exponent == 2)
    return power.getLhs();
  APFloat real(0.0f);
  if (auto power = onlyOp<math::PowFOp>(generic);
      power && matchPattern(power.getRhs(), m_ConstantFloat(&real)) && real.isExactlyValue(2.0))
    return power.getLhs();
  return {};
}

/// The tensor of which a generic reads this element at its own index, or null.
Value tensorReadAtItsIndex(linalg::GenericOp generic, Value element) {
  OpOperand *input = element ? inputOf(generic, element) : nullptr;
  return input && generic.getMatchingIndexingMap(input).isIdentity() ? input->get() : Value();
}

std::optional<SumOfSquares> match(linalg::GenericOp sum) {
  if (sum.getNumResults() != 1 || sum.getNumDpsInputs() != 1 || sum.getNumReductionLoops() == 0)
    return std::nullopt;
  auto add = onlyOp<arith::AddFOp>(sum);
  APFloat zero(0.0f);
  auto fill = sum.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!add || !sum.getIndexingMapsArray()[0].isIdentity() || !fill ||
      !matchPattern(fill.getInputs()[0], m_ConstantFloat(&zero)) || !zero.isZero())
    return std::nullopt;
  linalg::GenericOp square = elementwiseProducer(sum.getDpsInputs()[0]);
  Value difference = square ? tensorReadAtItsIndex(square, squared(square)) : Value();
  linalg::GenericOp subtraction = difference ? elementwiseProducer(difference) : linalg::GenericOp();
  auto subtract = subtraction ? onlyOp<arith::SubFOp>(subtraction) : arith::SubFOp();
  if (!subtract)
    return std::nullopt;
  Value x = tensorReadAtItsIndex(subtraction, subtract.getLhs());
  OpOperand *b = inputOf(subtraction, subtract.getRhs());
  if (!x || !b || !cast<RankedTensorType>(x.getType()).hasStaticShape())
    return std::nullopt;
  AffineMap bMap = subtraction.getMatchingIndexingMap(b);
  SmallVector<unsigned> reduced;
  sum.getReductionDims(reduced);
  if (llvm::any_of(reduced, [&](unsigned dim) { return bMap.isFunctionOfDim(dim); }))
    return std::nullopt;
  return SumOfSquares{sum, x, b->get(), bMap};
}

/// Whether a workgroup can keep what it reduces until b is known.
bool fitsWorkgroup(const SumOfSquares &what, const Target &target) {
  auto type = cast<RankedTensorType>(what.x.getType());
  auto iterators = linalg::GenericOp(what.sum).getIteratorTypesArray();
  double elements = 1;
  for (auto [iterator, size] : llvm::zip(iterators, type.getShape()))
    elements *= iterator == utils::IteratorType::reduction ? size : 1;
  if (iterators.back() == utils::IteratorType::parallel)
    elements *= std::min(kLeastTile, type.getShape().back());
  return elements * type.getElementTypeBitWidth() / 8 <= static_cast<double>(target.blockBytes);
}

class Shifter {
public:
  explicit Shifter(const SumOfSquares &what)
      : what(what), sum(what.sum), loc(sum.getLoc()), builder(sum),
        result(cast<RankedTensorType>(sum.getResult(0).getType())), element(result.getElementType()) {}

  void shift() {
    sum.getResult(0).replaceAllUsesWith(correct(computeMoments()));
    // What only this sum read goes with it.
    for (Operation *dead = sum; dead && dead->use_empty();) {
      Operation *producer = dead == sum || isa<linalg::GenericOp>(dead) ? dead->getOperand(0).getDefiningOp() : nullptr;
      dead->erase();
      dead = isa_and_nonnull<linalg::GenericOp>(producer) ? producer : nullptr;
    }
  }

private:
  /// From the domain to the first element of x along the reduced dims.
  AffineMap firstMap() {
    SmallVector<AffineExpr> exprs;
    for (auto [dim, iterator] : llvm::enumerate(sum.getIteratorTypesArray()))
      exprs.push_back(iterator == utils::IteratorType::reduction ? builder.getAffineConstantExpr(0)
                                                                 : builder.getAffineDimExpr(dim));
    return AffineMap::get(exprs.size(), 0, exprs, builder.getContext());
  }

  ValueRange computeMoments() {
    AffineMap written = sum.getIndexingMapsArray()[1];
    AffineMap identity = builder.getMultiDimIdentityMap(written.getNumDims());
    Value init = sum.getDpsInits()[0];
    auto moments =
        linalg::GenericOp::create(builder, loc, TypeRange{result, result}, ValueRange{what.x, what.x},
                                  ValueRange{init, init}, ArrayRef{identity, firstMap(), written, written},
                                  sum.getIteratorTypesArray(), [&](OpBuilder &at, Location, ValueRange values) {
                                    Value shifted = arith::SubFOp::create(at, loc, values[0], values[1]);
                                    Value square = arith::MulFOp::create(at, loc, shifted, shifted);
                                    Value first = arith::AddFOp::create(at, loc, shifted, values[2]);
                                    Value second = arith::AddFOp::create(at, loc, square, values[3]);
                                    linalg::YieldOp::create(at, loc, ValueRange{first, second});
                                  });
    moments->setAttr(kFormAttr, builder.getStringAttr("two-moment variance"));
    return moments.getResults();
  }

  /// From an index of the result to the index of the domain that it stands for, zero where that is reduced.
  AffineMap domainOfResult() {
    AffineMap written = sum.getIndexingMapsArray()[1];
    SmallVector<AffineExpr> exprs(written.getNumDims(), builder.getAffineConstantExpr(0));
    for (auto [position, expr] : llvm::enumerate(written.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        exprs[dim.getPosition()] = builder.getAffineDimExpr(position);
    return AffineMap::get(written.getNumResults(), 0, exprs, builder.getContext());
  }

  double count() {
    double elements = 1;
    for (auto [iterator, size] :
         llvm::zip(sum.getIteratorTypesArray(), cast<RankedTensorType>(what.x.getType()).getShape()))
      elements *= iterator == utils::IteratorType::reduction ? size : 1;
    return elements;
  }

  Value correct(ValueRange moments) {
    AffineMap identity = builder.getMultiDimIdentityMap(result.getRank()), domain = domainOfResult();
    Value empty = tensor::EmptyOp::create(builder, loc, result.getShape(), element);
    SmallVector<utils::IteratorType> parallel(result.getRank(), utils::IteratorType::parallel);
    auto corrected = linalg::GenericOp::create(
        builder, loc, result, ValueRange{moments[0], moments[1], what.b, what.x}, empty,
        ArrayRef{identity, identity, what.bMap.compose(domain), firstMap().compose(domain), identity}, parallel,
        [&](OpBuilder &at, Location, ValueRange values) {
          auto constant = [&](double value) -> Value {
            return arith::ConstantOp::create(at, loc, at.getFloatAttr(element, value));
          };
          Value t = arith::SubFOp::create(at, loc, values[2], values[3]);
          Value twice = arith::MulFOp::create(at, loc, constant(2), values[0]);
          Value inner = arith::SubFOp::create(at, loc, twice, arith::MulFOp::create(at, loc, constant(count()), t));
          Value square = arith::SubFOp::create(at, loc, values[1], arith::MulFOp::create(at, loc, t, inner));
          // A sum of squares, whatever the rounding says; a NaN stays one.
          linalg::YieldOp::create(at, loc, arith::MaximumFOp::create(at, loc, square, constant(0)).getResult());
        });
    return corrected.getResult(0);
  }

  const SumOfSquares &what;
  linalg::GenericOp sum;
  Location loc;
  OpBuilder builder;
  RankedTensorType result;
  Type element;
};

class ShiftMoments : public impl::ShiftMomentsBase<ShiftMoments> {
public:
  using ShiftMomentsBase::ShiftMomentsBase;

private:
  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    SmallVector<SumOfSquares> found;
    getOperation().walk([&](linalg::GenericOp op) {
      std::optional<SumOfSquares> what = match(op);
      if (what && getElementTypeOrSelf(what->x.getType()).getIntOrFloatBitWidth() >= 32 &&
          !fitsWorkgroup(*what, *machine))
        found.push_back(*what);
    });
    for (const SumOfSquares &what : found)
      Shifter(what).shift();
  }
};
} // namespace
} // namespace tilewright
