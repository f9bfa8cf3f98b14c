// Reads tensor expressions off structured ops. Everything that the raising could not carry over (values computed outside
// a body, arbitrary initial accumulators, dynamic shapes) is refused here with its reason, so that whoever plans on the
// result never plans something that cannot be built.
#include "passes/analysis/TensorExpr.h"

#include "dialects/tile/TileDialect.h"
#include "passes/analysis/AffineAlgebra.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tilewright {
namespace {

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

LogicalResult refuse(std::string *reason, const Twine &why) {
  if (reason)
    *reason = why.str();
  return failure();
}

bool isSupportedElement(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() && integer.getWidth() <= 64;
  return isa<IndexType, Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

LogicalResult checkTensor(Type type, std::string *reason) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return refuse(reason, "not a ranked tensor");
  if (!tensor.hasStaticShape())
    return refuse(reason, "dynamic shape");
  if (tensor.getEncoding())
    return refuse(reason, "tensor with an encoding");
  if (!isSupportedElement(tensor.getElementType()))
    return refuse(reason, "unsupported element type");
  int64_t elements = 1;
  for (int64_t extent : tensor.getShape())
    if (llvm::MulOverflow(elements, extent, elements) || elements > (int64_t(1) << 48))
      return refuse(reason, "tensor too large");
  return elements == 0 ? refuse(reason, "tensor without elements") : success();
}

/// Whether a result map is a projected permutation (zeros for unit dims) of exactly the parallel dims.
bool isResultMap(AffineMap map, const TensorExpr &expr) {
  llvm::SmallBitVector used(expr.domain.size());
  for (AffineExpr result : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(result)) {
      if (used.test(dim.getPosition()))
        return false;
      used.set(dim.getPosition());
    } else if (!isa<AffineConstantExpr>(result) || cast<AffineConstantExpr>(result).getValue() != 0) {
      return false;
    }
  }
  for (size_t dim = 0; dim < expr.domain.size(); ++dim) {
    bool reduced = llvm::is_contained(expr.reductions, static_cast<int64_t>(dim));
    if (used.test(dim) ? reduced : !reduced && expr.domain[dim] != 1)
      return false;
  }
  return true;
}

/// Scalar arithmetic without regions, memory or values from outside that are no constants.
LogicalResult checkBody(Block &body, std::string *reason) {
  for (Operation &op : body) {
    if (!isa<linalg::IndexOp, linalg::YieldOp>(op)) {
      StringRef dialect = op.getName().getDialectNamespace();
      if ((dialect != "arith" && dialect != "math") || op.getNumRegions() != 0)
        return refuse(reason, "the body holds " + op.getName().getStringRef());
      for (Type type : op.getResultTypes())
        if (!isSupportedElement(type))
          return refuse(reason, "the body computes with an unsupported type");
    }
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &body && !constantElement(operand))
        return refuse(reason, "the body reads a value computed outside it");
  }
  return success();
}

bool isCast(Operation *op) {
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
                         arith::SIToFPOp, arith::UIToFPOp>(op);
}

/// Whether `value` accumulates a product: acc + cast(a * b).
bool isMultiplyAdd(Value value) {
  Operation *add = value.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp, arith::OrIOp>(add))
    return false;
  return llvm::any_of(add->getOperands(), [](Value operand) {
    Operation *op = operand.getDefiningOp();
    while (isCast(op))
      op = op->getOperand(0).getDefiningOp();
    return isa_and_nonnull<arith::MulFOp, arith::MulIOp, arith::AndIOp>(op);
  });
}

bool isContraction(const TensorExpr &expr, Block &body) {
  bool differ = llvm::any_of(expr.inputs, [&](const TensorAccess &access) {
    return access.map != expr.inputs.front().map;
  });
  return !expr.reductions.empty() && differ && body.getTerminator()->getNumOperands() == 1 &&
         isMultiplyAdd(body.getTerminator()->getOperand(0));
}

bool isFree(Operation &op) {
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return select.getCondition().getDefiningOp<tile::WithinOp>() != nullptr;
  return op.hasTrait<OpTrait::IsTerminator>() || op.hasTrait<OpTrait::ConstantLike>() ||
         isa<linalg::IndexOp, tile::IndexOp, tile::WithinOp, arith::IndexCastOp, arith::IndexCastUIOp>(op);
}

Block *bodyOf(Operation *op) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return structured.getBlock();
  if (auto expr = dyn_cast<tile::ExprOp>(op))
    return &expr.getBodyBlock();
  return nullptr;
}

void classify(TensorExpr &expr, Block &body) {
  if (!expr.reductions.empty())
    expr.kind = isContraction(expr, body) ? ExprKind::contraction : ExprKind::reduction;
  else
    expr.kind = llvm::all_of(body, [](Operation &op) {
      return op.hasTrait<OpTrait::IsTerminator>() || op.hasTrait<OpTrait::ConstantLike>() || isa<tile::WithinOp>(op) ||
             (isa<arith::SelectOp>(op) && isFree(op));
    }) ? ExprKind::movement : ExprKind::elementwise;
}

