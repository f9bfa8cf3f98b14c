#ifndef TILEWRIGHT_TILE_OPS_TD
#define TILEWRIGHT_TILE_OPS_TD

include "dialects/tile/TileDialect.td"
include "dialects/tile/TileAttrs.td"
include "dialects/tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Level 2: the planned graph
//===----------------------------------------------------------------------===//

def Tile_SubprogramOp : Tile_Op<"subprogram", [IsolatedFromAbove, SingleBlock]> {
  let summary = "one kernel: tensor expressions, the scopes between them, and the index space they share";
  let description = [{
    The unit of code generation (Souffle 5.4). Its *index space* is the common
    iteration space of its expressions: `extents` per dim, of which the `grid`
    dims are walked in tiles of `tiles` elements by independent workgroups; all
    other dims lie whole inside a tile, but for one, which a tile may walk in
    blocks of `tiles` elements one after another: sums along it grow from block
    to block. `vector` names the dim whose elements fill vector lanes.

    Constraints: (S1) block arguments match the operands; (S2) the terminator
    yields the results; (S3) extents, tiles are of one length and positive,
    tiles no larger than extents; (S4) grid and vector are dims of the space,
    without repetition; (S5) a dim that is not in grid has a tile of its full
    extent, but for one that tiles walk in blocks; (S6) ops inside are
    `tile.expr`, `tile.connect` and the terminator; (S7) `streamed` names
    results, which are written past the caches because no cache can hold them
    until they are read; (S8) where `numerics` keeps roundings no connect is
    unrounded. Without `numerics` nothing is promised that the bodies do not
    say. Adjacent subprograms of one name are parts packed side
    by side into one kernel.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrAttr:$sym_name,
    DenseI64ArrayAttr:$extents, DenseI64ArrayAttr:$tiles, DenseI64ArrayAttr:$grid,
    I64Attr:$vector, I64Attr:$workgroups, OptionalAttr<Tile_TargetAttr>:$target,
    OptionalAttr<DenseI64ArrayAttr>:$streamed, OptionalAttr<Tile_NumericsAttr>:$numerics);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `(` $inputs `)` `extents` $extents `tiles` $tiles `grid` $grid `vector` $vector
    `workgroups` $workgroups (`target` $target^)? (`streamed` $streamed^)?
    (`numerics` $numerics^)? attr-dict `:` functional-type($inputs, $results) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_ExprOp : Tile_Op<"expr", [Pure, SingleBlock]> {
  let summary = "a tensor expression: how each element of the results is computed from elements of the inputs";
  let description = [{
    Souffle's TE (section 3). The body computes one point of `domain`; its
    arguments are the input elements at `maps` (quasi-affine in the domain's
    dims), then, for a reduction, the accumulators, which start at `inits`; one
    may be wider than the result, which is then rounded once, at the end. An
    input with a guard is read only where its integer set holds, and is zero
    elsewhere; that is what pad and concat become (the body chooses with
    `tile.within`). Without `reduce` the expression is *one-relies-on-one*.
    `dims` places each dim in the index space of the enclosing subprogram.
    `in_order` forbids that points are accumulated in another order than the
    domain's, its last dim fastest; sums and products may be regrouped otherwise.

    Constraints: (E1) one map, and one guard or unit, per input, over as many
    dims as the domain, with as many results as the input's rank; (E2) every
    access stays inside its input wherever its guard holds; (E3) result maps are
    projected permutations (zeros allowed for unit dims) that use every
    parallel dim and no reduced one, and give exactly the result's shape;
    (E4) a reduction has an init per result, other expressions none; (E5) body
    arguments are the input elements then the accumulators, of the results'
    types or wider floats, and its terminator yields one element per result, or
    the next value of each accumulator; (E6) `dims` has one entry per domain dim,
    without repetition: a dim of the index space of the same extent, or -1
    for a dim of extent 1 that needs no place; (E7) a tiling has one size per domain dim;
    (E8) only reductions are in order; (E9) only a reduction of one result over two inputs
    has a micro kernel, which computes it in a loop nest of its own.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$domain,
    DenseI64ArrayAttr:$reductions, AffineMapArrayAttr:$maps, ArrayAttr:$guards,
    AffineMapArrayAttr:$result_maps, ArrayAttr:$inits, UnitAttr:$in_order,
    OptionalAttr<DenseI64ArrayAttr>:$dims, OptionalAttr<ArrayAttr>:$tilings,
    OptionalAttr<StrAttr>:$micro_kernel);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `domain` $domain `reduce` $reductions `(` $inputs `)` `maps` $maps `guards` $guards
    `into` $result_maps `inits` $inits (`in_order` $in_order^)? (`dims` $dims^)? (`tilings` $tilings^)?
    attr-dict `:` functional-type($inputs, $results) $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isReduction() { return !getReductions().empty(); }
    ::mlir::AffineMap getInputMap(unsigned i);
    ::mlir::AffineMap getResultMap(unsigned i);
    /// The guard of input `i`; null when it is always read.
    ::mlir::IntegerSet getGuard(unsigned i);
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
  }];
}

def Tile_ConnectOp : Tile_Op<"connect", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "an edge between two expressions, with the scope at which its tile is handed over";
  let description = [{
    Welder's SetConnect (section 3.2). `thread` means that the consumer computes
    the producer's element itself (`recompute`) or finds it in its own register
    (`reuse`); `block` that the tile stays in a buffer of the workgroup. `unrounded`
    hands a bf16 or f16 value over as it is before its rounding. There
    are no `launch` and `host` connects: those edges leave the subprogram.
    Constraints: (C1) the scope is inside a kernel; (C2) only bf16 and f16
    values are unrounded, at scope `thread`.
  }];
  let arguments = (ins AnyRankedTensor:$value, Tile_ScopeAttr:$scope, UnitAttr:$recompute, UnitAttr:$unrounded);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$value $scope (`recompute` $recompute^)? (`unrounded` $unrounded^)? attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator,
    ParentOneOf<["SubprogramOp", "ExprOp", "ComputeOp"]>]> {
  let summary = "ends a body with the values it gives";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange{}); }]>];
}

