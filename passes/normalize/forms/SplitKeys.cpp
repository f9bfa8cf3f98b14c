#include "passes/normalize/forms/SplitKeys.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Form.h"
#include "passes/normalize/TwoPhaseReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

namespace {
class KeySplitter {
public:
  KeySplitter(const TensorGraph &graph, const KeyGroup &group, int64_t parts)
      : graph(graph), group(group), parts(parts), last(graph.exprs()[group.members.back().expr].op),
        builder(last->getContext()) {
    builder.setInsertionPointAfter(last);
  }

  void run() {
    for (const KeyMember &member : group.members)
      partial[resultOf(member)] = buildPartial(member);
    Operation *maximum = graph.exprs()[group.maximum].op;
    Value before = maximum->getResult(0), own = partial[before];
    AffineMap all = identity(own);
    Value total = combine(maximum, {own}, {all}, [](OpBuilder &at, Location loc, ValueRange values) {
      return arith::MaximumFOp::create(at, loc, values[0], values[1]).getResult();
    });
    for (const KeyMember &member : group.members)
      if (member.sums)
        finish(member, own, total);
  }

private:
  Value resultOf(const KeyMember &member) const { return graph.exprs()[member.expr].op->getResult(0); }
  AffineMap identity(Value tensor) {
    return builder.getMultiDimIdentityMap(cast<RankedTensorType>(tensor.getType()).getRank());
  }

  /// Returns the map into a tensor whose dim at `position` is cut (-1: none), over a domain with the parts as dim 0. If
  /// `leads` is true, dim 0 of the tensor is the parts, too.
  AffineMap indexInParts(AffineMap map, int64_t position, bool leads) {
    SmallVector<AffineExpr> indices;
    AffineExpr part = builder.getAffineDimExpr(0);
    if (leads)
      indices.push_back(part);
    for (auto [i, index] : llvm::enumerate(map.shiftDims(1).getResults())) {
      if (static_cast<int64_t>(i) == position)
        indices.push_back(part);
      indices.push_back(index);
    }
    return AffineMap::get(map.getNumDims() + 1, 0, indices, builder.getContext());
  }

  static int64_t positionOf(AffineMap map, int64_t dim) {
    for (auto [i, index] : llvm::enumerate(map.getResults()))
      if (index.isFunctionOfDim(dim))
        return i;
    return -1;
  }

  /// Builds the first phase of a member: its op for each part.
  Value buildPartial(const KeyMember &member) {
    const TensorExpr &expr = graph.exprs()[member.expr];
    Location loc = expr.op->getLoc();
    IRRewriter rewriter(builder);
    auto copy = cast<linalg::LinalgOp>(rewriter.clone(*expr.op));
    if (!isa<linalg::GenericOp>(copy.getOperation()))
      copy = *linalg::generalizeNamedOp(rewriter, copy);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (OpOperand *input : copy.getDpsInputOperands()) {
      auto [tensor, map] =
          readInParts(member, input->getOperandNumber(), copy.getMatchingIndexingMap(input), input->get());
      inputs.push_back(tensor);
      maps.push_back(map);
    }
    AffineMap written = copy.getMatchingIndexingMap(copy.getDpsInitOperand(0));
    int64_t position = positionOf(written, member.dim);
    auto type = cast<RankedTensorType>(expr.op->getResult(0).getType());
    SmallVector<int64_t> shape(type.getShape());
    if (position >= 0)
      shape[position] /= parts;
    shape.insert(shape.begin(), parts);
    maps.push_back(indexInParts(written, -1, /*leads=*/true));
    Value init = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
    if (!expr.oneReliesOnOne()) {
      Value start = arith::ConstantOp::create(builder, loc, startOf(member, constantElement(copy.getDpsInits()[0])));
      init = linalg::FillOp::create(builder, loc, start, init).getResult(0);
    }
    SmallVector<utils::IteratorType> iterators = {utils::IteratorType::parallel};
    llvm::append_range(iterators, copy.getIteratorTypesArray());
    auto op = linalg::GenericOp::create(
        builder, loc, init.getType(), inputs, init, maps, iterators,
        [&](OpBuilder &at, Location, ValueRange values) { cloneBody(at, *copy.getBlock(), member, values); });
    if (Attribute before = expr.op->getAttr(kFormAttr)) // says more
      op->setAttr(kFormAttr, before);
    else if (!expr.oneReliesOnOne() && (member.sums || member.expr == group.maximum))
      setForm(op, tile::Form::partsOfRows);
    copy.erase();
    return op.getResult(0);
  }

