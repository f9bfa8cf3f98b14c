// Ops of the dialect, with numbered constraints that the verifiers check. test/dialects has an error for each.
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
  let summary = "a fusion group: tensor expressions, the scopes between them, and the iteration space they share";
  let description = [{
    The unit of code generation (Souffle 5.4). All expressions share one
    *iteration space* with an extent per dim (`extents`). Independent workgroups
    walk the `grid` dims in tiles of `tiles` elements. All other dims are whole
    inside a tile, except for at most one, which a tile may walk in blocks of
    `tiles` elements one after another, so that sums along it grow from block to
    block. `vector` names the dim whose elements fill vector lanes. Adjacent
    subprograms with the same name are groups of one kernel: they run side by
    side, or, if they depend on each other, in phases.

    Constraints: (S1) block arguments match the operands; (S2) the terminator
    yields the results; (S3) extents and tiles have the same length and are
    positive, tiles no larger than extents; (S4) grid and vector are dims of the
    space, without repetition; (S5) a dim that is not in grid has a tile of its
    full extent, except for one that tiles walk in blocks; (S6) ops inside are
    `tile.expr`, `tile.connect` and the terminator; (S7) `streamed` names
    results, which are written past the caches because no cache can hold them
    until they are read; (S8) if `numerics` keeps roundings, no connect is
    unrounded. Without `numerics`, only the bodies define the numerics.
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
  let summary = "a tensor expression: the computation of each element of the results from elements of the inputs";
  let description = [{
    Souffle's TE (section 3). The body computes one point of `domain`. Its
    arguments are the input elements at `maps` (quasi-affine in the domain's
    dims), followed, for a reduction, by the accumulators, which start at
    `inits`. An accumulator may be wider than its result, which is then rounded
    once, at the end. An input with a guard is read only where its integer set
    holds, and is zero elsewhere; pads and concats become such inputs (the body
    chooses with `tile.within`). An input whose argument is the tensor itself is a
    *table*: the body reads it with `tile.gather`, at coordinates that it computes;
    its map has those coordinates that are known, and zero for others. Without `reduce` the expression is
    *one-relies-on-one*. `dims` maps each dim to a dim of the iteration space of
    the enclosing subprogram. `in_order` requires that points are accumulated in
    the order of the domain, its last dim fastest; without it, sums and products
    may be regrouped.

    Constraints: (E1) one map, and one guard or unit, per input, over as many
    dims as the domain, with as many results as the input's rank; (E2) every
    access stays inside its input wherever its guard holds; (E3) result maps are
    projected permutations (zeros allowed for unit dims) that use every
    parallel dim and no reduced one, and give exactly the result's shape;
    (E4) a reduction has an init per result, other expressions none; (E5) body
    arguments are the input elements or tables, then the accumulators, which have the
    results' types or wider floats, and its terminator yields one element per
    result, or the next value of each accumulator; (E6) `dims` has one entry per
    domain dim, without repetition: a dim of the iteration space of the same
    extent, or -1 for a dim of extent 1 that is not mapped; (E7) a tiling has one
    size per domain dim; (E8) only reductions are in order; (E9) only a reduction
    of one result over two inputs has a micro kernel, which computes it in a loop
    nest of its own; (E10) `gemm` says how a block's threads run a micro kernel.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$domain,
    DenseI64ArrayAttr:$reductions, AffineMapArrayAttr:$maps, ArrayAttr:$guards,
    AffineMapArrayAttr:$result_maps, ArrayAttr:$inits, UnitAttr:$in_order,
    OptionalAttr<DenseI64ArrayAttr>:$dims, OptionalAttr<ArrayAttr>:$tilings,
    OptionalAttr<StrAttr>:$micro_kernel, OptionalAttr<Tile_GemmAttr>:$gemm);
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
    /// Returns true if the body reads input `i` at coordinates that it computes.
    bool isTable(unsigned i) {
      return ::mlir::isa<::mlir::TensorType>(getBodyBlock().getArgument(i).getType());
    }
    /// Returns the guard of input `i`; null if it is always read.
    ::mlir::IntegerSet getGuard(unsigned i);
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
  }];
}