//===----------------------------------------------------------------------===//
// Structured ops
//===----------------------------------------------------------------------===//

bool bodyReads(linalg::LinalgOp op, OpOperand &operand) {
  // linalg.map has no argument for its init.
  unsigned number = operand.getOperandNumber();
  return number < op.getBlock()->getNumArguments() && !op.getBlock()->getArgument(number).use_empty();
}

LogicalResult addOperand(TensorExpr &expr, linalg::LinalgOp op, OpOperand &operand, std::string *reason) {
  bool init = op.isDpsInit(&operand);
  if (init && !expr.reductions.empty())
    return constantElement(operand.get()) ? success() : refuse(reason, "the accumulator starts from a computed tensor");
  if (!bodyReads(op, operand))
    return success();
  if (!isa<ShapedType>(operand.get().getType()))
    return constantElement(operand.get()) ? success() : refuse(reason, "a scalar operand is computed");
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (map.getNumSymbols() != 0 || llvm::any_of(map.getResults(), [](AffineExpr e) { return !e.isPureAffine(); }))
    return refuse(reason, "an indexing map is not quasi-affine");
  expr.inputs.push_back({operand.get(), simplifyInDomain(map, expr.domain), {}, operand.getOperandNumber()});
  return success();
}

LogicalResult describeLinalg(linalg::LinalgOp op, TensorExpr &expr, std::string *reason) {
  if (!op.hasPureTensorSemantics())
    return refuse(reason, "works on buffers");
  for (OpOperand &operand : op->getOpOperands())
    if (isa<ShapedType>(operand.get().getType()) && failed(checkTensor(operand.get().getType(), reason)))
      return failure();
  expr.domain = op.getStaticLoopRanges();
  for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray()))
    if (iterator == utils::IteratorType::reduction)
      expr.reductions.push_back(dim);
  if (failed(checkBody(*op.getBlock(), reason)))
    return failure();
  for (OpOperand &operand : op->getOpOperands())
    if (failed(addOperand(expr, op, operand, reason)))
      return failure();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = simplifyInDomain(op.getMatchingIndexingMap(&init), expr.domain);
    if (!isResultMap(map, expr))
      return refuse(reason, "results are not written as a permutation of the parallel dims");
    expr.results.push_back(map);
  }
  classify(expr, *op.getBlock());
  return success();
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

AffineExpr dim(Operation *op, unsigned position) { return getAffineDimExpr(position, op->getContext()); }

/// A guarded access over the result's index space, dim by dim.
struct AccessBuilder {
  SmallVector<AffineExpr> indices, constraints;
  SmallVector<bool> equalities;

  /// Reads along `index` where it lies in [0, size).
  void require(AffineExpr index, int64_t size) {
    constraints.append({index, size - 1 - index});
    equalities.append({false, false});
  }
  void requireZero(AffineExpr expr) {
    constraints.push_back(expr);
    equalities.push_back(true);
  }
  void finish(TensorExpr &expr, OpOperand &operand) {
    IntegerSet guard;
    if (!constraints.empty())
      guard = conjoin(IntegerSet::get(expr.domain.size(), 0, constraints, equalities), {}, expr.domain);
    AffineMap map = AffineMap::get(expr.domain.size(), 0, indices, operand.getOwner()->getContext());
    expr.inputs.push_back(
        {operand.get(), simplifyInDomain(map, expr.domain), guard, operand.getOperandNumber()});
  }
};

LogicalResult describeReshape(Operation *op, TensorExpr &expr, std::string *) {
  auto source = cast<RankedTensorType>(op->getOperand(0).getType());
  expr.inputs.push_back({op->getOperand(0), reshapeMap(op->getContext(), source.getShape(), expr.domain), {}, 0});
  return success();
}

LogicalResult describeExtract(tensor::ExtractSliceOp op, TensorExpr &expr, std::string *reason) {
  if (ShapedType::isDynamicShape(op.getStaticOffsets()) || ShapedType::isDynamicShape(op.getStaticStrides()))
    return refuse(reason, "slice with dynamic offsets or strides");
  AccessBuilder access;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  unsigned position = 0;
  for (auto [i, offset, stride] : llvm::enumerate(op.getStaticOffsets(), op.getStaticStrides())) {
    AffineExpr base = getAffineConstantExpr(offset, op.getContext());
    access.indices.push_back(dropped.test(i) ? base : base + dim(op, position++) * stride);
  }
  access.finish(expr, op.getSourceMutable());
  return success();
}

LogicalResult describeInsert(tensor::InsertSliceOp op, TensorExpr &expr, std::string *reason) {
  if (ShapedType::isDynamicShape(op.getStaticOffsets()) || ShapedType::isDynamicShape(op.getStaticStrides()))
    return refuse(reason, "slice with dynamic offsets or strides");
  AccessBuilder source;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [i, offset, size, stride] :
       llvm::enumerate(op.getStaticOffsets(), op.getStaticSizes(), op.getStaticStrides())) {
    AffineExpr distance = dim(op, i) - offset, index = distance.floorDiv(stride);
    source.require(index, size);
    if (stride != 1)
      source.requireZero(distance % stride);
    if (!dropped.test(i))
      source.indices.push_back(index);
  }
  source.finish(expr, op.getSourceMutable());
  // What is not overwritten of an empty tensor has no value.
  if (op.getDest().getDefiningOp<tensor::EmptyOp>())
    return success();
  AccessBuilder dest;
  for (unsigned i = 0; i < expr.domain.size(); ++i)
    dest.indices.push_back(dim(op, i));
  dest.finish(expr, op.getDestMutable());
  return success();
}

