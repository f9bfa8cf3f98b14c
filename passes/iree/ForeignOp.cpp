#include "passes/iree/ForeignOp.h"

using namespace mlir;
using namespace tilewright;

Attribute tilewright::propertyOf(Operation *op, StringRef name) {
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties.get(name) : Attribute();
}

Operation *tilewright::createForeign(OpBuilder &builder, Location loc, StringRef name, ValueRange operands,
                                     TypeRange results, ArrayRef<NamedAttribute> properties, bool hasBlock) {
  OperationState state(loc, name);
  state.addOperands(operands);
  state.addTypes(results);
  if (!properties.empty())
    state.propertiesAttr = builder.getDictionaryAttr(properties);
  if (hasBlock)
    state.addRegion()->emplaceBlock();
  return builder.create(state);
}
