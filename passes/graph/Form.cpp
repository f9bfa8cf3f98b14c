#include "passes/graph/Form.h"

#include "dialects/tile/TileAttributeNames.h"

using namespace mlir;
using namespace tilewright;

tile::Form tilewright::formOf(const TensorExpr &expr) {
  auto form = expr.op->getAttrOfType<StringAttr>(kFormAttr);
  return form ? *tile::symbolizeForm(form) : tile::Form::asIs;
}

void tilewright::setForm(Operation *op, tile::Form form) {
  op->setAttr(kFormAttr, StringAttr::get(op->getContext(), tile::stringifyForm(form)));
}

bool tilewright::namesForm(std::optional<tile::NumericsAttr> numerics, llvm::function_ref<bool(tile::Form)> isSuch) {
  return numerics &&
         llvm::any_of(numerics->getForms(), [&](StringAttr form) { return isSuch(*tile::symbolizeForm(form)); });
}
