// Gives weights of contractions on GPUs the swizzled layout that their tiles have in shared memory, as the plan
// decided. The pass creates movement only, which tile-store-weights can store, like the packed weights of
// tile-pack-weights on CPUs.
#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/LoopBodies.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/graph/SwizzledLayout.h"
#include "passes/normalize/PackedCopy.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/Declined.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SWIZZLEWEIGHTS
#include "passes/Passes.h.inc"

namespace {
/// The rhs of a contraction that gets a swizzled layout.
struct PlainOperand {
  unsigned input;       ///< number of the contraction's input
  BlockArgument tensor; ///< argument of the contraction's subprogram
  int64_t n, k;         ///< dims of the contraction
  bool nFirst;          ///< true if N is the first of the tensor's two non-unit dims
  SwizzledShape shape;
};

/// Returns true if an index is N and then K, false if it is K and then N, unit dims aside, or nothing for other
/// indices.
std::optional<bool> nComesFirst(AffineMap map, int64_t n, int64_t k) {
  SmallVector<int64_t> dims;
  for (AffineExpr index : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(index))
      dims.push_back(dim.getPosition());
    else if (auto constant = dyn_cast<AffineConstantExpr>(index); !constant || constant.getValue() != 0)
      return std::nullopt;
  }
  if (dims == ArrayRef<int64_t>{n, k})
    return true;
  return dims == ArrayRef<int64_t>{k, n} ? std::optional(false) : std::nullopt;
}

/// Returns the rhs of a contraction, if its layout can be changed.
OrDeclined<PlainOperand> operandOf(tile::ExprOp contraction) {
  std::optional<SwizzledShape> shape = swizzledShapeOf(contraction);
  FailureOr<TensorExpr> expr = describe(contraction);
  std::optional<ContractionRoles> roles;
  if (shape && succeeded(expr) && expr->inputs.size() == 2 && contraction.getReductions().size() == 1)
    roles = contractionRoles(*expr, expr->inputs[0].map, expr->inputs[1].map);
  if (!roles)
    return Declined{"its contraction is not a matmul with a single K dim", "a matmul"};
  PlainOperand operand{roles->rhsInput, {}, roles->n, contraction.getReductions()[0], false, *shape};
  operand.tensor = dyn_cast<BlockArgument>(contraction.getInputs()[operand.input]);
  if (!operand.tensor || !operand.tensor.hasOneUse() || contraction.getGuard(operand.input))
    return Declined{"its rhs is not an input of the subprogram that it alone reads, without a guard", "such an input"};
  std::optional<bool> nFirst = nComesFirst(contraction.getInputMap(operand.input), operand.n, operand.k);
  if (!nFirst || contraction.getDomain()[operand.n] > shape->lines || shape->step <= 0)
    return Declined{"its rhs is not a matrix with an N of at most " + std::to_string(shape->lines), "more lines"};
  operand.nFirst = *nFirst;
  return operand;
}

/// Lays out a matrix of K and N, which may have unit dims, as steps x lines x K of a step, swizzled.
Value swizzleWeight(OpBuilder &builder, Location loc, Value matrix, const PlainOperand &operand, int64_t n, int64_t k) {
  int64_t step = operand.shape.step, steps = llvm::divideCeil(k, step);
  SmallVector<int64_t> sizes = {k, n}, whole = {steps * step, operand.shape.lines};
  if (operand.nFirst)
    for (SmallVector<int64_t> *both : {&sizes, &whole})
      std::swap((*both)[0], (*both)[1]);
  auto type = cast<RankedTensorType>(matrix.getType());
  if (type.getRank() != 2)
    matrix = tensor::CollapseShapeOp::create(builder, loc, type.clone(sizes), matrix,
                                             *getReassociationIndicesForCollapse(type.getShape(), sizes));
  matrix = padBehind(builder, loc, matrix, whole);
  AffineExpr line = builder.getAffineDimExpr(1),
             indexK = builder.getAffineDimExpr(0) * step + builder.getAffineDimExpr(2);
  SmallVector<AffineExpr> from = {indexK, line};
  if (operand.nFirst)
    std::swap(from[0], from[1]);
  Value lines = copyElements(builder, loc, matrix, {steps, operand.shape.lines, step}, from).getResult(0);
  linalg::GenericOp swizzled =
      swizzleLines(builder, loc, lines, kSwizzleAtomBytes / tile::elementBytes(type.getElementType()));
  swizzled->setAttr(kPackedWeightAttr, builder.getUnitAttr());
  return swizzled.getResult(0);
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
      OrDeclined<PlainOperand> operand = operandOf(contraction);
      if (!operand) {
        contraction.emitError("no weight can get the swizzled layout that '")
            << kSwizzledAttr << "' states: " << operand.why().reason;
        return signalPassFailure();
      }
      pack(contraction, *operand);
    }
  }

  void pack(tile::ExprOp contraction, const PlainOperand &operand) {
    auto subprogram = contraction->getParentOfType<tile::SubprogramOp>();
    OpBuilder builder(subprogram);
    OpOperand &given = subprogram->getOpOperand(operand.tensor.getArgNumber());
    if (Operation *made = outsideLoops(given.get(), subprogram))
      builder.setInsertionPointAfter(made);
    ArrayRef<int64_t> domain = contraction.getDomain();
    Value swizzled =
        swizzleWeight(builder, contraction.getLoc(), given.get(), operand, domain[operand.n], domain[operand.k]);
    given.set(swizzled);
    BlockArgument tensor = operand.tensor;
    tensor.setType(swizzled.getType());
    SmallVector<AffineMap> maps(contraction.getMaps().getAsValueRange<AffineMapAttr>());
    AffineExpr dimK = builder.getAffineDimExpr(operand.k);
    maps[operand.input] =
        simplifyInDomain(AffineMap::get(domain.size(), 0,
                                        {dimK.floorDiv(operand.shape.step), builder.getAffineDimExpr(operand.n),
                                         dimK % operand.shape.step},
                                        builder.getContext()),
                         domain);
    contraction.setMapsAttr(builder.getAffineMapArrayAttr(maps));
    ++numPacked;
  }
};
} // namespace
} // namespace tilewright
