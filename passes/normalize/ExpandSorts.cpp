// A sort compares neighbours one after the other, and IREE's takes n² steps, each waiting for the last. Counting takes n²
// comparisons that do not depend on each other, in vectors. MatchSorts.h says which sorts can be counted.
#include "passes/normalize/ExpandSorts.h"

#include "passes/normalize/GenericBuilder.h"
#include "passes/normalize/MatchSorts.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr llvm::StringLiteral kSort = "iree_linalg_ext.sort", kTopK = "iree_linalg_ext.topk";

/// Returns the length of blocks with which the first `kept` of `length` elements take the fewest comparisons, which may
/// be the whole row, and their number.
std::pair<int64_t, double> bestBlock(int64_t length, int64_t kept) {
  // Each element is compared with those of its block, and each kept place with all ranks of a block.
  auto pairs = [&](int64_t block) { return double(llvm::divideCeil(length, block)) * block * (block + kept); };
  std::pair<int64_t, double> best{length, pairs(length)};
  for (int64_t block = 16; block < length; block *= 2) {
    int64_t left = llvm::divideCeil(length, block) * kept;
    if (kept >= block || left >= length)
      continue;
    if (double all = pairs(block) + bestBlock(left, kept).second; all < best.second)
      best = {block, all};
  }
  return best;
}

/// Elements that may be among the first: their keys, of which the greatest comes first, and their positions in the row.
struct Candidates {
  Value keys;      ///< null where no candidates are compared any more
  Value positions; ///< null where each element's position is its index
};

class Expander : GenericBuilder {
public:
  Expander(Operation *op, const Sort &sort) : GenericBuilder(op), op(op), sort(sort) {}

  /// Replaces a search by the elements at the positions and these.
  void expandTopK() {
    Value positions = first({keys(), Value()});
    op->getResult(0).replaceAllUsesWith(gathered(op->getOperand(0), positions));
    op->getResult(1).replaceAllUsesWith(indices(positions, op->getResult(1)));
    op->erase();
  }

  void expand() {
    Value positions = sort.order ? first({keys(), Value()}) : picked(ranksByComparison(), {}, sort.dim).positions;
    for (auto [operand, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
      if (result.use_empty())
        continue;
      Value sorted = isIndex(operand) ? indices(positions, operand) : gathered(operand, positions);
      replace(result, sorted);
    }
    op->erase();
  }

  /// Returns true if an element may stand in front of another one.
  Value isNotBehind(OpBuilder &at, Value one, Value other) {
    Type type = keyType(one.getType());
    return arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sge, keyOf(at, one, type), keyOf(at, other, type));
  }

private:
  Type keyType(Type element) { return builder.getIntegerType(element.getIntOrFloatBitWidth() <= 32 ? 32 : 64); }

