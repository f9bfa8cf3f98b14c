#include "dialects/tile/TileDialect.h"

#include "mlir/IR/DialectImplementation.h"

using namespace tilewright::tile;

#include "dialects/tile/TileDialect.cpp.inc"

void TileDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/tile/TileOps.cpp.inc"
      >();
}
