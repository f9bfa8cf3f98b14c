#ifndef TILEWRIGHT_TILE_DIALECT_TD
#define TILEWRIGHT_TILE_DIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tilewright::tile";
  let summary = "Scopes, tiles and explicit data movement between tensor expressions and target code";
  let description = [{
    The dialect expresses one idea: every producer-consumer edge has a *scope*,
    the innermost level of the machine at which a tile is handed over. It has
    two levels. The *planned graph* (`tile.subprogram`, `tile.expr`,
    `tile.connect`) has value semantics and states the choice. The *tile program*
    (`tile.program`, `tile.parallel`, `tile.alloc`, `tile.compute`, `tile.load`,
    `tile.store`, `tile.move`, `tile.sync`) carries it out with explicit
    movement between memory spaces. `linalg`, the level before it, cannot express
    a scope or a guarded access; in `vector` and `gpu`, the levels after it, the
    choice is lost. The dialect's README has the rationale, with an example at
    every level.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif
