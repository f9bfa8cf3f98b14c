// Passes of passes/program/gpu: tile programs for GPUs.
#ifndef TILEWRIGHT_PROGRAM_GPU_PASSES_TD
#define TILEWRIGHT_PROGRAM_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def AllocatePartials : Pass<"tile-allocate-partials", "::mlir::ModuleOp"> {
  let summary = "Give tiles whose steps are shared out a buffer for what workgroups add to each other's";
  let description = [{
    Arrives: `tile.program`s with allocated buffers next to their launches, in
    which a part may say in how many `steps` its tiles are. Leaves: there the steps
    that the contraction takes as it is emitted, no more workgroups than are sure
    to be resident, and `partials`: one more output of the program, and result of
    its launches, which nobody reads. Where a tile is not one contraction in one
    loop of steps, alone in its phase, its tiles stay whole, with a missed remark.
    See test/passes/program/gpu/allocate-partials.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numShared", "shared", "parts whose workgroups share tiles">,
                    Statistic<"numDeclined", "declined", "the same, whose tiles stay whole">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def PipelineLoads : Pass<"tile-pipeline-loads", "::tilewright::tile::ProgramOp"> {
  let summary = "Begin the copies for a contraction while the one before it is multiplied";
  let description = [{
    Arrives: `tile.program`s with allocated buffers. Leaves: on each contraction
    behind another one of its block, `tile.prefetch`: the operands ("rows",
    "lanes") whose first steps are copied to shared memory while the last steps
    of the one before are multiplied (Souffle 6.5); on the first contraction of a
    phase, before the barrier of the grid in front of it. Those are operands that
    come by `cp.async` and that nothing in the kernel writes, such as weights. The
    slots of both are live at once: a missed remark where a block has no room for
    that, or where fewer blocks would be resident. On a CPU nothing changes.
    See test/passes/program/gpu/pipeline-loads.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numPipelined", "pipelined", "contractions whose copies begin ahead">,
                    Statistic<"numDeclined", "declined", "the same, for which there is no room">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def StageTiles : Pass<"tile-stage-tiles", "::tilewright::tile::ProgramOp"> {
  let summary = "Let a block copy tiles that its threads would touch a few bytes at a time";
  let description = [{
    Arrives: `tile.program`s without places for buffers. Leaves: what a tile
    reads or writes of a binding, where that is one run of memory, copied as a
    whole between it and a buffer wherever the nests would touch more 32-byte
    sectors themselves: rows that are not aligned, rows of a few elements, inputs
    that several rows read. Buffers that held such an input before are dropped,
    and an output takes the buffer of an input that is read last at the same
    point. The buffer starts as many bytes past a multiple of 16 as the run does
    (`tile.aligned_as`), so that the copy is of whole vectors. On targets with
    clusters, what all blocks read is copied once a cluster, between two
    `tile.sync <cluster>`, if they would read too much again otherwise
    (`tile.cluster` on the part: of how many blocks). A missed remark
    where the block's memory does not suffice. On a CPU nothing is staged.
    See test/passes/program/gpu/stage-tiles.mlir and test/passes/codegen/gpu/clusters.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numStaged", "staged", "inputs and outputs that are copied as a whole">,
                    Statistic<"numDeclined", "declined", "the same, for which there is no memory">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def KeepResidentTiles : Pass<"tile-keep-resident-tiles", "::tilewright::tile::ProgramOp"> {
  let summary = "Keep tiles in shared memory across barriers of the grid";
  let description = [{
    Arrives: `tile.program`s without places for buffers, in which the plan says
    (`tile.resident` on two parts: a number, and the binding that is the same tensor)
    that a block reads the same elements in two phases. Leaves: the first part
    stores its tile, as it reads it, in a buffer with that number (`tile.kept`;
    one in which it held the tile already takes it), and the second reads it there.
    Where all blocks are not sure to be resident with that much more shared memory,
    or the reads are not of a tile's own points, the second reads the binding as
    before, with a missed remark. Without `grid-sync` nothing is kept.
    See test/passes/program/gpu/keep-resident-tiles.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "whether kernels may wait at a barrier of the grid">];
  let statistics = [Statistic<"numKept", "kept", "tiles that blocks keep">,
                    Statistic<"numDeclined", "declined", "tiles that are read again">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def PartitionAtGridSync : Pass<"tile-partition-at-grid-sync", "::mlir::ModuleOp"> {
  let summary = "Cut tile programs at barriers of the grid that are not safe or do not pay";
  let description = [{
    Arrives: `tile.program`s with allocated buffers, in a module of their own
    next to their launches or alone, whose parts are phases with
    `tile.sync <grid>` between them. Leaves: programs whose phases share a kernel
    only where the blocks of all of them are sure to be resident at once on every
    device that the target stands for, by threads, shared memory and registers
    (`tile.registers` on a part, as `ptxas` says, else a bound that launch bounds
    enforce), and, with `by-cost`, where the evaluator predicts no more time than
    for two launches (Souffle 5.4: breadth first, greedily). Every other barrier
    becomes a launch: a program of its own, with a missed remark that says why,
    and what the phases hand over is a result of one and an input of the other.
    Workgroups of phases that stay are no more than can be resident. Without
    `grid-sync`, and on targets without a barrier, all barriers are cut.
    See test/passes/program/gpu/partition-at-grid-sync.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "whether kernels may wait at a barrier of the grid">,
                 Option<"byCost", "by-cost", "bool", "true", "also cut where a barrier is predicted not to pay">];
  let statistics = [Statistic<"numKept", "kept", "barriers kept">,
                    Statistic<"numCut", "cut", "barriers that became launches, each with a missed remark">];
}

#endif
