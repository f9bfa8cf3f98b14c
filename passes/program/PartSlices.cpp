// Buffer shapes get the padding that contractions on GPUs need (BufferLines.h); on processors the vectorised dim is
// moved to the end so that lanes are contiguous.
#include "passes/program/PartSlices.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/layout/BufferLines.h"
#include "passes/layout/BufferedSlice.h"
#include "passes/graph/Contraction.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

int64_t PartSlices::placeOfIndex(ExprOp root, AffineExpr index) {
  auto dim = dyn_cast<AffineDimExpr>(index);
  return dim ? placeOf(root)[dim.getPosition()] : -1;
}

AffineExpr PartSlices::offsetOf(int64_t dim) {
  AffineExpr expr = getAffineDimExpr(dim, context());
  return hasOffset(dim) ? expr - getAffineSymbolExpr(dim, context()) : expr;
}

bool PartSlices::contractsOnGpu() {
  return subprogram->hasAttr(kThreadsAttr) && llvm::any_of(subprogram.getBody().getOps<ExprOp>(), [](ExprOp root) {
           return root.getMicroKernel().has_value();
         });
}

Value PartSlices::bindingOf(Value argument) { return bindings[cast<BlockArgument>(argument).getArgNumber()]; }

SmallVector<unsigned> PartSlices::escapingAs(Value tensor) {
  SmallVector<unsigned> outputs;
  auto yield = cast<YieldOp>(subprogram.getBody().front().getTerminator());
  for (auto [i, value] : llvm::enumerate(yield.getValues()))
    if (value == tensor)
      outputs.push_back(i);
  return outputs;
}

// --- buffers --------------------------------------------------------------------------------------------------------

Value PartSlices::allocate(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, Type element) {
  return AllocOp::create(builder, loc, SliceType::get(context(), shape, element, Space::block), IntegerAttr());
}

namespace {
/// How contractions read a buffer: not at all, a few lines at a time, or as many lines as a warp has lanes.
enum class InPlace { none, fewLines, linesOfLanes };
} // namespace

static InPlace readingOf(ExprOp contraction, unsigned input) {
  FailureOr<TensorExpr> expr = describe(contraction);
  if (failed(expr) || expr->inputs.size() != 2)
    return InPlace::fewLines;
  std::optional<ContractionRoles> roles = contractionRoles(*expr, expr->inputs[0].map, expr->inputs[1].map);
  AffineMap map = expr->inputs[input].map;
  bool alongK = llvm::any_of(expr->reductions, [&](int64_t dim) {
    return map.getNumResults() > 0 && map.getResults().back().isFunctionOfDim(dim);
  });
  return roles && roles->rhsInput == input && alongK ? InPlace::linesOfLanes : InPlace::fewLines;
}

static InPlace readingInPlace(Value tensor) {
  InPlace reading = InPlace::none;
  for (OpOperand &use : tensor.getUses()) {
    if (auto connect = dyn_cast<ConnectOp>(use.getOwner()))
      reading = std::max(reading, readingInPlace(connect.getResult()));
    else if (auto root = dyn_cast<ExprOp>(use.getOwner()); root && root.getMicroKernel())
      reading = std::max(reading, readingOf(root, use.getOperandNumber()));
  }
  return reading;
}

template <typename T> SmallVector<T> PartSlices::lanesLast(Value tensor, ArrayRef<T> index, ArrayRef<int64_t> places) {
  SmallVector<T> inOrder(index);
  auto *lane = llvm::find(places, static_cast<int64_t>(subprogram.getVector()));
  auto root = tensor.getDefiningOp<ExprOp>();
  bool meetsContraction = readingInPlace(tensor) != InPlace::none || (root && root.getMicroKernel());
  if (lane != places.end() && !meetsContraction && !subprogram->hasAttr(kThreadsAttr))
    std::rotate(inOrder.begin() + (lane - places.begin()), inOrder.begin() + (lane - places.begin()) + 1,
                inOrder.end());
  return inOrder;
}

SmallVector<int64_t> PartSlices::resultPlaces(ExprOp root, unsigned result) {
  return llvm::map_to_vector(root.getResultMap(result).getResults(),
                             [&](AffineExpr index) { return placeOfIndex(root, index); });
}

SmallVector<int64_t> PartSlices::tileShape(ExprOp root, unsigned result) {
  SmallVector<int64_t> places = resultPlaces(root, result),
                       shape = llvm::map_to_vector(places, [&](int64_t place) { return place < 0 ? 1 : tiles[place]; });
  return lanesLast<int64_t>(root.getResult(result), shape, places);
}

