#include "passes/graph/MovementSource.h"

#include "passes/support/AffineAlgebra.h"

using namespace mlir;
using namespace tilewright;

TensorAccess tilewright::accessBehind(const TensorGraph &graph, const TensorExpr &reader, const TensorAccess &access,
                                      llvm::function_ref<bool(unsigned expr)> passes) {
  TensorAccess behind = access;
  for (;;) {
    Operation *definition = behind.tensor.getDefiningOp();
    int64_t producer = definition ? graph.indexOf(definition) : -1;
    if (producer < 0 || !passes(producer))
      return behind;
    const TensorExpr &movement = graph.exprs()[producer];
    if (movement.kind != ExprKind::movement || movement.inputs.size() != 1 || movement.inputs[0].guard != IntegerSet())
      return behind;
    AffineMap point = composeInDomain(movement.pointOf(0), behind.map, reader.domain);
    behind = movement.inputs[0];
    behind.map = composeInDomain(behind.map, point, reader.domain);
  }
}

int64_t tilewright::contiguousDim(const TensorAccess &access) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(access.tensor.getType()).getShape();
  for (auto [index, size] : llvm::reverse(llvm::zip_equal(access.map.getResults(), shape))) {
    if (size == 1)
      continue;
    auto cut = dyn_cast<AffineBinaryOpExpr>(index);
    return unitStrideDim(cut && index.getKind() == AffineExprKind::Mod ? cut.getLHS() : index);
  }
  return -1;
}
