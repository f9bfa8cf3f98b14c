// Passes that map tile programs to GPUs.
#ifndef TILEWRIGHT_PROGRAM_GPU_PASSES_TD
#define TILEWRIGHT_PROGRAM_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def AllocatePartials : Pass<"tile-allocate-partials", "::mlir::ModuleOp"> {
  let summary = "Give parts whose workgroups share tiles a buffer for partial sums";
  let description = [{
    Input: `tile.program`s with allocated buffers next to their launches; a part may
    state the number of `steps` of its tiles, which workgroups then share (stream-K).
    Output: `partials` of such a part: one more output of the program, and result of
    its launches, that nothing reads. It is an error if a tile is not a single
    contraction in one loop of so many steps, alone in its phase, or if workgroups
    of the kernel take no part.
    See test/passes/program/gpu/allocate-partials.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numShared", "shared", "parts whose workgroups share tiles">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def ReduceAcrossBlocks : Pass<"tile-reduce-across-blocks", "::mlir::ModuleOp"> {
  let summary = "Complete reductions of rows that several blocks share, at a grid barrier";
  let description = [{
    Input: `tile.program`s next to their launches, whose buffers have no offsets yet. In
    a part with one tile for each workgroup, a nest may reduce a dim of the grid, so
    that a block has a part of each row. Output: in front of the first nest that reads
    the result, each block stores its partial results to one more output of the
    program, which nothing else reads; behind a `tile.sync <grid>`, each block combines
    those of its rows. Reductions that do not depend on each other share a barrier. So
    does a sum of squares of differences from a mean with that mean's own sum, if its
    nest has the form `two-moment variance`.

    It is an error if a reduction has to be computed in order, is a contraction, or
    leaves the kernel, and if a block has several tiles.
    See test/passes/program/gpu/reduce-across-blocks.mlir and
    reduce-across-blocks-errors.mlir.
  }];
  let statistics = [Statistic<"numExchanges", "exchanges", "grid barriers at which blocks exchange partial results">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def StageTiles : Pass<"tile-stage-tiles", "::tilewright::tile::ProgramOp"> {
  let summary = "Let a block copy tiles as a whole that its threads would access in small pieces";
  let description = [{
    Input: `tile.program`s whose buffers have no offsets yet. Output: the tile of a
    binding that is contiguous is copied as a whole between the binding and a buffer,
    if the nests themselves would touch more 32-byte sectors: rows that are not
    aligned, rows of a few elements, inputs that several rows read. A buffer that held
    such an input before is removed, and an output takes the buffer of an input that
    is read for the last time at the same point. The buffer starts as many bytes after
    a multiple of 16 as the tile does (`tile.aligned_as`), so that the copy consists
    of whole vectors. On targets with clusters, an input that all blocks read is
    copied once per cluster, between two `tile.sync <cluster>`, if its repeated reads
    would cost too much otherwise (`tile.cluster` on the part is the number of
    blocks). If a block has too little memory, there is a missed remark. Where the
    plan states the access to a tensor (`tile.accesses`), it is as stated, or an
    error. Programs for a CPU do not change.
    See test/passes/program/gpu/stage-tiles.mlir, stage-tiles-errors.mlir and
    test/passes/codegen/gpu/clusters.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numStaged", "staged", "inputs and outputs that are copied as a whole">,
                    Statistic<"numDeclined", "declined", "inputs and outputs whose copies have no room">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def KeepResidentTiles : Pass<"tile-keep-resident-tiles", "::tilewright::tile::ProgramOp"> {
  let summary = "Keep tiles in shared memory across grid barriers";
  let description = [{
    Input: `tile.program`s whose buffers have no offsets yet. The plan states with
    `tile.resident` on several parts (a number, and the binding that is the same
    tensor) that a block accesses the same elements in their phases. Output: the first
    part leaves the tile that it stores or loads in a buffer with that number
    (`tile.resident_tile`; if it already holds the tile in a buffer, that one gets the
    number), and the others read it there. It is an error if it is not certain that all blocks stay resident with
    the additional shared memory, or if the accesses are not those of a tile's own
    points. See test/passes/program/gpu/keep-resident-tiles.mlir and
    keep-resident-tiles-errors.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numResident", "resident", "tiles that stay resident">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def TrimBindings : Pass<"tile-trim-bindings", "::mlir::ModuleOp"> {
  let summary = "Remove inputs that programs do not read, and find those that loops do not change";
  let description = [{
    Input: `tile.program`s in a module of their own next to their launches or alone.
    Output: programs and launches without the inputs that nothing reads, for example
    because another phase keeps their tiles in shared memory. A program whose launch
    is alone in a loop that is to become part of its kernel states its inputs that do
    not change in the loop (`tile.repeated`).
    See test/passes/program/gpu/trim-bindings.mlir.
  }];
  let statistics = [Statistic<"numRemoved", "removed", "inputs of programs that nothing reads">];
}

def KeepWeights : Pass<"tile-keep-weights", "::tilewright::tile::ProgramOp"> {
  let summary = "Keep weights in shared memory over all steps of a loop";
  let description = [{
    Input: `tile.program`s whose buffers have offsets. In a program that is to run all
    steps of a loop (`tile.repeated`), contractions are marked (`tile.resident_weight`)
    whose rhs does not change in the loop, if each block multiplies one tile of it and
    all blocks remain resident at once with it: blocks copy it in the first step only.
    See test/passes/program/gpu/keep-weights.mlir and keep-weights-errors.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numKept", "kept", "weights that blocks copy once">,
                    Statistic<"numDeclined", "declined", "weights for which a block has no room">];
}

#endif
