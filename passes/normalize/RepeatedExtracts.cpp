// Evaluates each index at every point of its loop, with the folders of the ops that compute it (floats, rounding and
// clamps included). So the result is exact however an importer spells the index.
#include "passes/normalize/RepeatedExtracts.h"

#include "passes/support/EraseUnused.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kMostPoints = 1 << 14; ///< points of a loop at which an index is evaluated

/// Evaluates values of a body that depend on the indices of loops only.
class IndexEvaluator {
public:
  explicit IndexEvaluator(linalg::GenericOp op) : body(op.getBlock()) {}

  /// Returns the loops that the value depends on; nothing if it depends on anything else.
  std::optional<llvm::SmallSetVector<int64_t, 2>> loopsOf(Value value) const {
    llvm::SmallSetVector<int64_t, 2> loops;
    return collect(value, loops) ? std::optional(loops) : std::nullopt;
  }

  /// Returns the value where a loop is at a point; null if an op cannot be folded.
  Attribute at(Value value, int64_t point) const {
    Attribute constant;
    if (matchPattern(value, m_Constant(&constant)))
      return constant;
    Operation *made = value.getDefiningOp();
    if (isa<linalg::IndexOp>(made))
      return IntegerAttr::get(IndexType::get(value.getContext()), point);
    SmallVector<Attribute> operands;
    for (Value operand : made->getOperands()) {
      operands.push_back(at(operand, point));
      if (!operands.back())
        return {};
    }
    SmallVector<OpFoldResult> results;
    if (failed(made->fold(operands, results)) || results.size() != 1)
      return {};
    if (auto same = dyn_cast<Value>(results[0])) // one of the operands
      return same == value ? Attribute() : at(same, point);
    return cast<Attribute>(results[0]);
  }

private:
  bool collect(Value value, llvm::SmallSetVector<int64_t, 2> &loops) const {
    if (matchPattern(value, m_Constant()))
      return true;
    Operation *made = value.getDefiningOp();
    if (!made || made->getBlock() != body || made->getNumRegions() != 0 || made->getNumResults() != 1)
      return false;
    if (auto index = dyn_cast<linalg::IndexOp>(made)) {
      loops.insert(index.getDim());
      return true;
    }
    return isPure(made) && llvm::all_of(made->getOperands(), [&](Value operand) { return collect(operand, loops); });
  }

  Block *body;
};

/// How an extraction reads one dim of its tensor.
struct RepeatedDim {
  int64_t loop;  ///< -1: the dim has one point
  int64_t times; ///< points of the loop for each point of the dim
};

/// Returns how an index of the body repeats the points of a dim of `size`; nothing if it does something else.
std::optional<RepeatedDim> repetition(linalg::GenericOp op, Value index, int64_t size) {
  IndexEvaluator evaluator(op);
  auto loops = evaluator.loopsOf(index);
  if (!loops || loops->size() > 1)
    return std::nullopt;
  int64_t points = loops->empty() ? 1 : op.getStaticLoopRanges()[loops->front()];
  if (points > kMostPoints || size == 0 || points % size != 0)
    return std::nullopt;
  int64_t times = points / size;
  for (int64_t point = 0; point < points; ++point) {
    auto value = dyn_cast_or_null<IntegerAttr>(evaluator.at(index, point));
    if (!value || value.getInt() != point / times)
      return std::nullopt;
  }
  return RepeatedDim{loops->empty() ? -1 : loops->front(), times};
}

using RepeatedDims = SmallVector<RepeatedDim>;

/// Returns how an extraction reads its tensor; nothing if it does not only repeat points.
std::optional<RepeatedDims> repetitions(linalg::GenericOp op, tensor::ExtractOp extract) {
  RankedTensorType type = extract.getTensor().getType();
  if (!type.hasStaticShape() || extract.getTensor().getParentBlock() == op.getBlock())
    return std::nullopt;
  RepeatedDims dims;
  for (auto [index, size] : llvm::zip(extract.getIndices(), type.getShape())) {
    std::optional<RepeatedDim> dim = repetition(op, index, size);
    bool isTaken = dim && dim->loop >= 0 &&
                   llvm::any_of(dims, [&](const RepeatedDim &other) { return other.loop == dim->loop; });
    if (!dim || isTaken)
      return std::nullopt;
    dims.push_back(*dim);
  }
  return dims;
}