static bool followsContraction(ExprOp root) {
  return llvm::any_of(root.getInputs(), [](Value input) {
    while (auto connect = input.getDefiningOp<ConnectOp>())
      input = connect.getValue();
    auto producer = input.getDefiningOp<ExprOp>();
    return producer && producer.getMicroKernel();
  });
}

Value PartSlices::allocateTile(OpBuilder &builder, Value tensor) {
  auto root = tensor.getDefiningOp<ExprOp>();
  SmallVector<int64_t> shape = tileShape(root, cast<OpResult>(tensor).getResultNumber());
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  InPlace reading = readingInPlace(tensor);
  bool isSum = root.getMicroKernel() || (!root.isReduction() && followsContraction(root));
  if (subprogram->hasAttr(kThreadsAttr) && !shape.empty()) {
    int64_t &line = shape.back(), bytes = elementBytes(element);
    if (reading != InPlace::none)
      line = operandLine(line, bytes, costs.gpu.wholeStepBytes, reading == InPlace::linesOfLanes);
    else if (isSum)
      line = sumLine(line, bytes);
  }
  return allocate(builder, root.getLoc(), shape, element);
}

Value PartSlices::allocateSlice(OpBuilder &builder, const SpaceAccess &access) {
  Type element = cast<RankedTensorType>(access.tensor.getType()).getElementType();
  SmallVector<int64_t> shape = bufferedSliceShape(access.map, extents, tiles, elementBytes(element), contractsOnGpu());
  shape = lanesLast<int64_t>(access.tensor, shape, dimsAsTheyLie(access.map, extents));
  return allocate(builder, subprogram.getLoc(), shape, element);
}

// --- indices --------------------------------------------------------------------------------------------------------

AffineMap PartSlices::toNest(ArrayRef<AffineExpr> exprs, const Nest &nest) {
  SmallVector<AffineExpr> dims(extents.size(), getAffineConstantExpr(0, context())), symbols(dims);
  for (auto [position, dim] : llvm::enumerate(nest.dims)) {
    dims[dim] = getAffineDimExpr(position, context());
    symbols[dim] = getAffineSymbolExpr(position, context());
  }
  return AffineMap::get(extents.size(), extents.size(), exprs, context())
      .replaceDimsAndSymbols(dims, symbols, nest.dims.size(), nest.dims.size());
}

IntegerSet PartSlices::toNest(IntegerSet set, const Nest &nest) {
  SmallVector<AffineExpr> dims(extents.size(), getAffineConstantExpr(0, context()));
  for (auto [position, dim] : llvm::enumerate(nest.dims))
    dims[dim] = getAffineDimExpr(position, context());
  return set.replaceDimsAndSymbols(dims, {}, nest.dims.size(), nest.dims.size());
}

AffineMap PartSlices::stagedIndex(const SpaceAccess &access, const Nest &nest) {
  SmallVector<AffineExpr> exprs;
  SmallVector<int64_t> places = dimsAsTheyLie(access.map, extents);
  for (int64_t place : places)
    exprs.push_back(offsetOf(place));
  return toNest(lanesLast<AffineExpr>(access.tensor, exprs, places), nest);
}

AffineMap PartSlices::bufferIndex(Value tensor, AffineMap map, const Nest &nest) {
  auto root = tensor.getDefiningOp<ExprOp>();
  SmallVector<int64_t> places = resultPlaces(root, cast<OpResult>(tensor).getResultNumber());
  SmallVector<AffineExpr> exprs;
  for (auto [index, place] : llvm::zip(map.getResults(), places))
    exprs.push_back(place >= 0 && hasOffset(place) ? index - getAffineSymbolExpr(place, context()) : index);
  return toNest(lanesLast<AffineExpr>(tensor, exprs, places), nest);
}

SmallVector<AffineExpr> PartSlices::resultIndex(ExprOp root, unsigned result, bool inBuffer) {
  SmallVector<int64_t> places = resultPlaces(root, result);
  SmallVector<AffineExpr> exprs;
  for (int64_t place : places)
    exprs.push_back(place < 0  ? getAffineConstantExpr(0, context())
                    : inBuffer ? offsetOf(place)
                               : getAffineDimExpr(place, context()));
  return inBuffer ? lanesLast<AffineExpr>(root.getResult(result), exprs, places) : exprs;
}

Nest PartSlices::rowsOf(ExprOp root, unsigned result) {
  Nest rows;
  for (AffineExpr expr : root.getResultMap(result).getResults())
    if (int64_t place = placeOfIndex(root, expr); place >= 0)
      rows.dims.push_back(place);
  llvm::sort(rows.dims);
  return rows;
}
