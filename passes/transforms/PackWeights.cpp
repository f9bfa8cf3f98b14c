// Constant operands of contractions, in the order in which the micro kernel reads them. What tile-store-weights cannot
// have stored like this IREE computes when the program is loaded, as everything that depends on weights alone.
#include "passes/Passes.h"
#include "passes/analysis/Contraction.h"
#include "passes/plan/ConstantOperand.h"
#include "passes/plan/Eligibility.h"
#include "passes/plan/ParameterRecipe.h"
#include "passes/target/MicroKernel.h"
#include "passes/target/Target.h"

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
/// reduced ones, and the lanes of a block last.
class Packing {
public:
  Packing(const TensorExpr &expr, const ContractionRoles &roles, int64_t width)
      : expr(expr), access(throughCopies(expr.inputs[roles.laneInput])), lane(roles.lane), width(width) {}

  /// The operand can be packed if its dims are dims of the contraction, or single points.
  bool isPossible() const {
    return llvm::all_of(access.map.getResults(),
                        [](AffineExpr index) { return isa<AffineDimExpr, AffineConstantExpr>(index); }) &&
           sourceOrder().lane >= 0 && fits();
  }

  Value pack(OpBuilder &builder) const {
    Location loc = expr.op->getLoc();
    Value source = padded(builder, loc);
    auto type = cast<RankedTensorType>(source.getType());
    SmallVector<int64_t> shape;
    SmallVector<AffineExpr> from(type.getRank());
    unsigned rank = type.getRank() + 1;
    auto place = [&](int64_t position) {
      from[position] = builder.getAffineDimExpr(shape.size());
      shape.push_back(type.getDimSize(position));
    };
    auto positions = sourceOrder();
    for (int64_t position : positions.outer)
      place(position);
    AffineExpr blocks = builder.getAffineDimExpr(shape.size());
    shape.push_back(type.getDimSize(positions.lane) / width);
    for (int64_t position : positions.reduced)
      place(position);
    from[positions.lane] = blocks * width + builder.getAffineDimExpr(shape.size());
    shape.push_back(width);
    Value init = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    SmallVector<AffineMap> maps = {AffineMap::get(rank, 0, from, builder.getContext()),
                                   builder.getMultiDimIdentityMap(rank)};
    auto packed = linalg::GenericOp::create(builder, loc, init.getType(), source, init, maps, loops,
                                            [](OpBuilder &body, Location at, ValueRange elements) {
                                              linalg::YieldOp::create(body, at, elements[0]);
                                            });
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
      index.push_back(access.map.getResult(position));
    index.push_back(lanes % width);
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

  /// Whether the bytes of whole blocks of lanes can be counted.
  bool fits() const {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8), lanes = sourceOrder().lane;
    for (auto [position, size] : llvm::enumerate(type.getShape())) {
      int64_t whole = size;
      if (static_cast<int64_t>(position) == lanes && llvm::AddOverflow(size, width - 1, whole))
        return false;
      if (llvm::MulOverflow(bytes, whole, bytes))
        return false;
    }
    return true;
  }

  /// The operand with whole blocks of lanes.
  Value padded(OpBuilder &builder, Location loc) const {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    int64_t position = sourceOrder().lane, size = type.getDimSize(position);
    if (size % width == 0)
      return access.tensor;
    SmallVector<int64_t> shape(type.getShape());
    shape[position] = llvm::alignTo(size, width);
    SmallVector<OpFoldResult> low(type.getRank(), builder.getIndexAttr(0)), high(low);
    high[position] = builder.getIndexAttr(shape[position] - size);
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type.getElementType()));
    return tensor::PadOp::create(builder, loc, type.clone(shape), access.tensor, low, high, zero);
  }

  const TensorExpr &expr;
  TensorAccess access;
  int64_t lane, width;
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

class PackWeights : public impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;

  void runOnOperation() override {
    llvm::Expected<Target> known = lookupTarget(target);
    if (!known) {
      getOperation().emitError(llvm::toString(known.takeError()));
      return signalPassFailure();
    }
    if (!getOperation().getBody().hasOneBlock())
      return;
    TensorGraph graph = TensorGraph::build(getOperation().getBody().front());
    std::vector<bool> atLoad = computedAtLoad(graph);
    // All decisions come before the first rewrite: the graph names ops that rewriting replaces.
    SmallVector<const TensorExpr *> chosen;
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      if (auto roles = blockRoles(graph, atLoad, id); roles && hasConstantLanes(graph, atLoad, id, *roles))
        chosen.push_back(&expr);
    for (const TensorExpr *expr : chosen)
      pack(*expr, *known);
  }

  void pack(const TensorExpr &expr, const Target &known) {
    ContractionRoles roles = *contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
    unsigned bytes = cast<RankedTensorType>(expr.op->getResult(0).getType()).getElementTypeBitWidth() / 8;
    Packing packing(expr, roles, registerBlock(known.vectorRegisters).vectors * known.vectorBytes / bytes);
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
