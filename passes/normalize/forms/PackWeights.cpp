// Packs operands of contractions in the order in which the micro kernel reads them: constant ones, and those that are
// computed if many rows read them. Packed weights that tile-store-weights cannot store are computed by IREE when the
// program is loaded, like everything that depends on weights only.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/Eligibility.h"
#include "passes/graph/GraphPass.h"
#include "passes/graph/LoopBodies.h"
#include "passes/graph/MovementSource.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/normalize/PackedCopy.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/MicroKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/Passes.h.inc"

/// Returns an input of an op as it is now; `expr` was described before earlier rewrites replaced ops.
static TensorAccess currentAccess(const TensorExpr &expr, unsigned input) {
  TensorAccess access = expr.inputs[input];
  access.tensor = expr.op->getOperand(access.operand);
  return access;
}

namespace {

/// The packed form of an rhs. Its dims are the operand's parallel dims except N, then the blocks of lanes, then the
/// reduced dims (K), and last the lanes of a block. If a step of the micro kernel covers several elements of K, these
/// are a further dim behind the lanes.
class Packing {
public:
  Packing(const TensorExpr &expr, const ContractionRoles &roles, int64_t width, const MicroKernel &kernel)
      : expr(expr), access(throughCopies(currentAccess(expr, roles.rhsInput))), n(roles.n), width(width),
        depth(kernel.depth), stepK(kernel.stepK()) {}

  /// Returns true if the operand can be packed: each of its indices is a dim of the contraction or a constant.
  bool isPossible() const {
    return llvm::all_of(access.map.getResults(),
                        [](AffineExpr index) { return isa<AffineDimExpr, AffineConstantExpr>(index); }) &&
           sourceOrder().n >= 0 && (depth == 1 || !sourceOrder().reduced.empty()) && fits();
  }

  /// Returns true if a computed rhs, which has to be transposed anyway, should be packed by that. Each tile of rows
  /// would copy its panels otherwise (layout/Blocking.h). Copies widen narrower elements, so those pay.
  bool paysForComputed(const MicroKernel &kernel, const Target &target) const {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    Positions positions = sourceOrder();
    bool readsAll = llvm::all_of(positions.outer, [&](int64_t position) {
      return isa<AffineDimExpr>(access.map.getResult(position)) || type.getDimSize(position) == 1;
    });
    if (positions.reduced.size() != 1 || !readsAll)
      return false;
    int64_t rows = 1, columns = type.getDimSize(positions.n), bytes = tile::elementBytes(type.getElementType());
    for (auto [dim, size] : llvm::enumerate(expr.domain))
      rows *= access.map.isFunctionOfDim(dim) ? 1 : size;
    bool isPlain = kernel.unit == StepUnit::vector && depth == 1 && bytes == kLaneBytes;
    int64_t matrixBytes = columns * type.getDimSize(positions.reduced[0]) * bytes;
    const CpuCosts &costs = target.costs.cpu;
    return isPlain && width * bytes <= kCpuLineBytes && rows >= costs.packedRows && columns > width &&
           columns % width == 0 &&
           matrixBytes * costs.partsOfCache <= target.level(tile::Space::block).capacityBytes;
  }

  Value pack(OpBuilder &builder, bool isWeight) const {
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
    from[positions.n] = walk(type.getDimSize(positions.n) / width) * width;
    for (int64_t position : positions.reduced)
      from[position] = walk(type.getDimSize(position) / contiguousK(position)) * contiguousK(position);
    from[positions.n] = from[positions.n] + walk(width);
    if (depth > 1)
      from[positions.reduced.back()] = from[positions.reduced.back()] + walk(depth);
    linalg::GenericOp packed = copyElements(builder, loc, source, shape, from);
    if (isWeight)
      packed->setAttr(kPackedWeightAttr, builder.getUnitAttr());
    else if (linalg::GenericOp known = earlierCopy(packed)) {
      Operation *empty = packed.getOutputs()[0].getDefiningOp();
      packed->erase();
      empty->erase();
      return known.getResult(0);
    }
    return packed.getResult(0);
  }