  /// Returns the start of a member's partial results. The maximum of a part starts from the lowest finite number,
  /// because a part may contain only minus infinity, and exponentials relative to that are NaN.
  TypedAttr startOf(const KeyMember &member, TypedAttr start) const {
    if (member.expr != group.maximum)
      return start;
    auto type = cast<FloatType>(start.getType());
    return FloatAttr::get(type, APFloat::getLargest(type.getFloatSemantics(), /*Negative=*/true));
  }

  std::pair<Value, AffineMap> readInParts(const KeyMember &member, unsigned operand, AffineMap map, Value tensor) {
    for (const TensorAccess &read : member.reads)
      if (read.operand == operand) {
        if (Value own = partial.lookup(read.tensor))
          return {own, indexInParts(read.map, -1, /*leads=*/true)};
        int64_t position = positionOf(read.map, member.dim);
        if (position < 0)
          return {read.tensor, indexInParts(read.map, -1, /*leads=*/false)};
        return {cutView(builder, tensor.getLoc(), read.tensor, position, parts, views),
                indexInParts(read.map, position, /*leads=*/false)};
      }
    return {tensor, map.shiftDims(1)}; // a scalar
  }

  void cloneBody(OpBuilder &at, Block &body, const KeyMember &member, ValueRange values) {
    IRMapping mapping;
    mapping.map(body.getArguments(), values);
    for (Operation &inner : body)
      if (auto index = dyn_cast<linalg::IndexOp>(inner))
        mapping.map(index.getResult(), indexOf(at, inner.getLoc(), index.getDim(), member));
      else
        at.clone(inner, mapping);
  }

  Value indexOf(OpBuilder &at, Location loc, int64_t dim, const KeyMember &member) {
    Value inPart = linalg::IndexOp::create(at, loc, dim + 1);
    if (dim != member.dim)
      return inPart;
    Value size = arith::ConstantIndexOp::create(at, loc, group.keys / parts);
    Value start = arith::MulIOp::create(at, loc, linalg::IndexOp::create(at, loc, 0), size);
    return arith::AddIOp::create(at, loc, start, inPart);
  }

  using Body = llvm::function_ref<Value(OpBuilder &, Location, ValueRange)>;

  /// Reduces over the parts of the inputs, from the start of `op`. The result replaces that of `op`.
  Value combine(Operation *op, ArrayRef<Value> inputs, ArrayRef<AffineMap> indices, Body body) {
    Location loc = op->getLoc();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
    TypedAttr number = constantElement(cast<linalg::LinalgOp>(op).getDpsInits()[0]);
    Value start = arith::ConstantOp::create(builder, loc, number);
    Value init = linalg::FillOp::create(builder, loc, start, empty).getResult(0);
    SmallVector<utils::IteratorType> iterators(type.getRank() + 1, utils::IteratorType::parallel);
    iterators[0] = utils::IteratorType::reduction;
    SmallVector<AffineMap> maps(indices);
    maps.push_back(builder.getMultiDimIdentityMap(type.getRank() + 1).dropResult(0));
    auto reduced = linalg::GenericOp::create(builder, loc, type, inputs, init, maps, iterators,
                                             [&](OpBuilder &at, Location own, ValueRange values) {
                                               linalg::YieldOp::create(at, own, body(at, own, values));
                                             });
    setForm(reduced, tile::Form::partsOfRows);
    return reduced.getResult(0);
  }

  /// Builds the second phase of a sum. It computes the exponentials itself, so that the kernel of a part need not wait
  /// for the maximum of all parts.
  void finish(const KeyMember &member, Value maxima, Value maximum) {
    Value before = resultOf(member), own = partial[before];
    AffineMap ofMaximum = member.maximum.shiftDims(1);
    SmallVector<AffineMap> indices = {identity(own), indexInParts(member.maximum, -1, /*leads=*/true), ofMaximum};
    Value sum = combine(graph.exprs()[member.expr].op, {own, maxima, maximum}, indices,
                        [&](OpBuilder &at, Location loc, ValueRange values) {
                          Value above = arith::SubFOp::create(at, loc, values[2], values[1]);
                          Value divisor = math::ExpOp::create(at, loc, above); // infinity makes the part's term zero
                          Value term = arith::DivFOp::create(at, loc, values[0], divisor);
                          return arith::AddFOp::create(at, loc, values[3], term).getResult();
                        });
    replaceBehind(before, sum);
  }

  void replaceBehind(Value before, Value after) {
    before.replaceUsesWithIf(after, [&](OpOperand &use) { return last->isBeforeInBlock(use.getOwner()); });
  }

  const TensorGraph &graph;
  const KeyGroup &group;
  int64_t parts;
  Operation *last;
  OpBuilder builder;
  llvm::DenseMap<Value, Value> partial; ///< by original result: that of the first phase
  SplitViews views;
};
} // namespace

void tilewright::splitKeys(const TensorGraph &graph, const KeyGroup &group, int64_t parts) {
  KeySplitter(graph, group, parts).run();
}