  RankedTensorType resized(RankedTensorType type, int64_t dim, int64_t size, Type element) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = size;
    return RankedTensorType::get(shape, element);
  }

  /// Returns integers that are ordered as the elements, the greatest first.
  Value keys() {
    Value operand = op->getOperand(sort.order->key);
    auto type = cast<RankedTensorType>(operand.getType());
    Type key = keyType(type.getElementType());
    return elementwise(resized(type, sort.dim, type.getDimSize(sort.dim), key), operand,
                       [&](OpBuilder &at, ValueRange elements) { return keyOf(at, elements[0], key); });
  }

  Value keyOf(OpBuilder &at, Value element, Type type) {
    Value key = isa<FloatType>(element.getType()) ? keyOfFloat(at, element, type) : keyOfInteger(at, element, type);
    // The complement reverses the order without overflow.
    return sort.order->isDescending ? key : arith::XOrIOp::create(at, loc, key, number(at, type, -1)).getResult();
  }

  Value keyOfInteger(OpBuilder &at, Value element, Type type) {
    unsigned width = element.getType().getIntOrFloatBitWidth();
    if (sort.order->isUnsigned) // turning the highest bit makes signed numbers of the same order
      element = arith::XOrIOp::create(at, loc, element,
                                      number(at, element.getType(), APInt::getSignedMinValue(width)));
    return element.getType() == type ? element : arith::ExtSIOp::create(at, loc, type, element).getResult();
  }

  Value keyOfFloat(OpBuilder &at, Value element, Type type) {
    auto format = cast<FloatType>(element.getType());
    unsigned width = type.getIntOrFloatBitWidth();
    Value bits = arith::BitcastOp::create(at, loc, at.getIntegerType(format.getWidth()), element);
    if (format.getWidth() < width)
      bits = arith::ExtSIOp::create(at, loc, type, bits);
    Value sizeBits = number(at, type, APInt::getLowBitsSet(width, format.getWidth() - 1));
    Value zero = number(at, type, 0);
    Value isNegative = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, bits, zero);
    if (sort.order->isTotal) {
      Value turned = arith::XOrIOp::create(at, loc, bits, sizeBits);
      return arith::SelectOp::create(at, loc, isNegative, turned, bits);
    }
    Value size = arith::AndIOp::create(at, loc, bits, sizeBits);
    Value key = arith::SelectOp::create(at, loc, isNegative, arith::SubIOp::create(at, loc, zero, size), size);
    APInt infinity = APFloat::getInf(format.getFloatSemantics()).bitcastToAPInt().zext(width);
    Value isNan =
        arith::CmpIOp::create(at, loc, arith::CmpIPredicate::sgt, size, number(at, type, infinity));
    return arith::SelectOp::create(at, loc, isNan, number(at, type, APInt::getSignedMaxValue(width)), key);
  }

  /// Returns the positions of the first elements, in order.
  Value first(Candidates all) {
    auto type = cast<RankedTensorType>(all.keys.getType());
    int64_t length = type.getDimSize(sort.dim), block = bestBlock(length, sort.kept).first;
    if (block == length)
      return picked(ranks(all.keys, sort.dim), all, sort.dim).positions;
    int64_t blocks = llvm::divideCeil(length, block);
    Candidates cut{inBlocks(all.keys, blocks, block, lowestKey(type.getElementType())), Value()};
    if (all.positions)
      cut.positions = inBlocks(all.positions, blocks, block, APInt(32, 0));
    Candidates some = picked(ranks(cut.keys, sort.dim + 1), cut, sort.dim + 1);
    return first({rejoined(some.keys), rejoined(some.positions)});
  }

  static APInt lowestKey(Type key) { return APInt::getSignedMinValue(key.getIntOrFloatBitWidth()); }

  /// Returns the number of elements in front of each element.
  Value ranks(Value keys, int64_t dim) {
    return countInFront(keys, dim, [&](OpBuilder &at, ValueRange one, ValueRange other) {
      using P = arith::CmpIPredicate;
      Value isGreater = arith::CmpIOp::create(at, loc, P::sgt, other[0], one[0]);
      Value isEqual = arith::CmpIOp::create(at, loc, P::eq, other[0], one[0]);
      return std::pair(isGreater, isEqual);
    });
  }

  /// The same by the op's comparison. Elements are equal if neither is less than the other.
  Value ranksByComparison() {
    return countInFront(op->getOperands(), sort.dim, [&](OpBuilder &at, ValueRange one, ValueRange other) {
      // A comparison may be true of equal elements, too: then it is true both ways.
      Value isLess = comparison(at, other, one), isGreater = comparison(at, one, other);
      Value isNotGreater = arith::XOrIOp::create(at, loc, isGreater, number(at, at.getI1Type(), 1));
      Value always = arith::AndIOp::create(at, loc, isLess, isNotGreater);
      Value ifBefore = arith::OrIOp::create(at, loc, isLess, isNotGreater);
      return std::pair(always, ifBefore);
    });
  }

  Value comparison(OpBuilder &at, ValueRange first, ValueRange second) {
    IRMapping values;
    Block &block = op->getRegion(0).front();
    for (auto [number, pair] : llvm::enumerate(llvm::zip_equal(first, second))) {
      values.map(block.getArgument(2 * number), std::get<0>(pair));
      values.map(block.getArgument(2 * number + 1), std::get<1>(pair));
    }
    for (Operation &each : llvm::drop_end(block)) {
      for (Value used : each.getOperands())
        if (auto constant = used.getDefiningOp<arith::ConstantOp>(); constant && !values.contains(used))
          values.map(used, at.clone(*constant)->getResult(0));
      at.clone(each, values);
    }
    return values.lookup(block.back().getOperand(0));
  }

  /// Returns two conditions under which another element comes in front of one: always, and if it is before it now.
  using InFront = llvm::function_ref<std::pair<Value, Value>(OpBuilder &at, ValueRange one, ValueRange other)>;

  Value countInFront(ValueRange rows, int64_t dim, InFront inFront) {
    auto type = cast<RankedTensorType>(rows[0].getType());
    int64_t rank = type.getRank();
    SmallVector<Value> inputs(rows);
    llvm::append_range(inputs, rows);
    SmallVector<AffineMap> maps(rows.size(), builder.getMultiDimIdentityMap(rank + 1).dropResult(rank));
    maps.append(rows.size(), alongLast(rank, dim));
    return sum(resized(type, dim, type.getDimSize(dim), builder.getI32Type()), inputs, maps,
               [&](OpBuilder &at, ValueRange elements) {
                 auto [always, ifBefore] =
                     inFront(at, elements.take_front(rows.size()), elements.drop_front(rows.size()));
                 Value isBefore = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::slt, index(at, rank),
                                                        index(at, dim));
                 Value wins = arith::OrIOp::create(at, loc, always,
                                                   arith::AndIOp::create(at, loc, ifBefore, isBefore).getResult());
                 return arith::ExtUIOp::create(at, loc, at.getI32Type(), wins).getResult();
               });
  }

  /// Returns the first elements, in order: at each place, the sum over all elements of the one whose rank it is.
  Candidates picked(Value ranks, Candidates all, int64_t dim) {
    auto type = cast<RankedTensorType>(ranks.getType());
    int64_t rank = type.getRank(), length = type.getDimSize(dim);
    AffineMap map = alongLast(rank, dim);
    auto pick = [&](Type element, ValueRange inputs, Body value) {
      SmallVector<AffineMap> maps(inputs.size(), map);
      return sum(resized(type, dim, std::min(sort.kept, length), element), inputs, maps,
                 [&](OpBuilder &at, ValueRange elements) {
                   Value isHere =
                       arith::CmpIOp::create(at, loc, arith::CmpIPredicate::eq, elements[0], index(at, dim));
                   Value nothing = number(at, element, 0);
                   return arith::SelectOp::create(at, loc, isHere, value(at, elements), nothing).getResult();
                 });
    };
    auto given = [](OpBuilder &, ValueRange elements) -> Value { return elements[1]; };
    Candidates some;
    if (all.keys)
      some.keys = pick(cast<RankedTensorType>(all.keys.getType()).getElementType(), {ranks, all.keys}, given);
    if (all.positions)
      some.positions = pick(builder.getI32Type(), {ranks, all.positions}, given);
    else
      some.positions = pick(builder.getI32Type(), ranks, [&](OpBuilder &at, ValueRange) -> Value {
        Value inside = index(at, rank);
        if (dim == sort.dim)
          return inside;
        Value start = arith::MulIOp::create(at, loc, index(at, sort.dim), number(at, at.getI32Type(), length));
        return arith::AddIOp::create(at, loc, start, inside).getResult();
      });
    return some;
  }

  /// Cuts rows into blocks, after filling them up with elements that come last.
  Value inBlocks(Value tensor, int64_t blocks, int64_t block, const APInt &last) {
    auto type = cast<RankedTensorType>(tensor.getType());
    int64_t missing = blocks * block - type.getDimSize(sort.dim);
    if (missing > 0) {
      SmallVector<OpFoldResult> low(type.getRank(), builder.getIndexAttr(0)), high(low);
      high[sort.dim] = builder.getIndexAttr(missing);
      type = resized(type, sort.dim, blocks * block, type.getElementType());
      Value fill = number(builder, type.getElementType(), last);
      tensor = tensor::PadOp::create(builder, loc, type, tensor, low, high, fill);
    }
    SmallVector<int64_t> shape(type.getShape());
    shape[sort.dim] = blocks;
    shape.insert(shape.begin() + sort.dim + 1, block);
    return tensor::ExpandShapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
                                         blockGroups(type.getRank(), sort.dim));
  }

  Value rejoined(Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[sort.dim] *= shape[sort.dim + 1];
    shape.erase(shape.begin() + sort.dim + 1);
    return tensor::CollapseShapeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
                                           blockGroups(shape.size(), sort.dim));
  }

  /// Returns true if each element is its index along the row.
  bool isIndex(Value operand) {
    auto generic = operand.getDefiningOp<linalg::GenericOp>();
    if (!generic || generic.getNumDpsInputs() != 0 || generic.getNumResults() != 1 ||
        !generic.getIndexingMapsArray()[0].isIdentity() || !llvm::hasNItems(*generic.getBody(), 3))
      return false;
    auto here = dyn_cast<linalg::IndexOp>(generic.getBody()->front());
    auto number = here ? dyn_cast<arith::IndexCastOp>(here->getNextNode()) : arith::IndexCastOp();
    return number && int64_t(here.getDim()) == sort.dim && number.getIn() == here.getResult() &&
           generic.getBody()->getTerminator()->getOperand(0) == number.getOut();
  }

  Value indices(Value positions, Value like) {
    auto type = cast<RankedTensorType>(positions.getType());
    Type element = cast<RankedTensorType>(like.getType()).getElementType();
    if (element == type.getElementType())
      return positions;
    bool isWider = element.getIntOrFloatBitWidth() > type.getElementTypeBitWidth();
    return elementwise(resized(type, sort.dim, sort.kept, element), positions,
                       [&](OpBuilder &at, ValueRange elements) {
                         return isWider ? arith::ExtSIOp::create(at, loc, element, elements[0]).getResult()
                                        : arith::TruncIOp::create(at, loc, element, elements[0]).getResult();
                       });
  }

  Value gathered(Value operand, Value positions) {
    auto type = cast<RankedTensorType>(positions.getType());
    Type element = cast<RankedTensorType>(operand.getType()).getElementType();
    return elementwise(resized(type, sort.dim, sort.kept, element), positions,
                       [&](OpBuilder &at, ValueRange elements) {
                         SmallVector<Value> where;
                         for (int64_t dim = 0; dim < type.getRank(); ++dim)
                           where.push_back(linalg::IndexOp::create(at, loc, dim));
                         where[sort.dim] = arith::IndexCastOp::create(at, loc, at.getIndexType(), elements[0]);
                         return tensor::ExtractOp::create(at, loc, operand, where).getResult();
                       });
  }

  /// Lets the readers of a result read the elements that are kept of it.
  void replace(Value result, Value sorted) {
    bool isShorter = result.getType() != sorted.getType();
    for (OpOperand &use : llvm::make_early_inc_range(result.getUses())) {
      Operation *user = use.getOwner();
      if (isShorter && takenFromFront(user, sort.dim) == sort.kept) {
        user->getResult(0).replaceAllUsesWith(sorted);
        user->erase();
      } else {
        use.set(sorted);
      }
    }
  }

  Operation *op;
  const Sort &sort;
};
} // namespace

