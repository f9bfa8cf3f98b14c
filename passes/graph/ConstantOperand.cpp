// A weight may be reshaped, transposed and repeated before a contraction reads it. These functions look through such
// copies.
#include "passes/graph/ConstantOperand.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Eligibility.h"
#include "passes/graph/EvaluateRecipe.h"
#include "passes/graph/ParameterRecipe.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::isProjection(AffineMap map) {
  return llvm::all_of(map.getResults(), [](AffineExpr index) { return isa<AffineDimExpr, AffineConstantExpr>(index); });
}

/// Returns true if a linalg op only copies, and reads each element at an index of dims and constants.
static bool isPlainCopy(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || op.getNumReductionLoops() > 0)
    return false;
  Block &body = op->getRegion(0).front();
  return body.getTerminator()->getOperand(0) == body.getArgument(0) && op.getIndexingMapsArray()[1].isIdentity() &&
         isProjection(op.getIndexingMapsArray()[0]);
}

TensorAccess tilewright::throughCopies(TensorAccess access) {
  for (;;) {
    auto copy = access.tensor.getDefiningOp<linalg::LinalgOp>();
    if (!copy || !isPlainCopy(copy))
      return access;
    access.tensor = copy.getDpsInputs()[0];
    access.map = copy.getIndexingMapsArray()[0].compose(access.map);
  }
}

std::optional<ContractionRoles> tilewright::blockRoles(const TensorGraph &graph, const std::vector<bool> &atLoad,
                                                       unsigned id) {
  const TensorExpr &expr = graph.exprs()[id];
  if (expr.kind != ExprKind::contraction || atLoad[id] || !isa<linalg::LinalgOp>(expr.op) ||
      !whyNotEligible(expr).empty())
    return std::nullopt;
  return contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map);
}

bool tilewright::hasConstantLanes(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned expr,
                                  const ContractionRoles &roles) {
  Value rhs = graph.exprs()[expr].inputs[roles.rhsInput].tensor;
  return isKnownAtLoad(graph, atLoad, rhs) && !constantElement(rhs);
}

/// Accepts any parameter; whether its file is available does not matter here.
static std::optional<ParameterRecipe> loadedParameter(Value tensor) {
  Operation *load = tensor.getDefiningOp();
  if (!load || load->getName().getStringRef() != "util.global.load")
    return std::nullopt;
  if (Operation *global = globalOf(load); global && isMutableGlobal(global))
    return std::nullopt;
  ParameterRecipe recipe;
  recipe.kind = ParameterRecipe::Kind::parameter;
  recipe.shape = cast<RankedTensorType>(tensor.getType()).getShape().vec();
  return recipe;
}

bool tilewright::isMadeOfParameters(Value tensor) { return recipeOf(tensor, loadedParameter).has_value(); }

std::vector<bool> tilewright::layOutWeights(const TensorGraph &graph) {
  std::vector<bool> layOut(graph.exprs().size());
  for (unsigned id = graph.exprs().size(); id-- > 0;) {
    Operation *op = graph.exprs()[id].op;
    auto isLaidOut = [&](unsigned edge) { return layOut[graph.edges()[edge].consumer]; };
    if (op->hasAttr(kPackedWeightAttr))
      layOut[id] = isMadeOfParameters(op->getResult(0)) || constantOfRecipe(op->getResult(0));
    else
      layOut[id] = !graph.outEdges(id).empty() && !graph.escapes(id) && llvm::all_of(graph.outEdges(id), isLaidOut);
  }
  return layOut;
}

void tilewright::eraseUnusedProducers(Value value) {
  while (auto op = value.getDefiningOp<linalg::LinalgOp>()) {
    if (!op->use_empty() || op.getNumDpsInputs() != 1)
      return;
    value = op.getDpsInputs()[0];
    op.erase();
  }
}
