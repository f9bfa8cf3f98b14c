#include "passes/plan/tiling/gpu/CopyWidths.h"

#include "passes/graph/ElementBytes.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/target/AccessBytes.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Returns the number of elements that are contiguous and aligned to that number in every row; 1 if elements are not
/// contiguous. An index may split a dim into rows.
int64_t alignedElements(const TensorExpr &expr, const RootAccess &access, int64_t bytes) {
  auto type = cast<RankedTensorType>(access.tensor.getType());
  if (type.getRank() == 0)
    return 1;
  AffineExpr index = access.map.getResult(type.getRank() - 1);
  auto cut = dyn_cast<AffineBinaryOpExpr>(index);
  auto piece = cut ? dyn_cast<AffineConstantExpr>(cut.getRHS()) : AffineConstantExpr();
  bool isCut = piece && index.getKind() == AffineExprKind::Mod;
  int64_t inner = isCut ? pureDim(cut.getLHS()) : unitStrideDim(index);
  if (inner < 0)
    return 1;
  int64_t most = kAtomBytes / bytes, row = type.getShape().back();
  while (row % most != 0 || expr.domain[inner] % most != 0 || (isCut && piece.getValue() % most != 0))
    most /= 2;
  return most;
}
} // namespace

int64_t tilewright::copyBytes(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand) {
  const RootAccess &access = contraction.accesses[operand];
  int64_t bytes = elementBytesOf(access.tensor);
  return bytes * alignedElements(graph.exprs()[contraction.expr], access, bytes);
}

bool tilewright::beginsInsideWords(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand) {
  const RootAccess &access = contraction.accesses[operand];
  int64_t inner = dimOfLines(access.map), bytes = elementBytesOf(access.tensor);
  return access.producer < 0 && access.guard == IntegerSet() && 2 * bytes == kLeastAsyncBytes && inner >= 0 &&
         graph.exprs()[contraction.expr].domain[inner] > 1 && copyBytes(graph, contraction, operand) == bytes;
}

int64_t tilewright::pieceBytes(const TensorGraph &graph, const GroupRoot &contraction, unsigned operand) {
  bool alongK =
      llvm::is_contained(graph.exprs()[contraction.expr].reductions, dimOfLines(contraction.accesses[operand].map));
  return alongK ? kLeastAsyncBytes : kAtomBytes;
}
