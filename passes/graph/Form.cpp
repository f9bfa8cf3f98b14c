#include "passes/graph/Form.h"

#include "dialects/tile/TileAttributeNames.h"

using namespace mlir;
using namespace tilewright;

std::string tilewright::formOf(const TensorExpr &expr) {
  auto form = expr.op->getAttrOfType<StringAttr>(kFormAttr);
  return form ? form.str() : "as-is";
}
