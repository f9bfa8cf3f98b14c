#include "passes/graph/StartValue.h"

#include "dialects/tile/TileDialect.h"
#include "passes/graph/TensorExpr.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

bool tilewright::startsFromZero(Operation *op) {
  Attribute start;
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    start = constantElement(structured.getDpsInits()[0]);
  else if (auto expr = dyn_cast<tile::ExprOp>(op); expr && !expr.getInits().empty())
    start = expr.getInits()[0];
  if (auto number = dyn_cast_or_null<FloatAttr>(start))
    return number.getValue().isZero();
  auto integer = dyn_cast_or_null<IntegerAttr>(start);
  return integer && integer.getValue().isZero();
}
