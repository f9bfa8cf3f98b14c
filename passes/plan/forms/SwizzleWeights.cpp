// Weights of contractions on GPUs as images of their tiles in shared memory, by the plan's word. What is made here is
// movement, which tile-store-weights has stored, as what tile-pack-weights lays out for processors.
#include "passes/Passes.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/plan/forms/PackedCopy.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SWIZZLEWEIGHTS
#include "passes/Passes.h.inc"

namespace {
/// The operand of a contraction that becomes an image.
struct PlainOperand {
  unsigned input;       ///< of the contraction
  BlockArgument tensor; ///< of its subprogram
  int64_t lane, terms;  ///< dims of the contraction
  bool lanesFirst;      ///< of the tensor's two dims of more than one point
  SwizzledShape shape;
};

/// The order of the two dims in an index, all others being 0; nothing where it is something else.
std::optional<bool> lanesComeFirst(AffineMap map, int64_t lane, int64_t terms) {
  SmallVector<int64_t> dims;
  for (AffineExpr index : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(index))
      dims.push_back(dim.getPosition());
    else if (auto constant = dyn_cast<AffineConstantExpr>(index); !constant || constant.getValue() != 0)
      return std::nullopt;
  }
  if (dims == ArrayRef<int64_t>{lane, terms})
    return true;
  return dims == ArrayRef<int64_t>{terms, lane} ? std::optional(false) : std::nullopt;
}

std::optional<PlainOperand> operandOf(tile::ExprOp contraction, std::string &why) {
  std::optional<SwizzledShape> shape = swizzledShapeOf(contraction);
  FailureOr<TensorExpr> expr = describe(contraction);
  std::optional<ContractionRoles> roles;
  if (shape && succeeded(expr) && expr->inputs.size() == 2 && contraction.getReductions().size() == 1)
    roles = contractionRoles(*expr, expr->inputs[0].map, expr->inputs[1].map);
  if (!roles) {
    why = "it is no product of lanes along a single dim of terms";
    return std::nullopt;
  }
  PlainOperand operand{roles->laneInput, {}, roles->lane, contraction.getReductions()[0], false, *shape};
  operand.tensor = dyn_cast<BlockArgument>(contraction.getInputs()[operand.input]);
  if (!operand.tensor || !operand.tensor.hasOneUse() || contraction.getGuard(operand.input)) {
    why = "its operand along the lanes is no input of its own";
    return std::nullopt;
  }
  std::optional<bool> lanesFirst = lanesComeFirst(contraction.getInputMap(operand.input), operand.lane, operand.terms);
  if (!lanesFirst || contraction.getDomain()[operand.lane] > shape->lines || shape->step <= 0) {
    why = "its operand is no matrix of at most " + std::to_string(shape->lines) + " lanes";
    return std::nullopt;
  }
  operand.lanesFirst = *lanesFirst;
  return operand;
}

/// steps x lines x terms of a step, out of a matrix of lanes and terms that may have dims of one point.
Value swizzleWeight(OpBuilder &builder, Location loc, Value matrix, const PlainOperand &operand, int64_t lanes,
                int64_t terms) {
  int64_t step = operand.shape.step, steps = llvm::divideCeil(terms, step);
  SmallVector<int64_t> sizes = {terms, lanes}, whole = {steps * step, operand.shape.lines};
  if (operand.lanesFirst)
    for (SmallVector<int64_t> *both : {&sizes, &whole})
      std::swap((*both)[0], (*both)[1]);
  auto type = cast<RankedTensorType>(matrix.getType());
  if (type.getRank() != 2)
    matrix = tensor::CollapseShapeOp::create(builder, loc, type.clone(sizes), matrix,
                                             *getReassociationIndicesForCollapse(type.getShape(), sizes));
  matrix = padBehind(builder, loc, matrix, whole);
  AffineExpr line = builder.getAffineDimExpr(1),
             term = builder.getAffineDimExpr(0) * step + builder.getAffineDimExpr(2);
  SmallVector<AffineExpr> from = {term, line};
  if (operand.lanesFirst)
    std::swap(from[0], from[1]);
  Value lines = copyElements(builder, loc, matrix, {steps, operand.shape.lines, step}, from).getResult(0);
  linalg::GenericOp image =
      swizzleLines(builder, loc, lines, kSwizzleAtomBytes / tile::elementBytes(type.getElementType()));
  image->setAttr(kPackedWeightAttr, builder.getUnitAttr());
  return image.getResult(0);
}

class SwizzleWeights : public impl::SwizzleWeightsBase<SwizzleWeights> {
  using SwizzleWeightsBase::SwizzleWeightsBase;

  void runOnOperation() override {
    SmallVector<tile::ExprOp> contractions;
    getOperation().walk([&](tile::ExprOp expr) {
      if (expr->hasAttr(kSwizzledAttr))
        contractions.push_back(expr);
    });
    for (tile::ExprOp contraction : contractions) {
      std::string why;
      std::optional<PlainOperand> operand = operandOf(contraction, why);
      if (operand) {
        pack(contraction, *operand);
        continue;
      }
      contraction->removeAttr(kSwizzledAttr);
      remark::missed(contraction.getLoc(), remark::RemarkOpts::name("plain").category("tile-swizzle-weights"))
          << ("tile: a weight is read as it is, and not as images of tiles: " + why);
      ++numDeclined;
    }
  }

  void pack(tile::ExprOp contraction, const PlainOperand &operand) {
    auto subprogram = contraction->getParentOfType<tile::SubprogramOp>();
    OpBuilder builder(subprogram);
    OpOperand &given = subprogram->getOpOperand(operand.tensor.getArgNumber());
    ArrayRef<int64_t> domain = contraction.getDomain();
    Value image =
        swizzleWeight(builder, contraction.getLoc(), given.get(), operand, domain[operand.lane], domain[operand.terms]);
    given.set(image);
    BlockArgument tensor = operand.tensor;
    tensor.setType(image.getType());
    SmallVector<AffineMap> maps(contraction.getMaps().getAsValueRange<AffineMapAttr>());
    AffineExpr term = builder.getAffineDimExpr(operand.terms);
    maps[operand.input] =
        simplifyInDomain(AffineMap::get(domain.size(), 0,
                                        {term.floorDiv(operand.shape.step), builder.getAffineDimExpr(operand.lane),
                                         term % operand.shape.step},
                                        builder.getContext()),
                         domain);
    contraction.setMapsAttr(builder.getAffineMapArrayAttr(maps));
    ++numPacked;
  }
};
} // namespace
} // namespace tilewright