def Tile_ConnectOp : Tile_Op<"connect", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "an edge between two expressions, with the scope at which its tile is handed over";
  let description = [{
    Welder's SetConnect (section 3.2). With scope `thread`, the consumer computes
    the producer's element itself (`recompute`) or finds it in its own register
    (`reuse`); with `block`, the tile is in a buffer of the workgroup. `unrounded`
    hands over a bf16 or f16 value before its rounding. There are no `launch` and
    `host` connects, because those edges leave the subprogram.
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
  let summary = "terminates a body and yields its values";
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

def Tile_GatherOp : Tile_Op<"gather", [MemoryEffects<[MemRead]>, ParentOneOf<["ExprOp", "ComputeOp"]>]> {
  let summary = "the element of a table at coordinates that the body computes";
  let description = [{
    The table is an argument of the expression's body or, in a program, a slice of
    global memory that the kernel does not write. A coordinate that may leave the
    table is brought into its range, so nothing outside of it is read.
    Constraint: (G1) there is one index per dim of the table, and the result is its
    element; a slice is in global space.
  }];
  let arguments = (ins AnyTypeOf<[AnyRankedTensor, Tile_SliceType]>:$table, Variadic<Index>:$indices);
  let results = (outs AnyType:$value);
  let assemblyFormat = "$table `[` $indices `]` attr-dict `:` type($table) `->` type($value)";
  let hasVerifier = 1;
}

def Tile_WithinOp : Tile_Op<"within", [Pure, ParentOneOf<["ExprOp", "ComputeOp"]>]> {
  let summary = "true if the current point of the domain is in an integer set";
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
    Block arguments are the bindings: dense `global` slices, first the inputs,
    then `outputs` outputs. A `tile.parallel` is a part of the program and runs on
    its own range of workgroups, side by side with the other parts of its phase.
    Phases are separated by `tile.sync <grid>` and run one after another, so later
    ones may read outputs of earlier ones. Each entry of `in_place` is a way in
    which launches let outputs take the memory of inputs; an input and an output
    then share their binding. Buffers with the same `tile.resident_tile` number, each in
    the walk of another phase, share their memory: they hold a resident tile,
    which a workgroup keeps from phase to phase. At a `tile.sync <grid>` in the walk
    of a part, the workgroups that share a row exchange partial results of it.
    Constraints: (P1) arguments are dense global slices; (P2) outputs is at most
    their number; (P3) the body holds `tile.parallel`s, and `tile.sync <grid>`
    between them; (P4) each entry of `in_place` satisfies H2, as `tied` does; (P5)
    buffers with the same `tile.resident_tile` number have the same size and are in the
    first parts of their phases, which have one tile for each workgroup and the
    same number of tiles; (P6) a part with a grid barrier in its walk is alone in its
    phase and has one tile for each workgroup.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$outputs, OptionalAttr<Tile_TargetAttr>:$target,
    OptionalAttr<TypedArrayAttrBase<DenseI64ArrayAttr, "ties of outputs to inputs">>:$in_place);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `outputs` $outputs (`target` $target^)? attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the workgroups of the phase with the most workgroups, summed over its parts.
    int64_t getWorkgroups();
    /// Returns the bytes of one workgroup's block-space buffers, after allocation.
    int64_t getBlockBytes();
  }];
}