def Tile_IndexOp : Tile_Op<"index", [Pure, ParentOneOf<["ExprOp", "ComputeOp"]>]> {
  let summary = "a quasi-affine function of the current point of the domain";
  let description = [{Constraint: (I1) the map has one result over the dims of the domain.}];
  let arguments = (ins AffineMapAttr:$map);
  let results = (outs Index:$result);
  let assemblyFormat = "$map attr-dict";
  let hasVerifier = 1;
}

def Tile_WithinOp : Tile_Op<"within", [Pure, ParentOneOf<["ExprOp", "ComputeOp"]>]> {
  let summary = "whether the current point of the domain lies in an integer set";
  let description = [{Constraint: (W1) the set is over the dims of the domain.}];
  let arguments = (ins IntegerSetAttr:$set);
  let results = (outs I1:$result);
  let assemblyFormat = "$set attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Level 3: the tile program
//===----------------------------------------------------------------------===//

def Tile_ProgramOp : Tile_Op<"program", [IsolatedFromAbove, Symbol, NoTerminator, SingleBlock]> {
  let summary = "one kernel as explicit data movement between memory spaces";
  let description = [{
    Block arguments are the bindings: dense `global` slices, inputs first, then
    `outputs` outputs. A `tile.parallel` runs on its own range of workgroups, side
    by side with those of its phase; phases, with a `tile.sync <grid>` between two
    of them, run one after another: later ones may read outputs of earlier ones.
    `in_place` lists how launches let outputs take the memory of inputs: bindings
    that are one memory then. Buffers of one `tile.kept` number, each in the walk of
    another phase, are one memory, which a workgroup keeps from phase to phase.
    Constraints: (P1) arguments are dense global slices; (P2) outputs is at most
    their number; (P3) the body holds `tile.parallel`, and `tile.sync <grid>` between;
    (P4) each entry of `in_place` is as H2 says of `tied`; (P5) buffers of one
    `tile.kept` number take as many bytes, in parts that are the first of their
    phases and have one tile for each workgroup, all of them as many.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$outputs, OptionalAttr<Tile_TargetAttr>:$target,
    OptionalAttr<TypedArrayAttrBase<DenseI64ArrayAttr, "ties of outputs to inputs">>:$in_place);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `outputs` $outputs (`target` $target^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Workgroups of the widest phase: those of its parts together.
    int64_t getWorkgroups();
    /// Bytes of the block-space buffers of one workgroup, after allocation.
    int64_t getBlockBytes();
  }];
}

def Tile_LaunchOp : Tile_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a tile program as one kernel";
  let description = [{
    `tied` has for each result the input whose memory it takes, or -1. That input
    is the tensor's last use.
    Constraints: (H1) where the symbol is a `tile.program`, its bindings are the
    inputs, then the results; (H2) `tied` has an entry for each result: -1, or
    an input of its type that no other result takes; (H3) the program lists it
    among its `in_place`.
  }];
  let arguments = (ins SymbolRefAttr:$program, Variadic<AnyRankedTensor>:$inputs,
    OptionalAttr<DenseI64ArrayAttr>:$tied);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$program `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

def Tile_ParallelOp : Tile_Op<"parallel", [NoTerminator, SingleBlock]> {
  let summary = "a grid of tiles, shared out in contiguous ranges to workgroups";
  let description = [{
    The grid has one dim per entry of `extents`, cut into tiles of `tiles`
    elements. The body runs once per workgroup: what stands before its
    `tile.walk` serves all tiles of the workgroup.
    With `steps`, a tile is the sum of so many steps of a contraction's terms, and
    what is shared out are the steps of all tiles, one tile after another
    (stream-K): a workgroup may begin or end within a tile. What it adds to a tile
    that it does not begin is its row of `partials`, which who begins the tile adds
    up behind a barrier of the grid.
    Constraints: (L1) extents and tiles are of one length and positive, tiles no
    larger than extents; (L2) at least one workgroup, no more than tiles, or steps
    of all tiles; (L3) the body ends in its only `tile.walk`; (L4) `partials` has a
    row for each workgroup, and there are `steps`.
  }];
  let arguments = (ins DenseI64ArrayAttr:$extents, DenseI64ArrayAttr:$tiles, I64Attr:$workgroups,
    OptionalAttr<I64Attr>:$steps, Optional<Tile_SliceType>:$partials);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $extents `tiles` $tiles `workgroups` $workgroups (`steps` $steps^)? (`partials` $partials^ `:` type($partials))?
    attr-dict-with-keyword $body
  }];
  let builders = [OpBuilder<(ins "llvm::ArrayRef<int64_t>":$extents, "llvm::ArrayRef<int64_t>":$tiles,
    "int64_t":$workgroups)>];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getNumTiles();
    /// What workgroups share: tiles, or the steps of all of them.
    int64_t getNumUnits() { return getNumTiles() * getSteps().value_or(1); }
    WalkOp getWalk();
  }];
}

def Tile_WalkOp : Tile_Op<"walk", [NoTerminator, SingleBlock, HasParent<"ParallelOp">]> {
  let summary = "runs its body for each tile of the workgroup, one after another";
  let description = [{
    The arguments are the first index of the tile along each grid dim.
    Constraint: (N1) one index argument per dim of the grid.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Tile_KeepOp : Tile_Op<"keep", [NoTerminator, SingleBlock, HasParent<"WalkOp">]> {
  let summary = "computes what the tiles along the last grid dims keep";
  let description = [{
    Runs its body for the first of the tiles along the last `along` dims of the
    grid, and for the workgroup's first tile: what it writes, to buffers from
    before the walk, serves the tiles that follow.
    Constraint: (F1) along counts dims of the grid, one at least.
  }];
  let arguments = (ins I64Attr:$along);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`along` $along attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Tile_AllocOp : Tile_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a buffer of the workgroup";
  let description = [{
    `offset` is its place in the workgroup's memory, set by buffer allocation.
    Constraint: (B1) the slice is dense and in block space.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs Tile_SliceType:$slice);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` type($slice)";
  let hasVerifier = 1;
}

def Tile_ComputeOp : Tile_Op<"compute", [SingleBlock, AttrSizedOperandSegments]> {
  let summary = "a loop nest over one tile: loads, elementwise arithmetic, stores and reductions";
  let description = [{
    Runs its body once per point of the tile: dim `i` goes from its offset (0,
    or the operand listed for it in `offset_dims`, a multiple of the size) over
    `sizes[i]` elements, never past `extents[i]`. Maps and sets inside are over
    the dims and, as symbols, the offsets: a global slice is indexed by dims alone, a block slice
    by dims less offsets. Reductions carry accumulators, from `inits`, or, where
    that is `unit`, from what is in the slice (a micro kernel's sums alone); after
    the loops over the `reductions` dims each is stored to its slice of `accs`
    at its map. `kinds` names a combiner that may be reassociated over lanes
    (`add`, `mul`, `min`, `max`, `and`, `or`, `xor`); "none" forbids it.

    A `running` maximum m is used before it is complete: what else reads its next
    value finds a *reference* r in its place, one number for every `block` points,
    no larger than m is after them, smaller at most by a small constant, and never
    below the lowest finite number. The body may store it. Sums that depend on it
    are taken to be proportional to exp(-r): they are multiplied by exp(r - r')
    where the reference moves to r', and by exp(r - m) at the end, so that what
    lies in their slices is relative to m.

    Constraints: (K1) extents and sizes are of one length, sizes positive and no
    larger than extents; (K2) offsets and offset_dims match; (K3) one map, init
    and kind per accumulator, and body arguments that match; (K4) maps of
    accumulators use no reduced dim; (K5) the vector dim is a dim or -1; (K6) a
    running accumulator is a maximum of f32 in a nest that reduces the vector dim
    alone, and accumulators that depend on it are sums of f32 from zero. Where
    `micro_kernel` names one and the body is a sum of products that it computes,
    that is how it is computed.
  }];
  let arguments = (ins Variadic<Index>:$offsets, Variadic<Tile_SliceType>:$accs,
    DenseI64ArrayAttr:$extents, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$offset_dims,
    DenseI64ArrayAttr:$reductions, I64Attr:$vector,
    DefaultValuedAttr<AffineMapArrayAttr, "{}">:$acc_maps, DefaultValuedAttr<ArrayAttr, "{}">:$inits,
    DefaultValuedAttr<StrArrayAttr, "{}">:$kinds,
    OptionalAttr<StrAttr>:$micro_kernel, OptionalAttr<Tile_RunningAttr>:$running);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $extents `sizes` $sizes `offsets` $offset_dims `(` $offsets `)` `vector` $vector
    `reduce` $reductions (`into` `(` $accs^ `:` type($accs) `)` `at` $acc_maps `inits` $inits `kinds` $kinds)?
    (`running` $running^)? attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
    /// The ops of the body that depend on the next value of the running maximum, in order; without one, none.
    ::llvm::SetVector<::mlir::Operation *> getRelativeOps();
    bool isReduced(int64_t dim) { return ::llvm::is_contained(getReductions(), dim); }
  }];
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>, HasParent<"ComputeOp">]> {
  let summary = "moves one element of the current point from a slice to the thread";
  let description = [{
    Where the guard does not hold nothing is read and the value is zero.
    Constraint: (M1) the map has one result per dim of the slice and, like the
    guard, ranges over the dims and offsets of the compute op.
  }];
  let arguments = (ins Tile_SliceType:$slice, AffineMapAttr:$map, OptionalAttr<IntegerSetAttr>:$guard);
  let results = (outs AnyType:$value);
  let assemblyFormat = "$slice `at` $map (`guard` $guard^)? attr-dict `:` type($slice) `->` type($value)";
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store", [MemoryEffects<[MemWrite]>, HasParent<"ComputeOp">]> {
  let summary = "moves one element of the current point from the thread to a slice";
  let description = [{
    A `streamed` store goes past the caches where the machine can.
    Constraints: (M2) as M1, and the element types agree; (M3) only stores to
    global slices are streamed.
  }];
  let arguments = (ins AnyType:$value, Tile_SliceType:$slice, AffineMapAttr:$map, UnitAttr:$streamed);
  let assemblyFormat = "$value `,` $slice `at` $map (`streamed` $streamed^)? attr-dict `:` type($value) `,` type($slice)";
  let hasVerifier = 1;
}

def Tile_MoveOp : Tile_Op<"move", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copies a whole slice to another of the same shape";
  let description = [{Constraint: (V1) shapes and element types agree, and both slices are dense.}];
  let arguments = (ins Tile_SliceType:$source, Tile_SliceType:$target);
  let assemblyFormat = "$source `,` $target attr-dict `:` type($source) `,` type($target)";
  let hasVerifier = 1;
}

def Tile_SyncOp : Tile_Op<"sync", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what the units of a scope wrote before it, all of them see after it";
  let description = [{Constraint: (Y1) the scope is inside a kernel.}];
  let arguments = (ins Tile_ScopeAttr:$scope);
  let assemblyFormat = "$scope attr-dict";
  let hasVerifier = 1;
}

#endif
