// Constant operands of contractions, in the order in which the micro kernel reads them. What tile-store-weights cannot
// have stored like this IREE computes when the program is loaded, as everything that depends on weights alone.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Eligibility.h"
#include "passes/graph/GraphPass.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/plan/forms/PackedCopy.h"
#include "passes/target/MicroKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/Passes.h.inc"

namespace {

/// The packed form of one operand: its dims are those of the operand without the lanes, lane blocks inserted before the
/// reduced ones, and the lanes of a block last. A step of several terms has them side by side behind its lane.
class Packing {
public:
  Packing(const TensorExpr &expr, const ContractionRoles &roles, int64_t width, const MicroKernel &kernel)
      : expr(expr), access(throughCopies(expr.inputs[roles.laneInput])), lane(roles.lane), width(width),
        depth(kernel.depth), stepK(kernel.stepK()) {}

  /// The operand can be packed if its dims are dims of the contraction, or single points.
  bool isPossible() const {
    return llvm::all_of(access.map.getResults(),
                        [](AffineExpr index) { return isa<AffineDimExpr, AffineConstantExpr>(index); }) &&
           sourceOrder().lane >= 0 && (depth == 1 || !sourceOrder().reduced.empty()) && fits();
  }

  Value pack(OpBuilder &builder) const {
    Location loc = expr.op->getLoc();
    Value source = padded(builder, loc);
    auto type = cast<RankedTensorType>(source.getType());
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> from(type.getRank());
    auto walk = [&](int64_t size) {
      shape.push_back(size);
      return builder.getAffineDimExpr(shape.size() - 1);
    };
    auto positions = sourceOrder();
    for (int64_t position : positions.outer)
      from[position] = walk(type.getDimSize(position));
    from[positions.lane] = walk(type.getDimSize(positions.lane) / width) * width;
    for (int64_t position : positions.reduced)
      from[position] = walk(type.getDimSize(position) / termsAt(position)) * termsAt(position);
    from[positions.lane] = from[positions.lane] + walk(width);
    if (depth > 1)
      from[positions.reduced.back()] = from[positions.reduced.back()] + walk(depth);
    linalg::GenericOp packed = copyElements(builder, loc, source, shape, from);
    packed->setAttr(kPackedWeightAttr, builder.getUnitAttr());
    return packed.getResult(0);
  }

  /// Where the contraction finds its element in the packed operand.
  AffineMap map() const {
    SmallVector<AffineExpr> index;
    auto positions = sourceOrder();
    for (int64_t position : positions.outer)
      index.push_back(access.map.getResult(position));
    AffineExpr lanes = access.map.getResult(positions.lane);
    index.push_back(lanes.floorDiv(width));
    for (int64_t position : positions.reduced)
      index.push_back(access.map.getResult(position).floorDiv(termsAt(position)));
    index.push_back(lanes % width);
    if (depth > 1)
      index.push_back(access.map.getResult(positions.reduced.back()) % depth);
    return AffineMap::get(access.map.getNumDims(), 0, index, access.map.getContext());
  }

private:
  struct Positions {
    SmallVector<int64_t> outer, reduced;
    int64_t lane = -1;
  };

  Positions sourceOrder() const {
    Positions positions;
    for (auto [position, index] : llvm::enumerate(access.map.getResults())) {
      auto known = dyn_cast<AffineDimExpr>(index);
      int64_t dim = known ? static_cast<int64_t>(known.getPosition()) : -1;
      if (dim == lane)
        positions.lane = position;
      else
        (llvm::is_contained(expr.reductions, dim) ? positions.reduced : positions.outer).push_back(position);
    }
    return positions;
  }

  /// Terms that lie side by side, along a reduced dim of the operand.
  int64_t termsAt(int64_t position) const { return position == sourceOrder().reduced.back() ? depth : 1; }

  /// Elements along a dim of the operand come in whole blocks of so many.
  int64_t blockAt(int64_t position) const {
    Positions positions = sourceOrder();
    if (position == positions.lane)
      return width;
    return !positions.reduced.empty() && position == positions.reduced.back() ? stepK : 1;
  }

  /// Whether the bytes of whole blocks can be counted.
  bool fits() const {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    for (auto [position, size] : llvm::enumerate(type.getShape())) {
      int64_t whole;
      if (llvm::AddOverflow(size, blockAt(position) - 1, whole))
        return false;
      if (llvm::MulOverflow(bytes, whole, bytes))
        return false;
    }
    return true;
  }

  /// The operand with whole blocks.
  Value padded(OpBuilder &builder, Location loc) const {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    SmallVector<int64_t> shape(type.getShape());
    for (auto [position, size] : llvm::enumerate(shape))
      size = llvm::alignTo(size, blockAt(position));
    return padBehind(builder, loc, access.tensor, shape);
  }

