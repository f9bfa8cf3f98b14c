// A running sum of n elements becomes n sums of n elements, most of them masked: more operations, but in vectors and
// without a step that waits for the one before. The op belongs to IREE and is unregistered here, so it is recognised by
// its name, operands and region.
#include "passes/normalize/ExpandScans.h"

#include "passes/graph/ConstantOperand.h"
#include "passes/graph/TensorExpr.h"
#include "passes/normalize/GenericBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr llvm::StringLiteral kScan = "iree_linalg_ext.scan";

/// A running sum from zero along a dim of the input. Exclusive sums leave out the element itself.
struct Scan {
  Value input;
  int64_t dim;
  bool inclusive;
};

/// Returns true for zeros, also where a number is broadcast.
bool isZeroEverywhere(Value tensor) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  TensorAccess whole{tensor, AffineMap::getMultiDimIdentityMap(rank, tensor.getContext())};
  TypedAttr value = constantElement(throughCopies(whole).tensor);
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    return number.getValue().isZero();
  auto number = dyn_cast_or_null<IntegerAttr>(value);
  return number && number.getValue().isZero();
}

bool addsItsArguments(Region &region) {
  if (!region.hasOneBlock() || !llvm::hasNItems(region.front(), 2) || region.getNumArguments() != 2)
    return false;
  Operation *add = &region.front().front();
  return isa<arith::AddFOp, arith::AddIOp>(add) && llvm::is_contained(add->getOperands(), region.getArgument(0)) &&
         llvm::is_contained(add->getOperands(), region.getArgument(1)) &&
         add->getNextNode()->getOperands() == add->getResults();
}

std::optional<Scan> match(Operation *op) {
  if (op->getName().getStringRef() != kScan || op->getNumOperands() != 3 || op->getNumResults() != 2 ||
      op->getNumRegions() != 1 || !op->getResult(1).use_empty() || !addsItsArguments(op->getRegion(0)))
    return std::nullopt;
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  auto dimension = properties ? properties.getAs<IntegerAttr>("dimension") : IntegerAttr();
  auto inclusive = properties ? properties.getAs<BoolAttr>("inclusive") : BoolAttr();
  auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  if (!dimension || !inclusive || !type || !type.hasStaticShape() || op->getResult(0).getType() != type ||
      dimension.getInt() < 0 || dimension.getInt() >= type.getRank() || !isZeroEverywhere(op->getOperand(2)))
    return std::nullopt;
  return Scan{op->getOperand(0), dimension.getInt(), inclusive.getValue()};
}

/// Returns the largest divisor of the length that is at most `longest`.
int64_t largestBlock(int64_t length, int64_t longest) {
  int64_t block = longest;
  while (length % block != 0)
    --block;
  return block;
}

/// Returns true if rows are short, or may be cut into blocks until they are.
bool mayExpand(const Scan &scan, int64_t longest) {
  auto type = cast<RankedTensorType>(scan.input.getType());
  int64_t length = type.getDimSize(scan.dim);
  while (length > longest) {
    int64_t block = type.getElementType().isInteger() ? largestBlock(length, longest) : 1;
    if (block == 1)
      return false;
    length /= block;
  }
  return true;
}

class Expander : GenericBuilder {
public:
  /// Rows of at most `longest` elements are short.
  Expander(Operation *op, int64_t longest) : GenericBuilder(op), longest(longest) {}

  Value expand(const Scan &scan) {
    int64_t length = cast<RankedTensorType>(scan.input.getType()).getDimSize(scan.dim);
    if (length <= longest)
      return sumsBefore(scan);
    int64_t block = largestBlock(length, longest);
    return inBlocks(scan, length / block, block);
  }

private:
  Value zeros(RankedTensorType type) {
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  }

  static Value add(OpBuilder &body, Location at, Value a, Value b) {
    return isa<FloatType>(a.getType()) ? arith::AddFOp::create(body, at, a, b).getResult()
                                       : arith::AddIOp::create(body, at, a, b).getResult();
  }

  static void addElements(OpBuilder &body, Location at, ValueRange elements) {
    linalg::YieldOp::create(body, at, add(body, at, elements[0], elements[1]));
  }

  /// Sums the elements up to each element, or those before it. The last loop runs over the elements that are added.
  Value sumsBefore(const Scan &scan) {
    auto type = cast<RankedTensorType>(scan.input.getType());
    int64_t rank = type.getRank();
    auto predicate = scan.inclusive ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt;
    TypedAttr nothing = builder.getZeroAttr(type.getElementType());
    auto sum = [&](OpBuilder &body, Value total, Value more) { return add(body, loc, total, more); };
    return reduce(type, scan.input, alongLast(rank, scan.dim), nothing, sum,
                  [&](OpBuilder &body, ValueRange elements) -> Value {
                    Value own = linalg::IndexOp::create(body, loc, scan.dim),
                          other = linalg::IndexOp::create(body, loc, rank);
                    Value counts = arith::CmpIOp::create(body, loc, predicate, other, own);
                    Value zero = arith::ConstantOp::create(body, loc, nothing);
                    return arith::SelectOp::create(body, loc, counts, elements[0], zero);
                  });
  }

  Value sumAlong(Value tensor, int64_t dim) {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + dim);
    SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    loops[dim] = utils::IteratorType::reduction;
    AffineMap all = builder.getMultiDimIdentityMap(type.getRank());
    auto result = RankedTensorType::get(shape, type.getElementType());
    auto generic =
        linalg::GenericOp::create(builder, loc, TypeRange(result), tensor, zeros(result),
                                  ArrayRef{all, all.dropResult(dim)}, loops, addElements);
    return generic.getResult(0);
  }

  /// Adds the running sum inside each block to the sum of the blocks before it.
  Value inBlocks(const Scan &scan, int64_t blocks, int64_t block) {
    auto type = cast<RankedTensorType>(scan.input.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[scan.dim] = blocks;
    shape.insert(shape.begin() + scan.dim + 1, block);
    SmallVector<ReassociationIndices> groups = blockGroups(type.getRank(), scan.dim);
    Value cut = tensor::ExpandShapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()),
                                              scan.input, groups);
    Value inside = sumsBefore({cut, scan.dim + 1, scan.inclusive});
    Value before = expand({sumAlong(cut, scan.dim + 1), scan.dim, /*inclusive=*/false});
    AffineMap all = builder.getMultiDimIdentityMap(shape.size());
    Value sums = elementwise(cast<RankedTensorType>(cut.getType()), {inside, before}, {all, all.dropResult(scan.dim + 1)},
                             [&](OpBuilder &body, ValueRange elements) {
                               return add(body, loc, elements[0], elements[1]);
                             });
    return tensor::CollapseShapeOp::create(builder, loc, type, sums, groups);
  }

  int64_t longest;
};
} // namespace

void tilewright::expandScans(func::FuncOp function, const CommonCosts &costs) {
  SmallVector<Operation *> scans;
  function->walk([&](Operation *op) {
    if (std::optional<Scan> scan = match(op); scan && mayExpand(*scan, costs.scanBlock))
      scans.push_back(op);
  });
  for (Operation *op : scans) {
    op->getResult(0).replaceAllUsesWith(Expander(op, costs.scanBlock).expand(*match(op)));
    op->erase();
  }
}