  /// Returns the map with which the contraction reads the packed operand.
  AffineMap map() const {
    SmallVector<AffineExpr> index;
    auto positions = sourceOrder();
    for (int64_t position : positions.outer)
      index.push_back(access.map.getResult(position));
    AffineExpr along = access.map.getResult(positions.n);
    index.push_back(along.floorDiv(width));
    for (int64_t position : positions.reduced)
      index.push_back(access.map.getResult(position).floorDiv(contiguousK(position)));
    index.push_back(along % width);
    if (depth > 1)
      index.push_back(access.map.getResult(positions.reduced.back()) % depth);
    return AffineMap::get(access.map.getNumDims(), 0, index, access.map.getContext());
  }

private:
  struct Positions {
    SmallVector<int64_t> outer, reduced;
    int64_t n = -1;
  };

  Positions sourceOrder() const {
    Positions positions;
    for (auto [position, index] : llvm::enumerate(access.map.getResults())) {
      auto known = dyn_cast<AffineDimExpr>(index);
      int64_t dim = known ? static_cast<int64_t>(known.getPosition()) : -1;
      if (dim == n)
        positions.n = position;
      else
        (llvm::is_contained(expr.reductions, dim) ? positions.reduced : positions.outer).push_back(position);
    }
    return positions;
  }

  /// Returns the same copy for an earlier contraction, or nothing.
  static linalg::GenericOp earlierCopy(linalg::GenericOp packed) {
    for (Operation *user : packed.getDpsInputs()[0].getUsers())
      if (auto other = dyn_cast<linalg::GenericOp>(user);
          other && other != packed && other->getBlock() == packed->getBlock() && other->isBeforeInBlock(packed) &&
          other.getResultTypes() == packed.getResultTypes() && other.getIndexingMaps() == packed.getIndexingMaps() &&
          OperationEquivalence::isRegionEquivalentTo(&other.getRegion(), &packed.getRegion(),
                                                     OperationEquivalence::IgnoreLocations))
        return other;
    return nullptr;
  }

  /// Returns how many elements along a reduced dim of the operand are contiguous behind their lane.
  int64_t contiguousK(int64_t position) const { return position == sourceOrder().reduced.back() ? depth : 1; }

  /// Returns the block size to whose multiple a dim of the operand is padded.
  int64_t blockAt(int64_t position) const {
    Positions positions = sourceOrder();
    if (position == positions.n)
      return width;
    return !positions.reduced.empty() && position == positions.reduced.back() ? stepK : 1;
  }

  /// Returns true if the number of bytes of the padded operand does not overflow.
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

  /// Returns the operand padded to whole blocks.
  Value padded(OpBuilder &builder, Location loc) const {
    auto type = cast<RankedTensorType>(access.tensor.getType());
    SmallVector<int64_t> shape(type.getShape());
    for (auto [position, size] : llvm::enumerate(shape))
      size = llvm::alignTo(size, blockAt(position));
    return padBehind(builder, loc, access.tensor, shape);
  }

  const TensorExpr &expr;
  TensorAccess access;
  int64_t n, width;    ///< the N dim, and the lanes of a block
  int64_t depth;       ///< contiguous elements of K behind each lane
  int64_t stepK;       ///< elements of K in a step of the micro kernel
};

/// Replaces the contraction by a linalg.generic that reads the packed operand.
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
  generic->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->replaceAllUsesWith(generic.getResults());
  op->erase();
}

/// Returns a builder of ops that an op reads and that depend on a tensor alone: in front of the op, or outside its
/// loop.
OpBuilder builderFor(Operation *reader, Value tensor) {
  OpBuilder builder(reader);
  if (Operation *made = outsideLoops(tensor, reader))
    builder.setInsertionPointAfter(made);
  return builder;
}

/// Transposes an operand: dim i of the result is dim order[i] of the source.
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