/// Lets IREE's sort keep equal elements in order, too: it swaps neighbours for which the comparison is false.
static void keepEqualsInOrder(Operation *op) {
  Block &block = op->getRegion(0).front();
  Operation *end = &block.back(); // an op that is not registered here
  OpBuilder builder(end);
  Location loc = op->getLoc();
  if (std::optional<Order> order = orderOf(op)) {
    end->setOperand(0, Expander(op, Sort{0, 0, order}).isNotBehind(builder, block.getArgument(2 * order->key),
                                                                   block.getArgument(2 * order->key + 1)));
    return;
  }
  IRMapping swapped;
  for (unsigned number = 0; number < block.getNumArguments(); ++number)
    swapped.map(block.getArgument(number), block.getArgument(number ^ 1));
  for (Operation *each : llvm::to_vector(llvm::make_pointer_range(llvm::drop_end(block))))
    builder.clone(*each, swapped);
  Value isLess = end->getOperand(0), isGreater = swapped.lookup(isLess);
  Value yes = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  Value isNotGreater = arith::XOrIOp::create(builder, loc, isGreater, yes);
  end->setOperand(0, arith::OrIOp::create(builder, loc, isLess, isNotGreater));
}

void tilewright::expandSorts(func::FuncOp function) {
  SmallVector<std::pair<Operation *, Sort>> sorts, searches;
  function->walk([&](Operation *op) {
    StringRef name = op->getName().getStringRef();
    if (name == kTopK) {
      if (std::optional<Sort> search = matchTopK(op))
        searches.push_back({op, *search});
    } else if (name == kSort) {
      if (std::optional<Sort> sort = matchSort(op))
        sorts.push_back({op, *sort});
      else if (comparesElements(op))
        keepEqualsInOrder(op);
    }
  });
  for (auto &[op, sort] : sorts)
    Expander(op, sort).expand();
  for (auto &[op, search] : searches)
    Expander(op, search).expandTopK();
}