def Tile_LaunchOp : Tile_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a tile program as one kernel";
  let description = [{
    `tied` states for each result the input whose memory it takes, or -1. The
    launch must be the last use of that input's tensor.
    Constraints: (H1) if the symbol is a `tile.program`, its bindings are the
    inputs, then the results; (H2) `tied` has an entry for each result: -1, or
    an input of its type that no other result takes; (H3) the program's
    `in_place` contains it.
  }];
  let arguments = (ins SymbolRefAttr:$program, Variadic<AnyRankedTensor>:$inputs,
    OptionalAttr<DenseI64ArrayAttr>:$tied);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$program `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

def Tile_ParallelOp : Tile_Op<"parallel", [NoTerminator, SingleBlock]> {
  let summary = "a grid of tiles, distributed in contiguous ranges to workgroups";
  let description = [{
    The grid has one dim per entry of `extents`, divided into tiles of `tiles`
    elements. The body runs once per workgroup, and ops before its `tile.walk`
    serve all tiles of the workgroup.
    With `steps`, every tile has this many steps along the K dim of a contraction,
    and the steps of all tiles, tile by tile, are distributed to workgroups
    (stream-K), so that a workgroup may begin or end within a tile. A workgroup
    writes what it accumulates of a tile that another one begins to its row of
    `partials`; the workgroup that begins the tile adds the partials after a grid
    barrier.
    Constraints: (L1) extents and tiles have the same length and are positive,
    tiles no larger than extents; (L2) at least one workgroup, and no more than
    there are tiles or, with `steps`, steps of all tiles; (L3) the body ends in
    its only `tile.walk`; (L4) `partials` requires `steps` and has a row for each
    workgroup.
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
    /// Returns the number of units that are distributed to workgroups: tiles, or the steps of all tiles.
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
  let summary = "computes values that tiles along the last grid dims share";
  let description = [{
    Runs its body for the first of the tiles along the last `along` dims of the
    grid, and for the workgroup's first tile. The tiles that follow read its
    results from buffers that are allocated before the walk.
    Constraint: (F1) `along` is between 1 and the number of grid dims.
  }];
  let arguments = (ins I64Attr:$along);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`along` $along attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Tile_AllocOp : Tile_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a buffer of the workgroup";
  let description = [{
    `offset` is its offset in the workgroup's memory in bytes, set by buffer
    allocation.
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
    Runs its body once per point of the tile. Dim `i` starts at its offset (0, or
    the operand listed for it in `offset_dims`, a multiple of the size) and covers
    `sizes[i]` elements, but never exceeds `extents[i]`. Maps and sets inside are
    over the dims and, as symbols, the offsets: a global slice is indexed by dims
    only, a block slice by dims minus offsets. Reductions have accumulators, which
    start at `inits` or, if that is `unit`, at the values in the slice (allowed
    only for micro kernels). After the loops over the `reductions` dims, each
    accumulator is stored to its slice of `accs` at its map. `kinds` names a
    combiner that may be reassociated over lanes (`add`, `mul`, `min`, `max`,
    `and`, `or`, `xor`); "none" forbids it. If `micro_kernel` names a micro kernel
    and the body is a sum of products that it can compute, the micro kernel
    computes it.

    A `running` maximum m is used before it is complete (online softmax). All
    other readers of its next value read a *reference* r instead, one number for
    every `block` points. It is no larger than m is after these points, smaller by
    at most a small constant, and never below the lowest finite number. The body
    may store it. Sums that depend on the reference are assumed to be proportional
    to exp(-r): they are multiplied by exp(r - r') when the reference changes to
    r', and by exp(r - m) at the end, so that their slices hold sums relative to m.

    Constraints: (K1) extents and sizes have the same length, sizes are positive
    and no larger than extents; (K2) offsets and offset_dims match; (K3) one map,
    init and kind per accumulator, and body arguments that match; (K4) maps of
    accumulators use no reduced dim; (K5) the vector dim is a dim or -1; (K6) a
    running accumulator is a maximum of f32 in a nest that reduces only the vector
    dim, and accumulators that depend on it are sums of f32 from zero; (K7) `gemm`
    says how a block's threads run a micro kernel.
  }];
  let arguments = (ins Variadic<Index>:$offsets, Variadic<Tile_SliceType>:$accs,
    DenseI64ArrayAttr:$extents, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$offset_dims,
    DenseI64ArrayAttr:$reductions, I64Attr:$vector,
    DefaultValuedAttr<AffineMapArrayAttr, "{}">:$acc_maps, DefaultValuedAttr<ArrayAttr, "{}">:$inits,
    DefaultValuedAttr<StrArrayAttr, "{}">:$kinds,
    OptionalAttr<StrAttr>:$micro_kernel, OptionalAttr<Tile_GemmAttr>:$gemm,
    OptionalAttr<Tile_RunningAttr>:$running);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $extents `sizes` $sizes `offsets` $offset_dims `(` $offsets `)` `vector` $vector
    `reduce` $reductions (`into` `(` $accs^ `:` type($accs) `)` `at` $acc_maps `inits` $inits `kinds` $kinds)?
    (`running` $running^)? attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
    /// Returns the ops of the body that depend on the next value of the running maximum, in order.
    ::llvm::SetVector<::mlir::Operation *> getRelativeOps();
    bool isReduced(int64_t dim) { return ::llvm::is_contained(getReductions(), dim); }
  }];
  let hasVerifier = 1;
}

def Tile_LoadOp : Tile_Op<"load", [MemoryEffects<[MemRead]>, HasParent<"ComputeOp">]> {
  let summary = "moves one element of the current point from a slice to the thread";
  let description = [{
    Where the guard does not hold, nothing is read, and the value is zero.
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
    A `streamed` store bypasses the caches if the machine supports it.
    Constraints: (M2) as M1, and the element types agree; (M3) only stores to
    global slices are streamed.
  }];
  let arguments = (ins AnyType:$value, Tile_SliceType:$slice, AffineMapAttr:$map, UnitAttr:$streamed);
  let assemblyFormat = [{
    $value `,` $slice `at` $map (`streamed` $streamed^)? attr-dict `:` type($value) `,` type($slice)
  }];
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
  let summary = "synchronises the units of a scope: each sees afterwards what any of them wrote before";
  let description = [{Constraint: (Y1) the scope is inside a kernel.}];
  let arguments = (ins Tile_ScopeAttr:$scope);
  let assemblyFormat = "$scope attr-dict";
  let hasVerifier = 1;
}

#endif
