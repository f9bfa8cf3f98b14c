#ifndef TILEWRIGHT_TILE_DIALECT_TD
#define TILEWRIGHT_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tilewright::tile";
  let summary = "Scopes, tiles and explicit data movement between tensor expressions and target code";
  let description = [{
    The dialect carries one idea: every producer-consumer edge gets a *scope*,
    the innermost level of the machine at which a tile is handed over. It has
    two levels. The *planned graph* (`tile.subprogram`, `tile.expr`,
    `tile.connect`) is value-semantic and states the choice; the *tile program*
    (`tile.program`, `tile.parallel`, `tile.alloc`, `tile.compute`, `tile.load`,
    `tile.store`, `tile.move`, `tile.sync`) carries it out with explicit
    movement between memory spaces. `linalg` below it has no place for a scope
    or a guarded access; `vector` and `gpu` above it have lost the choice.
    The rationale, with one example at every level, is in the dialect's README.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif
