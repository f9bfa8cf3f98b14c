#ifndef TILEWRIGHT_TILE_ATTRS_TD
#define TILEWRIGHT_TILE_ATTRS_TD

include "dialects/tile/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Tile_Scope : I32EnumAttr<"Scope", "the innermost level at which a tile is handed over, innermost first", [
    I32EnumAttrCase<"thread", 0>, I32EnumAttrCase<"warp", 1>, I32EnumAttrCase<"block", 2>,
    I32EnumAttrCase<"cluster", 3>, I32EnumAttrCase<"grid", 4>, I32EnumAttrCase<"launch", 5>,
    I32EnumAttrCase<"host", 6>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_ScopeAttr : EnumAttr<Tile_Dialect, Tile_Scope, "scope"> {
  let assemblyFormat = "`<` $value `>`";
  let description = [{
    Scopes are ordered: an inner scope costs less and allows less. `launch` and
    `host` edges separate kernels, so they never stand inside a subprogram.
  }];
}

def Tile_Space : I32EnumAttr<"Space", "where a slice lives, innermost first", [
    I32EnumAttrCase<"thread", 0, "register">, I32EnumAttrCase<"block", 1, "block">,
    I32EnumAttrCase<"cluster", 2, "cluster">, I32EnumAttrCase<"global", 3, "global">,
    I32EnumAttrCase<"host", 4, "host">]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_SpaceAttr : EnumAttr<Tile_Dialect, Tile_Space, "space"> {
  let assemblyFormat = "`<` $value `>`";
}

def Tile_TilingAttr : AttrDef<Tile_Dialect, "Tiling"> {
  let mnemonic = "tiling";
  let summary = "tile sizes and loop order of one op at one memory level";
  let description = [{
    `sizes` has one entry per dim of the op's domain; `order` is the loop order,
    outermost first, a permutation of the dims. Constraints:
    (A1) sizes are positive; (A2) order is a permutation of as many dims.
  }];
  let parameters = (ins
    EnumParameter<Tile_Scope>:$level,
    ArrayRefParameter<"int64_t">:$sizes,
    ArrayRefParameter<"int64_t">:$order);
  let assemblyFormat = "`<` $level `,` `sizes` `=` `[` $sizes `]` `,` `order` `=` `[` $order `]` `>`";
  let genVerifyDecl = 1;
}

def Tile_Roundings : I32EnumAttr<"Roundings", "what becomes of roundings to bf16 and f16 between two operations", [
    I32EnumAttrCase<"kept", 0>, I32EnumAttrCase<"relaxed", 1>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_Math : I32EnumAttr<"Math", "how divisions and functions are computed", [
    I32EnumAttrCase<"accurate", 0>, I32EnumAttrCase<"fast", 1>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_NumericsAttr : AttrDef<Tile_Dialect, "Numerics"> {
  let mnemonic = "numerics";
  let summary = "what a kernel may do to the numbers of the graph that it was made from";
  let description = [{
    With `kept` every operation on bf16 and f16 rounds its result as the graph
    says; with `relaxed` a rounding may be left out, never added. `fast` math may
    divide by a number that many elements share as a multiplication by its
    reciprocal. `forms` names the algebra that was put in place of the graph's
    own. What a reduction accumulates in, and in which order, stands on its
    expression; which edges hand their values over without a rounding, on the
    connects. Constraint: (A3) forms are not empty and named once.
  }];
  let parameters = (ins
    EnumParameter<Tile_Roundings>:$roundings,
    EnumParameter<Tile_Math>:$math,
    OptionalArrayRefParameter<"::mlir::StringAttr">:$forms);
  let assemblyFormat = "`<` $roundings `,` $math (`,` `forms` `=` `[` $forms^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def Tile_RunningAttr : AttrDef<Tile_Dialect, "Running"> {
  let mnemonic = "running";
  let summary = "an accumulator, a maximum, that a loop nest uses while it is still accumulated";
  let description = [{
    `accumulator` is its number, `block` how many points of the reduced dim share
    a reference. What it means stands at `tile.compute`.
  }];
  let parameters = (ins "int64_t":$accumulator, "int64_t":$block);
  let assemblyFormat = "`<` $accumulator `every` $block `>`";
}

def Tile_TargetAttr : AttrDef<Tile_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "a target of the table, with the fields that override it";
  let parameters = (ins StringRefParameter<"name in the target table">:$name,
                        OptionalParameter<"::mlir::DictionaryAttr">:$overrides);
  let assemblyFormat = "`<` $name (`,` $overrides^)? `>`";
}

#endif
