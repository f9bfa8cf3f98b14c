// Passes that map tile programs to GPUs.
#ifndef TILEWRIGHT_PROGRAM_GPU_PASSES_TD
#define TILEWRIGHT_PROGRAM_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def AllocatePartials : Pass<"tile-allocate-partials", "::mlir::ModuleOp"> {
  let summary = "Give parts whose workgroups share tiles a buffer for partial sums";
  let description = [{
    Input: `tile.program`s with allocated buffers next to their launches; a part may
    state the number of `steps` of its tiles, which workgroups then share (stream-K).
    Output: the number of steps that the contraction takes as it will be emitted, at
    most as many workgroups as are certain to be resident, and `partials`: one more
    output of the program, and result of its launches, that nothing reads. A tile
    must be a single contraction in one loop of steps, alone in its phase; other
    tiles stay whole, with a missed remark.
    See test/passes/program/gpu/allocate-partials.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">];
  let statistics = [Statistic<"numShared", "shared", "parts whose workgroups share tiles">,
                    Statistic<"numDeclined", "declined", "parts that request it whose tiles stay whole">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
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
    blocks). If a block has too little memory, there is a missed remark. Programs for
    a CPU do not change.
    See test/passes/program/gpu/stage-tiles.mlir and test/passes/codegen/gpu/clusters.mlir.
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
    `tile.resident` on two parts (a number, and the binding that is the same tensor)
    that a block reads the same elements in two phases. Output: the first part stores
    the tile that it reads in a buffer with that number (`tile.resident_tile`; if it already
    holds the tile in a buffer, that one gets the number), and the second part reads
    it there. If it is not certain that all blocks stay resident with the additional
    shared memory, or the reads are not those of a tile's own points, the second part
    reads the binding as before, with a missed remark. Without `grid-sync`, no tile
    is kept. See test/passes/program/gpu/keep-resident-tiles.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "allow kernels to wait at a grid barrier">];
  let statistics = [Statistic<"numResident", "resident", "tiles that stay resident">,
                    Statistic<"numDeclined", "declined", "tiles that are read again">];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def PartitionAtGridSync : Pass<"tile-partition-at-grid-sync", "::mlir::ModuleOp"> {
  let summary = "Cut tile programs at grid barriers that are not safe";
  let description = [{
    Input: `tile.program`s with allocated buffers, in a module of their own next to
    their launches or alone, whose parts are phases with `tile.sync <grid>` between
    them. Output: programs whose phases share a kernel only if all their blocks are
    certain to be resident at once on every device of the target, considering threads,
    shared memory and registers (a bound that launch bounds enforce). The plan has
    decided that they pay.
    Every other barrier becomes a launch: the part behind it becomes a
    program of its own, with a missed remark that gives the reason, and the tensors
    that the phases hand over become results of one program and inputs of the other.
    Phases that stay together have at most as many workgroups as can be resident.
    Without `grid-sync`, and on targets without a grid barrier, all barriers are cut.
    See test/passes/program/gpu/partition-at-grid-sync.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"sm_80\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "allow kernels to wait at a grid barrier">];
  let statistics = [Statistic<"numKept", "kept", "grid barriers kept">,
                    Statistic<"numCut", "cut", "barriers that became launches, each with a missed remark">];
}

#endif