/// Returns the tensor with the points of its dims repeated.
Value repeated(OpBuilder &builder, Location loc, Value tensor, ArrayRef<RepeatedDim> dims) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> apart, shape;
  SmallVector<AffineExpr> read;
  SmallVector<ReassociationIndices> groups;
  for (auto [dim, size] : llvm::zip(dims, type.getShape())) {
    read.push_back(builder.getAffineDimExpr(apart.size()));
    groups.push_back({static_cast<int64_t>(apart.size())});
    apart.push_back(size);
    if (dim.times == 1)
      continue;
    groups.back().push_back(apart.size());
    apart.push_back(dim.times);
  }
  if (apart.size() == dims.size())
    return tensor;
  Value into = tensor::EmptyOp::create(builder, loc, apart, type.getElementType());
  SmallVector<AffineMap> maps{AffineMap::get(apart.size(), 0, read, builder.getContext()),
                              builder.getMultiDimIdentityMap(apart.size())};
  SmallVector<utils::IteratorType> types(apart.size(), utils::IteratorType::parallel);
  auto copy = [](OpBuilder &body, Location at, ValueRange elements) { linalg::YieldOp::create(body, at, elements[0]); };
  Value broadcast =
      linalg::GenericOp::create(builder, loc, TypeRange(into.getType()), tensor, into, maps, types, copy).getResult(0);
  return tensor::CollapseShapeOp::create(builder, loc, broadcast, groups);
}

/// Replaces the op by one that reads the extracted elements as operands.
void rewrite(linalg::GenericOp op, MutableArrayRef<std::pair<tensor::ExtractOp, RepeatedDims>> extracts) {
  OpBuilder builder(op);
  SmallVector<Value> inputs(op.getDpsInputs());
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap init = maps.pop_back_val();
  for (auto &[extract, dims] : extracts) {
    inputs.push_back(repeated(builder, op.getLoc(), extract.getTensor(), dims));
    SmallVector<AffineExpr> index = llvm::map_to_vector(dims, [&](const RepeatedDim &dim) {
      return dim.loop < 0 ? builder.getAffineConstantExpr(0) : builder.getAffineDimExpr(dim.loop);
    });
    maps.push_back(AffineMap::get(op.getNumLoops(), 0, index, builder.getContext()));
  }
  maps.push_back(init);
  auto direct = linalg::GenericOp::create(builder, op.getLoc(), op.getResultTypes(), inputs, op.getDpsInits(), maps,
                                          op.getIteratorTypesArray());
  direct->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  direct.getRegion().takeBody(op.getRegion());
  Block &body = *direct.getBlock();
  for (auto &[extract, dims] : extracts) {
    Value element = body.insertArgument(body.getNumArguments() - 1, extract.getType(), extract.getLoc());
    extract.getResult().replaceAllUsesWith(element);
    extract->erase();
  }
  eraseUnused(body);
  op->replaceAllUsesWith(direct);
  op.erase();
}
} // namespace

void tilewright::readRepeatedExtracts(func::FuncOp function) {
  function.walk([&](linalg::GenericOp op) {
    bool isElementwise = op.hasPureTensorSemantics() && op.getNumParallelLoops() == op.getNumLoops() &&
                         op.getNumDpsInits() == 1 && !op.hasDynamicShape();
    if (!isElementwise)
      return;
    SmallVector<std::pair<tensor::ExtractOp, RepeatedDims>> extracts;
    for (auto extract : op.getBlock()->getOps<tensor::ExtractOp>())
      if (std::optional<RepeatedDims> dims = repetitions(op, extract))
        extracts.emplace_back(extract, std::move(*dims));
    if (!extracts.empty())
      rewrite(op, extracts);
  });
}