/// Returns the order of dims that makes the lanes of an operand innermost. It is empty if they already are, or if no
/// dim of the operand is the lanes.
SmallVector<int64_t> orderAlongLanes(const TensorAccess &access, int64_t n) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(access.tensor.getType()).getShape();
  int64_t lanes = -1, innermost = -1;
  SmallVector<int64_t> order;
  for (auto [position, index] : llvm::enumerate(access.map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (dim && static_cast<int64_t>(dim.getPosition()) == n)
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
    std::vector<bool> atLoad = computedAtLoad(graph, /*repeatsWeights=*/true);
    // All decisions come before the first rewrite, because rewriting replaces ops of the graph.
    SmallVector<const TensorExpr *> chosen;
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      if (auto roles = blockRoles(graph, atLoad, id); roles && hasConstantLanes(graph, atLoad, id, *roles))
        chosen.push_back(&expr);
    SmallVector<std::pair<const TensorExpr *, bool>> computed; // true: rhs lies across the lanes
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      if (auto roles = blockRoles(graph, atLoad, id); roles && !llvm::is_contained(chosen, &expr))
        computed.push_back({&expr, liesAcrossLanes(graph, expr, *roles)});
    for (const TensorExpr *expr : chosen)
      pack(*expr, target, /*isComputed=*/false);
    for (auto [expr, isAcross] : computed)
      if (!isAcross || !pack(*expr, target, /*isComputed=*/true))
        layAlongLanes(*expr);
  }

  /// Returns true if rhs, or what movement makes it of, is not contiguous along the lanes.
  static bool liesAcrossLanes(const TensorGraph &graph, const TensorExpr &expr, const ContractionRoles &roles) {
    auto any = [](unsigned movement) { return true; };
    return contiguousDim(accessBehind(graph, expr, expr.inputs[roles.rhsInput], any)) != roles.n;
  }

  /// Transposes an rhs that is not contiguous along its lanes.
  static void layAlongLanes(const TensorExpr &expr) {
    ContractionRoles roles = *contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
    TensorAccess access = currentAccess(expr, roles.rhsInput);
    SmallVector<int64_t> order = orderAlongLanes(access, roles.n);
    if (order.empty())
      return;
    OpBuilder builder = builderFor(expr.op, access.tensor);
    SmallVector<AffineExpr> index;
    for (int64_t position : order)
      index.push_back(access.map.getResult(position));
    replaceOperand(expr, roles.rhsInput, transpose(builder, expr.op->getLoc(), access.tensor, order),
                   AffineMap::get(access.map.getNumDims(), 0, index, builder.getContext()));
  }

  /// Packs the rhs of a contraction. Returns false if that is impossible, or does not pay for a computed rhs.
  bool pack(const TensorExpr &expr, const Target &known, bool isComputed) {
    ContractionRoles roles = *contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
    unsigned bytes = cast<RankedTensorType>(expr.op->getResult(0).getType()).getElementTypeBitWidth() / 8;
    NumericsMode mode = numerics == "strict" ? NumericsMode::strict : NumericsMode::standard;
    std::optional<MicroKernel> kernel =
        chooseMicroKernel(known, productTypes(expr, roles), {/*packedDepth=*/0, /*tiles=*/true}, mode);
    if (!kernel)
      return false;
    Packing packing(expr, roles, kernel->width(known, bytes), *kernel);
    if (!packing.isPossible() || (isComputed && !packing.paysForComputed(*kernel, known)))
      return false;
    Value plain = currentAccess(expr, roles.rhsInput).tensor;
    OpBuilder builder = builderFor(expr.op, plain);
    Value packed = packing.pack(builder, /*isWeight=*/!isComputed);
    AffineMap map = packing.map();
    replaceOperand(expr, roles.rhsInput, packed, map);
    eraseUnusedProducers(plain);
    this->packed += isComputed ? 0 : 1;
    return true;
  }
};
} // namespace
} // namespace tilewright