LogicalResult describePad(tensor::PadOp op, TensorExpr &expr, std::string *reason) {
  Value padding = op.getConstantPaddingValue();
  if (!padding || !constantElement(padding))
    return refuse(reason, "pad with a computed value");
  if (ShapedType::isDynamicShape(op.getStaticLow()))
    return refuse(reason, "pad with dynamic amounts");
  AccessBuilder access;
  for (auto [i, low, size] : llvm::enumerate(op.getStaticLow(), op.getSourceType().getShape())) {
    access.indices.push_back(dim(op, i) - low);
    access.require(access.indices.back(), size);
  }
  access.finish(expr, op.getSourceMutable());
  return success();
}

LogicalResult describeConcat(tensor::ConcatOp op, TensorExpr &expr, std::string *) {
  int64_t offset = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    int64_t size = cast<RankedTensorType>(operand.get().getType()).getDimSize(op.getDim());
    AccessBuilder piece;
    for (unsigned i = 0; i < expr.domain.size(); ++i)
      piece.indices.push_back(i == op.getDim() ? dim(op, i) - offset : dim(op, i));
    piece.require(piece.indices[op.getDim()], size);
    piece.finish(expr, operand);
    offset += size;
  }
  return success();
}

/// Ops that copy elements of their operands to a result over its whole index space.
LogicalResult describeMovement(Operation *op, TensorExpr &expr, std::string *reason) {
  for (Type type : llvm::concat<Type>(op->getOperandTypes(), op->getResultTypes()))
    if (isa<ShapedType>(type) && failed(checkTensor(type, reason)))
      return failure();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  expr.kind = ExprKind::movement;
  expr.domain.assign(type.getShape().begin(), type.getShape().end());
  expr.results.push_back(AffineMap::getMultiDimIdentityMap(type.getRank(), op->getContext()));
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp>([&](auto op) { return describeReshape(op, expr, reason); })
      .Case([&](tensor::ExtractSliceOp op) { return describeExtract(op, expr, reason); })
      .Case([&](tensor::InsertSliceOp op) { return describeInsert(op, expr, reason); })
      .Case([&](tensor::PadOp op) { return describePad(op, expr, reason); })
      .Case([&](tensor::ConcatOp op) { return describeConcat(op, expr, reason); })
      .Default([&](Operation *) { return refuse(reason, "not a tensor expression"); });
}

void describeExpr(tile::ExprOp op, TensorExpr &expr) {
  expr.domain.assign(op.getDomain().begin(), op.getDomain().end());
  expr.reductions.assign(op.getReductions().begin(), op.getReductions().end());
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    expr.inputs.push_back({input, op.getInputMap(i), op.getGuard(i), static_cast<unsigned>(i)});
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    expr.results.push_back(op.getResultMap(i));
  classify(expr, op.getBodyBlock());
}
} // namespace

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

StringRef stringify(ExprKind kind) {
  switch (kind) {
  case ExprKind::movement:
    return "movement";
  case ExprKind::elementwise:
    return "elementwise";
  case ExprKind::reduction:
    return "reduction";
  case ExprKind::contraction:
    return "contraction";
  }
  llvm_unreachable("unknown kind");
}

int64_t TensorExpr::domainSize() const { return llvm::product_of(domain); }

int64_t TensorExpr::arithmetic() const {
  Block *body = bodyOf(op);
  if (kind == ExprKind::movement || !body)
    return 0;
  return llvm::count_if(*body, [](Operation &op) { return !isFree(op); }) * domainSize();
}

TypedAttr constantElement(Value value) {
  Attribute attr;
  if (matchPattern(value, m_Constant(&attr))) {
    if (auto splat = dyn_cast<SplatElementsAttr>(attr))
      return dyn_cast<TypedAttr>(splat.getSplatValue<Attribute>());
    return isa<FloatAttr, IntegerAttr>(attr) ? cast<TypedAttr>(attr) : TypedAttr();
  }
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return constantElement(fill.getInputs()[0]);
  return {};
}

FailureOr<TensorExpr> describe(Operation *op, std::string *reason) {
  TensorExpr expr;
  expr.op = op;
  if (auto tileExpr = dyn_cast<tile::ExprOp>(op)) {
    describeExpr(tileExpr, expr);
    return expr;
  }
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return failed(describeLinalg(structured, expr, reason)) ? FailureOr<TensorExpr>(failure()) : expr;
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::PadOp,
          tensor::ConcatOp>(op))
    return failed(describeMovement(op, expr, reason)) ? FailureOr<TensorExpr>(failure()) : expr;
  (void)refuse(reason, "not a tensor expression");
  return failure();
}

} // namespace tilewright
