#include "passes/graph/Form.h"

#include "dialects/tile/TileAttributeNames.h"

using namespace mlir;
using namespace tilewright;

tile::Form tilewright::formOf(const TensorExpr &expr) { return markedForm(expr.op).value_or(tile::Form::asIs); }

std::optional<tile::Form> tilewright::markedForm(Operation *op) {
  auto form = op->getAttrOfType<StringAttr>(kFormAttr);
  return form ? tile::symbolizeForm(form) : std::nullopt;
}

void tilewright::setForm(Operation *op, tile::Form form) {
  op->setAttr(kFormAttr, StringAttr::get(op->getContext(), tile::stringifyForm(form)));
}

bool tilewright::namesForm(std::optional<tile::NumericsAttr> numerics, llvm::function_ref<bool(tile::Form)> isSuch) {
  return numerics &&
         llvm::any_of(numerics->getForms(), [&](StringAttr form) { return isSuch(*tile::symbolizeForm(form)); });
}
