// Enums and attributes of the dialect. Names of discardable attributes are in TileAttributeNames.h.
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

def Tile_Space : I32EnumAttr<"Space", "the memory space of a slice, innermost first", [
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

def Tile_Roundings : I32EnumAttr<"Roundings", "the treatment of roundings to bf16 and f16 between two operations", [
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
  let summary = "numerical freedoms of a kernel compared with its graph";
  let description = [{
    With `kept` every operation on bf16 and f16 rounds its result as in the graph;
    with `relaxed` a rounding may be left out, but never added. `fast` math may
    replace a division by a number that many elements share by a multiplication
    with its reciprocal. `forms` names algebra that replaces the graph's own.
    Expressions state the type and order in which reductions accumulate, and
    connects state which edges hand values over without a rounding. Constraint:
    (A3) forms are known and named once.
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
  let summary = "a maximum that a loop nest uses while it is still being accumulated (online softmax)";
  let description = [{
    `accumulator` is the number of its accumulator, and `block` the number of
    points of the reduced dim that share a reference. `tile.compute` defines the
    semantics.
  }];
  let parameters = (ins "int64_t":$accumulator, "int64_t":$block);
  let assemblyFormat = "`<` $accumulator `every` $block `>`";
}

def Tile_Residency : I32EnumAttr<"Residency", "how long a copy of an operand stays in shared memory", [
    I32EnumAttrCase<"step", 0>, I32EnumAttrCase<"walk", 1>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_Operands : I32EnumAttr<"Operands", "a choice of the two operands of a contraction", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"lhs", 1>, I32EnumAttrCase<"rhs", 2>, I32EnumAttrCase<"both", 3>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_Access : I32EnumAttr<"Access", "how the threads of a block access its tile of a tensor in global memory", [
    I32EnumAttrCase<"derived", 0>, I32EnumAttrCase<"whole", 1>, I32EnumAttrCase<"direct", 2>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_AccessAttr : EnumAttr<Tile_Dialect, Tile_Access, "access"> {
  let summary = "how the threads of a block access its tile of a tensor in global memory";
  let description = [{
    With `whole`, they copy the tile between global and shared memory, in order of
    addresses; with `direct`, each thread accesses the elements that it computes with.
    `derived` is the one of both that touches fewer sectors of memory.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Tile_Unit : I32EnumAttr<"Unit", "the unit of a term of a predicted cost", [
    I32EnumAttrCase<"seconds", 0, "s">, I32EnumAttrCase<"bytes", 1, "B">, I32EnumAttrCase<"one", 2, "1">]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_LayoutKind : I32EnumAttr<"LayoutKind", "a step of the recipe of a layout, which numpy can evaluate", [
    I32EnumAttrCase<"pad", 0>, I32EnumAttrCase<"permute", 1>, I32EnumAttrCase<"split", 2>,
    I32EnumAttrCase<"swizzle", 3>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_Lifetime : I32EnumAttr<"Lifetime", "how long a kernel holds a tensor in its memory", [
    I32EnumAttrCase<"tile", 0>, I32EnumAttrCase<"workgroup", 1>, I32EnumAttrCase<"kernel", 2>,
    I32EnumAttrCase<"stream", 3>]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_LifetimeAttr : EnumAttr<Tile_Dialect, Tile_Lifetime, "lifetime"> {
  let summary = "how long a kernel holds an input of a group";
  let description = [{
    A block copies the slice that it reads once per `tile`, or the whole input once
    per `workgroup`, to its own memory. It reads an input that is held for the
    `kernel` where it is.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Tile_Form : I32EnumAttr<"Form", "algebra that computes an op", [
    I32EnumAttrCase<"asIs", 0, "as-is">,
    I32EnumAttrCase<"mergedContractions", 1, "merged contractions">,
    I32EnumAttrCase<"twoPhaseReduction", 2, "two-phase reduction">,
    I32EnumAttrCase<"partsOfRows", 3, "sums relative to maxima of parts">,
    I32EnumAttrCase<"twoMomentVariance", 4, "two-moment variance">,
    I32EnumAttrCase<"deferredDivision", 5, "division after its contraction">,
    I32EnumAttrCase<"exponentialsForBf16", 6, "exponentials within 2^-13">,
    I32EnumAttrCase<"onlineSoftmax", 7, "online softmax">,
    I32EnumAttrCase<"onlineSoftmaxOfBlocks", 8, "online softmax of blocks">,
    I32EnumAttrCase<"onlineSoftmaxWithBound", 9, "online softmax with a causal bound">,
    I32EnumAttrCase<"wideSum", 10, "rounding after a sum in f32">,
    I32EnumAttrCase<"integerSum", 11, "scales after a sum of integers">,
    I32EnumAttrCase<"channelsLast", 12, "channels last">, I32EnumAttrCase<"winograd", 13, "winograd">,
    I32EnumAttrCase<"wavefront", 14, "wavefront">]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_FormAttr : AttrDef<Tile_Dialect, "Form"> {
  let mnemonic = "form";
  let summary = "a form that is offered for ops of a function, and whether it is taken";
  let description = [{
    Offers of a form are numbered in the order in which its pass makes them. `ops`
    names the ops that the form would replace, and `parameters` holds integers by
    name, such as the number of parts of a split. The other fields are for readers.
    The array `tile.forms` of a
    function records choices, and `tile.requested_forms` requests them of the passes
    that follow. Constraints: (A6) the form is one that the dialect knows; (A7)
    parameters are arrays of i64; (A8) ops and locations are strings.
  }];
  let parameters = (ins
    StringRefParameter<>:$form, "unsigned":$number, "bool":$taken,
    OptionalParameter<"::mlir::ArrayAttr">:$ops,
    OptionalParameter<"::mlir::DictionaryAttr">:$parameters,
    StringRefParameter<"", "\"\"">:$accumulation,
    DefaultValuedParameter<"bool", "false">:$reassociates,
    DefaultValuedParameter<"int64_t", "0">:$roundings_removed,
    OptionalParameter<"::mlir::FloatAttr">:$seconds,
    OptionalParameter<"::mlir::FloatAttr">:$otherwise_seconds,
    StringRefParameter<"", "\"\"">:$reason,
    StringRefParameter<"", "\"\"">:$would_change,
    OptionalParameter<"::mlir::ArrayAttr">:$locations);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Tile_GemmAttr : AttrDef<Tile_Dialect, "Gemm"> {
  let mnemonic = "gemm";
  let summary = "how the threads of a block on a GPU compute a contraction";
  let description = [{
    The planner decides it, and code generation carries it out or refuses it. The
    threads of a block form `m` by `n` units (a thread, a warp or a warpgroup, as
    the micro kernel says), each with its own part of the tile's accumulators.
    `k_slices` such grids each take a part of every step along K. A step takes
    `step` elements of K, and shared memory holds `stages` steps at once. A copy
    of lhs stays for one `step`, or for the whole `walk` of a tile over blocks of
    N. `prefetch` names the operands whose first steps are copied before the
    contraction begins: during the contraction before it in its block; for the first
    one of a loop, during the last one of the previous iteration; for the first one of
    a phase, before the grid barrier in front of it. `lhs_copy` and `rhs_copy` are the bytes that a thread copies
    at once from global memory: 0 for operands that are copied in bulk, or lie in
    shared memory already. Constraints:
    (A4) units, slices and the step are powers of two, the step has at least one
    element for each slice; (A5) there are at least two stages; (A9) copies are of 0
    bytes, or of a power of two that is at most 16.
  }];
  let parameters = (ins
    "int64_t":$m, "int64_t":$n,
    DefaultValuedParameter<"int64_t", "1">:$k_slices,
    "int64_t":$step, "int64_t":$stages,
    DefaultValuedParameter<"::tilewright::tile::Residency", "::tilewright::tile::Residency::step">:$lhs,
    DefaultValuedParameter<"::tilewright::tile::Operands", "::tilewright::tile::Operands::none">:$prefetch,
    DefaultValuedParameter<"int64_t", "16">:$lhs_copy,
    DefaultValuedParameter<"int64_t", "16">:$rhs_copy);
  let assemblyFormat = [{
    `<` struct($m, $n, $k_slices, $step, $stages, $lhs, $prefetch, $lhs_copy, $rhs_copy) `>`
  }];
  let genVerifyDecl = 1;
}

def Tile_BlockingAttr : AttrDef<Tile_Dialect, "Blocking"> {
  let mnemonic = "blocking";
  let summary = "how a core of a processor computes a contraction with register blocks";
  let description = [{
    The planner decides it, and code generation carries it out or refuses it. A
    register block has the micro kernel's rows and `vectors` vectors along N; an
    iteration takes `unroll` steps along K. Panels with `panel_k` elements of K are
    copied before all rows use them; those of at least `prefetch` bytes fetch the
    next one (0: never). `k_outermost` puts blocks of K outside of N. A last block of
    rows with fewer than `even_rows` accumulators shares the rows of the one before.
    With `wider_last`, the last block along N takes one more vector. Constraints:
    (A10) vectors and unroll are 1 to 16; (A11) no number is negative.
  }];
  let parameters = (ins
    "int64_t":$vectors,
    DefaultValuedParameter<"int64_t", "1">:$unroll,
    DefaultValuedParameter<"int64_t", "0">:$panel_k,
    DefaultValuedParameter<"int64_t", "0">:$prefetch,
    DefaultValuedParameter<"bool", "false">:$k_outermost,
    DefaultValuedParameter<"int64_t", "0">:$even_rows,
    DefaultValuedParameter<"bool", "false">:$wider_last);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The most vectors of a register block, and the most steps of an iteration.
    static constexpr int64_t kMost = 16;
  }];
}

def Tile_TargetAttr : AttrDef<Tile_Dialect, "Target"> {
  let mnemonic = "target";
  let summary = "a target of the target table, with fields that override it";
  let parameters = (ins StringRefParameter<"name in the target table">:$name,
                        OptionalParameter<"::mlir::DictionaryAttr">:$overrides);
  let assemblyFormat = "`<` $name (`,` $overrides^)? `>`";
}

#endif