  const TensorExpr &expr;
  TensorAccess access;
  int64_t lane, width, depth, stepK;
};

/// The contraction as a linalg.generic that reads the packed operand instead.
void replaceOperand(const TensorExpr &expr, unsigned input, Value packed, AffineMap map) {
  auto op = cast<linalg::LinalgOp>(expr.op);
  OpBuilder builder(op);
  SmallVector<Value> inputs = op.getDpsInputs();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  inputs[expr.inputs[input].operand] = packed;
  maps[expr.inputs[input].operand] = map;
  auto generic = linalg::GenericOp::create(builder, op.getLoc(), op->getResultTypes(), inputs, op.getDpsInits(), maps,
                                           op.getIteratorTypesArray());
  generic.getRegion().takeBody(op->getRegion(0));
  op->replaceAllUsesWith(generic.getResults());
  op->erase();
}

/// The dims of an operand in another order: dim i of the result is dim order[i] of the source.
Value transpose(OpBuilder &builder, Location loc, Value source, ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> from(order.size());
  for (auto [place, position] : llvm::enumerate(order)) {
    from[position] = builder.getAffineDimExpr(place);
    shape.push_back(type.getDimSize(position));
  }
  return copyElements(builder, loc, source, shape, from).getResult(0);
}

/// The order that brings the lanes of an operand innermost, or nothing where they are, or where it has none alone.
SmallVector<int64_t> orderAlongLanes(const TensorAccess &access, int64_t lane) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(access.tensor.getType()).getShape();
  int64_t lanes = -1, innermost = -1;
  SmallVector<int64_t> order;
  for (auto [position, index] : llvm::enumerate(access.map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (dim && static_cast<int64_t>(dim.getPosition()) == lane)
      lanes = position;
    else
      order.push_back(position);
    if (shape[position] > 1)
      innermost = position;
    if (!dim && !isa<AffineConstantExpr>(index))
      return {};
  }
  if (lanes < 0 || innermost == lanes)
    return {};
  order.push_back(lanes);
  return order;
}

class PackWeights : public GraphPass<impl::PackWeightsBase<PackWeights>> {
  using GraphPass::GraphPass;

  void run(const TensorGraph &graph, const Target &target) override {
    std::vector<bool> atLoad = computedAtLoad(graph);
    // All decisions come before the first rewrite: the graph names ops that rewriting replaces.
    SmallVector<const TensorExpr *> chosen;
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      if (auto roles = blockRoles(graph, atLoad, id); roles && hasConstantLanes(graph, atLoad, id, *roles))
        chosen.push_back(&expr);
    SmallVector<const TensorExpr *> across;
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      if (blockRoles(graph, atLoad, id) && !llvm::is_contained(chosen, &expr))
        across.push_back(&expr);
    for (const TensorExpr *expr : chosen)
      pack(*expr, target);
    for (const TensorExpr *expr : across)
      layAlongLanes(*expr);
  }

  /// What a contraction multiplies with and reads across its lanes, as a tensor of its own that lies along them.
  static void layAlongLanes(const TensorExpr &expr) {
    ContractionRoles roles = *contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
    // By now another op may give it.
    TensorAccess access = expr.inputs[roles.laneInput];
    access.tensor = expr.op->getOperand(access.operand);
    SmallVector<int64_t> order = orderAlongLanes(access, roles.lane);
    if (order.empty())
      return;
    OpBuilder builder(expr.op);
    SmallVector<AffineExpr> index;
    for (int64_t position : order)
      index.push_back(access.map.getResult(position));
    replaceOperand(expr, roles.laneInput, transpose(builder, expr.op->getLoc(), access.tensor, order),
                   AffineMap::get(access.map.getNumDims(), 0, index, builder.getContext()));
  }

  void pack(const TensorExpr &expr, const Target &known) {
    ContractionRoles roles = *contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
    unsigned bytes = cast<RankedTensorType>(expr.op->getResult(0).getType()).getElementTypeBitWidth() / 8;
    std::optional<MicroKernel> kernel =
        chooseMicroKernel(known, productTypes(expr, roles), {/*packedDepth=*/0, /*tiles=*/true}, numerics == "strict");
    if (!kernel)
      return;
    Packing packing(expr, roles, kernel->width(known, bytes), *kernel);
    if (!packing.isPossible())
      return;
    OpBuilder builder(expr.op);
    Value packed = packing.pack(builder);
    AffineMap map = packing.map();
    Value plain = expr.inputs[roles.laneInput].tensor;
    replaceOperand(expr, roles.laneInput, packed, map);
    eraseUnused(plain);
    ++this->packed;
  }
};
} // namespace
} // namespace tilewright
