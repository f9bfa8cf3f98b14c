// Verifiers of level 2: subprograms, expressions and the edges between them.
#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileVerifiers.h"

#include "mlir/IR/AffineExprVisitor.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace tilewright::tile;

namespace {
struct Interval {
  int64_t low, high;
};

/// Returns the exact range of a linear expression over 0 <= d_i < extents[i], or nothing for an expression with mod or
/// division: its interval would only be a bound, which must not turn a valid program into an error.
std::optional<Interval> linearRange(AffineExpr expr, ArrayRef<int64_t> extents) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Interval{constant.getValue(), constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return Interval{0, extents[dim.getPosition()] - 1};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<Interval> lhs = linearRange(binary.getLHS(), extents), rhs = linearRange(binary.getRHS(), extents);
  if (!lhs || !rhs)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return Interval{lhs->low + rhs->low, lhs->high + rhs->high};
  if (expr.getKind() == AffineExprKind::Mul && rhs->low == rhs->high) {
    int64_t a = lhs->low * rhs->low, b = lhs->high * rhs->low;
    return Interval{std::min(a, b), std::max(a, b)};
  }
  return std::nullopt;
}
} // namespace

LogicalResult SubprogramOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("S1: block arguments must match the operands");
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getValues().getTypes() != getResultTypes())
    return emitOpError("S2: the body must yield the results");
  ArrayRef<int64_t> extents = getExtents(), tiles = getTiles();
  if (extents.size() != tiles.size())
    return emitOpError("S3: expected one tile per extent");
  for (auto [extent, tile] : llvm::zip(extents, tiles))
    if (extent <= 0 || tile <= 0 || tile > extent)
      return emitOpError("S3: tile ") << tile << " does not fit extent " << extent;
  int64_t rank = extents.size();
  int64_t vector = getVector();
  if (!distinctDims(getGrid(), rank) || vector < -1 || vector >= rank)
    return emitOpError("S4: grid and vector must name dims of the space, without repetition");
  int64_t walked = -1;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (llvm::is_contained(getGrid(), dim) || tiles[dim] == extents[dim])
      continue;
    if (walked >= 0)
      return emitOpError("S5: dim ") << dim << " is not in the grid, and dim " << walked
                                     << " is walked in blocks, so its tile must be its extent";
    walked = dim;
  }
  if (!distinctDims(getStreamed().value_or(ArrayRef<int64_t>()), getNumResults()))
    return emitOpError("S7: streamed must name results, without repetition");
  if (auto staged = (*this)->getAttrOfType<ArrayAttr>(kStagedAttr); staged && staged.size() != getInputs().size())
    return emitOpError("'") << kStagedAttr << "' has " << staged.size() << " lifetimes for " << getInputs().size()
                               << " inputs";
  return success();
}

LogicalResult SubprogramOp::verifyRegions() {
  bool kept = getNumerics() && getNumerics()->getRoundings() == Roundings::kept;
  for (Operation &op : getBody().front()) {
    if (!isa<ExprOp, ConnectOp, YieldOp>(op))
      return op.emitOpError("S6: a subprogram holds tile.expr, tile.connect and its terminator only");
    if (auto connect = dyn_cast<ConnectOp>(op); connect && connect.getUnrounded() && kept)
      return connect.emitOpError("S8: an unrounded edge where the subprogram's numerics keep roundings");
  }
  return success();
}

AffineMap ExprOp::getInputMap(unsigned i) { return cast<AffineMapAttr>(getMaps()[i]).getValue(); }
AffineMap ExprOp::getResultMap(unsigned i) { return cast<AffineMapAttr>(getResultMaps()[i]).getValue(); }

IntegerSet ExprOp::getGuard(unsigned i) {
  auto set = dyn_cast<IntegerSetAttr>(getGuards()[i]);
  return set ? set.getValue() : IntegerSet();
}

