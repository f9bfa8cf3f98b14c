// Reads tensor expressions from structured ops. Everything that the raising could not carry over (values computed
// outside a body, arbitrary initial accumulators, dynamic shapes) is refused here with its reason, so that nobody plans
// something that cannot be built.
#include "passes/graph/TensorExpr.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "passes/graph/DescribeMovement.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;

namespace tilewright {
namespace {

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

/// Returns true if a result map is a projected permutation (zeros for unit dims) of exactly the parallel dims.
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

/// Accepts scalar arithmetic without regions that reads only constants, and elements of tensors, from outside.
LogicalResult checkBody(Block &body, std::string *reason) {
  for (Operation &op : body) {
    if (!isa<linalg::IndexOp, linalg::YieldOp, tensor::ExtractOp>(op)) {
      StringRef dialect = op.getName().getDialectNamespace();
      if ((dialect != "arith" && dialect != "math") || op.getNumRegions() != 0)
        return refuse(reason, "the body holds " + op.getName().getStringRef());
      for (Type type : op.getResultTypes())
        if (!isKnownElement(type))
          return refuse(reason, "the body computes with an unsupported type");
    }
    for (Value operand : op.getOperands())
      if (operand.getParentBlock() != &body && !constantElement(operand) && !isa<TensorType>(operand.getType()))
        return refuse(reason, "the body reads a value computed outside it");
  }
  return success();
}

bool isCast(Operation *op) {
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp,
                         arith::SIToFPOp, arith::UIToFPOp>(op);
}

/// Returns true if `value` accumulates a product: acc + cast(a * b).
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
  bool differ =
      llvm::any_of(expr.inputs, [&](const TensorAccess &access) { return access.map != expr.inputs.front().map; });
  return !expr.reductions.empty() && differ && body.getTerminator()->getNumOperands() == 1 &&
         isMultiplyAdd(body.getTerminator()->getOperand(0));
}

bool isFree(Operation &op) {
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return select.getCondition().getDefiningOp<tile::WithinOp>() != nullptr;
  return op.hasTrait<OpTrait::IsTerminator>() || op.hasTrait<OpTrait::ConstantLike>() ||
         isa<linalg::IndexOp, tile::IndexOp, tile::WithinOp, arith::IndexCastOp, arith::IndexCastUIOp>(op);
}

void classify(TensorExpr &expr, Block &body) {
  if (!expr.reductions.empty())
    expr.kind = isContraction(expr, body) ? ExprKind::contraction : ExprKind::reduction;
  else
    expr.kind = llvm::all_of(body,
                             [](Operation &op) {
                               return op.hasTrait<OpTrait::IsTerminator>() || op.hasTrait<OpTrait::ConstantLike>() ||
                                      isa<tile::WithinOp>(op) || (isa<arith::SelectOp>(op) && isFree(op));
                             })
                    ? ExprKind::movement
                    : ExprKind::elementwise;
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
  if (op.isDpsInit(&operand) && !expr.reductions.empty() && constantElement(operand.get()))
    return success();
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

/// Adds the tensors that the body reads at coordinates that it computes. The map has those that are dims of the domain.
LogicalResult addGathered(TensorExpr &expr, Block &body, std::string *reason) {
  for (auto extract : body.getOps<tensor::ExtractOp>()) {
    if (failed(checkTensor(extract.getTensor().getType(), reason)))
      return failure();
    SmallVector<AffineExpr> indices;
    for (auto [index, extent] : llvm::zip(extract.getIndices(), extract.getTensor().getType().getShape())) {
      auto dim = index.getDefiningOp<linalg::IndexOp>();
      bool isDim = dim && expr.domain[dim.getDim()] <= extent;
      MLIRContext *context = extract.getContext();
      indices.push_back(isDim ? getAffineDimExpr(dim.getDim(), context) : getAffineConstantExpr(0, context));
    }
    AffineMap map = AffineMap::get(expr.domain.size(), 0, indices, extract.getContext());
    expr.inputs.push_back({extract.getTensor(), simplifyInDomain(map, expr.domain), {}, kGathered, /*gathered=*/true});
  }
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
  if (failed(addGathered(expr, *op.getBlock(), reason)))
    return failure();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = simplifyInDomain(op.getMatchingIndexingMap(&init), expr.domain);
    if (!isResultMap(map, expr))
      return refuse(reason, "results are not written as a permutation of the parallel dims");
    expr.results.push_back(map);
  }
  classify(expr, *op.getBlock());
  // A contraction may add to a tensor (a convolution to its bias); other reductions must start from constants.
  bool computedInit = llvm::any_of(expr.inputs, [&](const TensorAccess &access) {
    return !access.gathered && op.isDpsInit(&op->getOpOperand(access.operand));
  });
  if (expr.kind == ExprKind::reduction && computedInit)
    return refuse(reason, "the accumulator starts from a computed tensor");
  return success();
}

void describeExpr(tile::ExprOp op, TensorExpr &expr) {
  expr.domain.assign(op.getDomain().begin(), op.getDomain().end());
  expr.reductions.assign(op.getReductions().begin(), op.getReductions().end());
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    expr.inputs.push_back({input, op.getInputMap(i), op.getGuard(i), static_cast<unsigned>(i), op.isTable(i)});
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

Block *TensorExpr::body() const {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return structured.getBlock();
  if (auto expr = dyn_cast<tile::ExprOp>(op))
    return &expr.getBodyBlock();
  return nullptr;
}

AffineMap TensorExpr::pointOf(unsigned result) const {
  SmallVector<AffineExpr> dims(domain.size(), getAffineConstantExpr(0, op->getContext()));
  for (auto [position, index] : llvm::enumerate(results[result].getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(index))
      dims[dim.getPosition()] = getAffineDimExpr(position, op->getContext());
  return AffineMap::get(results[result].getNumResults(), 0, dims, op->getContext());
}

int64_t TensorExpr::domainSize() const { return llvm::product_of(domain); }

int64_t TensorExpr::arithmetic() const {
  if (kind == ExprKind::movement || !body())
    return 0;
  return llvm::count_if(*body(), [](Operation &op) { return !isFree(op); }) * domainSize();
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
  return failed(describeMovement(op, expr, reason)) ? FailureOr<TensorExpr>(failure()) : expr;
}

} // namespace tilewright
