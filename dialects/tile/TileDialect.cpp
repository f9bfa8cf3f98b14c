// Registers the dialect's ops, types, attributes and interfaces.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace tilewright::tile;

#include "dialects/tile/TileDialect.cpp.inc"

namespace {
/// Keeps folded constants in the body that uses them, because a subprogram holds only expressions and connects, and a
/// body is cloned as a whole.
struct KeepConstantsInBodies : mlir::DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(mlir::Region *region) const override {
    return mlir::isa<ExprOp, ComputeOp>(region->getParentOp());
  }
};
} // namespace

void TileDialect::initialize() {
  addInterfaces<KeepConstantsInBodies>();
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/tile/TileOps.cpp.inc"
      >();
}