static LogicalResult verifyInput(ExprOp op, unsigned i) {
  ArrayRef<int64_t> domain = op.getDomain();
  auto type = cast<RankedTensorType>(op.getInputs()[i].getType());
  AffineMap map = op.getInputMap(i);
  IntegerSet guard = op.getGuard(i);
  if (map.getNumDims() != domain.size() || map.getNumSymbols() != 0 || map.getNumResults() != type.getRank() ||
      (guard && (guard.getNumDims() != domain.size() || guard.getNumSymbols() != 0)))
    return op.emitOpError("E1: map or guard of input ") << i << " does not fit the domain and the input's rank";
  if (guard)
    return success();
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    std::optional<Interval> range = linearRange(expr, domain);
    if (range && (range->low < 0 || range->high >= type.getDimSize(dim)))
      return op.emitOpError("E2: input ") << i << " is read at [" << range->low << ", " << range->high << "] along dim "
                                          << dim << " of size " << type.getDimSize(dim);
  }
  return success();
}

static LogicalResult verifyResult(ExprOp op, unsigned i) {
  ArrayRef<int64_t> domain = op.getDomain();
  auto type = cast<RankedTensorType>(op.getResult(i).getType());
  AffineMap map = op.getResultMap(i);
  if (map.getNumDims() != domain.size() || map.getNumResults() != type.getRank())
    return op.emitOpError("E3: result map ") << i << " does not fit the domain and the result's rank";
  llvm::SmallBitVector used(domain.size());
  for (auto [expr, size] : llvm::zip(map.getResults(), type.getShape())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    auto zero = dyn_cast<AffineConstantExpr>(expr);
    bool fits = dim ? size == domain[dim.getPosition()] && !used.test(dim.getPosition())
                    : zero && zero.getValue() == 0 && size == 1;
    if (!fits)
      return op.emitOpError("E3: result map ") << i << " is not a projected permutation with the result's shape";
    if (dim)
      used.set(dim.getPosition());
  }
  for (size_t dim = 0; dim < domain.size(); ++dim)
    if (used.test(dim) == llvm::is_contained(op.getReductions(), static_cast<int64_t>(dim)) &&
        !(domain[dim] == 1 && !used.test(dim)))
      return op.emitOpError("E3: result map ") << i << " must use every parallel dim and no reduced one";
  return success();
}

/// Returns true if `accumulator` can accumulate values of `type`: it is the same type, or a wider float.
static bool accumulates(Type accumulator, Type type) {
  return accumulator == type || (isa<FloatType>(accumulator) && isa<FloatType>(type) &&
                                 accumulator.getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth());
}

static LogicalResult verifyBody(ExprOp op) {
  SmallVector<Type> elements, yielded;
  Block &body = op.getBodyBlock();
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    bool isTable = i < body.getNumArguments() && body.getArgument(i).getType() == input.getType();
    elements.push_back(isTable ? input.getType() : getElementTypeOrSelf(input.getType()));
  }
  for (Type type : op.getResultTypes())
    yielded.push_back(getElementTypeOrSelf(type));
  TypeRange arguments(body.getArgumentTypes());
  if (op.isReduction() && arguments.size() == elements.size() + yielded.size())
    for (auto [type, accumulator] : llvm::zip(yielded, arguments.take_back(yielded.size())))
      type = accumulates(accumulator, type) ? accumulator : type;
  if (op.isReduction())
    llvm::append_range(elements, yielded);
  if (arguments != TypeRange(elements))
    return op.emitOpError("E5: body arguments must be the input elements or tables, then the accumulators");
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || yield.getValues().getTypes() != TypeRange(yielded))
    return op.emitOpError("E5: the body must yield one element per result");
  return success();
}

LogicalResult ExprOp::verify() {
  ArrayRef<int64_t> domain = getDomain();
  if (llvm::any_of(domain, [](int64_t extent) { return extent <= 0; }) || !distinctDims(getReductions(), domain.size()))
    return emitOpError("E1: the domain must be positive and the reduced dims among its dims");
  if (getMaps().size() != getInputs().size() || getGuards().size() != getInputs().size())
    return emitOpError("E1: expected one map and one guard or unit per input");
  if (getResultMaps().size() != getNumResults())
    return emitOpError("E3: expected one result map per result");
  for (unsigned i = 0; i < getInputs().size(); ++i)
    if (failed(verifyInput(*this, i)))
      return failure();
  for (unsigned i = 0; i < getNumResults(); ++i)
    if (failed(verifyResult(*this, i)))
      return failure();
  if (getInits().size() != (isReduction() ? getNumResults() : 0))
    return emitOpError("E4: a reduction has an init per result, other expressions have none");

  if (failed(verifyBody(*this)))
    return failure();
  if (getInOrder() && !isReduction())
    return emitOpError("E8: nothing is accumulated in order");
  if (getMicroKernel() && (!isReduction() || getInputs().size() != 2 || getNumResults() != 1))
    return emitOpError("E9: a micro kernel computes a reduction of one result over two inputs");
  if (getGemm() && !getMicroKernel())
    return emitOpError("E10: only a contraction with a micro kernel has a gemm");
  if (std::optional<ArrayRef<int64_t>> dims = getDims()) {
    auto parent = dyn_cast<SubprogramOp>((*this)->getParentOp());
    int64_t rank = parent ? parent.getExtents().size() : std::numeric_limits<int32_t>::max();
    llvm::SmallSet<int64_t, 8> seen;
    bool fits = dims->size() == domain.size();
    for (size_t i = 0; fits && i < domain.size(); ++i) {
      int64_t place = (*dims)[i];
      bool nowhere = place == -1 && domain[i] == 1;
      fits = nowhere || (place >= 0 && place < rank && seen.insert(place).second &&
                         (!parent || parent.getExtents()[place] == domain[i]));
    }
    if (!fits)
      return emitOpError("E6: dims must map each domain dim to a dim of the iteration space of the same extent, "
                         "without repetition; only dims of extent 1 may be unmapped (-1)");
  }
  if (std::optional<ArrayAttr> tilings = getTilings())
    for (Attribute tiling : *tilings)
      if (!isa<TilingAttr>(tiling) || cast<TilingAttr>(tiling).getSizes().size() != domain.size())
        return emitOpError("E7: a tiling must have one size per domain dim");
  return success();
}

LogicalResult ConnectOp::verify() {
  if (getScope() >= Scope::launch)
    return emitOpError("C1: a ") << stringifyScope(getScope())
                                 << " edge leaves the subprogram; it cannot be connected inside";
  Type element = getElementTypeOrSelf(getValue().getType());
  if (getUnrounded() && (getScope() != Scope::thread || !(element.isBF16() || element.isF16())))
    return emitOpError("C2: only bf16 and f16 values are handed over unrounded, at scope thread");
  return success();
}

LogicalResult GatherOp::verify() {
  auto slice = dyn_cast<SliceType>(getTable().getType());
  int64_t rank = slice ? slice.getShape().size() : cast<RankedTensorType>(getTable().getType()).getRank();
  Type element = slice ? slice.getElementType() : getElementTypeOrSelf(getTable().getType());
  if (static_cast<int64_t>(getIndices().size()) != rank || getValue().getType() != element ||
      (slice && slice.getSpace() != Space::global))
    return emitOpError("G1: expected one index per dim of a tensor or of a slice of global memory, and its element");
  return success();
}

LogicalResult IndexOp::verify() {
  AffineMap map = getMap();
  if (map.getNumResults() != 1)
    return emitOpError("I1: expected a map with one result");
  return verifySpace(*this, map.getNumDims(), map.getNumSymbols(), "I1");
}

LogicalResult WithinOp::verify() {
  IntegerSet set = getSet();
  return verifySpace(*this, set.getNumDims(), set.getNumSymbols(), "W1");
}
