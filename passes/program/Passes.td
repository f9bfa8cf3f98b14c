// Passes of passes/program: planned graphs into tile programs, and what must hold of them.
#ifndef TILEWRIGHT_PROGRAM_PASSES_TD
#define TILEWRIGHT_PROGRAM_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerToProgram : Pass<"tile-lower-to-program", "::mlir::ModuleOp"> {
  let summary = "Lower each subprogram to a tile program with explicit movement";
  let description = [{
    Arrives: `tile.subprogram`s whose expressions are roots (thread edges have
    been composed away) placed in the index space. Leaves: a `tile.program` per
    kernel in the nested module `tilewright_kernels`, and a `tile.launch` in
    place of the subprograms. Roots of one phase with one domain share a loop
    nest and hand values over in registers; block edges become buffers; an
    input that several nests read is staged once per tile, one that every tile
    reads, once per workgroup; f16 and bf16 sums accumulate in f32. An input of
    several parts is one binding. Beside contractions on GPUs, the lanes of a nest
    are the dim along which most of what it touches lies. With the form
    `running maximum`, what is proportional to exp(-m) is computed in the nest
    that accumulates m, from references in its place, and corrected where later
    nests read it. A dim that tiles walk in blocks becomes a loop around the
    nests that have it; with the form `running maximum of blocks`, what was
    summed relative to m is rescaled whenever m has grown.
  }];
  let options = [Option<"workgroupStaging", "workgroup-staging", "int64_t", "131072",
                        "bytes of inputs that every tile reads that a workgroup keeps at most">,
                 Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
                        "target name or JSON file, whose registers say how many points share a reference">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
  let statistics = [Statistic<"programs", "programs", "tile programs made">];
}

def TieResults : Pass<"tile-tie-results", "::mlir::ModuleOp"> {
  let summary = "Let results take the memory of inputs that nobody reads any more";
  let description = [{
    Arrives: launches of tile programs in the nested module. Leaves: `tied` on a
    launch, and the same among its program's `in_place`, where an input comes
    from another launch, this launch alone reads it, and each tile has read all
    of its part of the input before it writes the same part of the output. The
    memory is in the caches then, and a chain of kernels needs one buffer.
  }];
  let statistics = [Statistic<"tied", "tied", "results that take the memory of an input">];
}

def AllocateBuffers : Pass<"tile-allocate-buffers", "::tilewright::tile::ProgramOp"> {
  let summary = "Give each buffer of a tile program its place in the workgroup's memory";
  let description = [{
    Arrives: `tile.alloc` without offsets. Leaves: every one with an offset,
    aligned to 64 bytes, so that buffers that are live together do not overlap
    (best fit over live ranges, largest first). A buffer lives until the units
    of the block meet at a `tile.sync` after its last use; buffers of the
    preamble live throughout.
  }];
  let statistics = [Statistic<"bytes", "bytes", "block-space bytes over all programs">,
                    Statistic<"shared", "bytes-shared", "bytes saved by sharing between live ranges">];
}

def VerifyPrograms : Pass<"tile-verify-programs", "::tilewright::tile::ProgramOp"> {
  let summary = "Check a tile program before target code is made of it";
  let description = [{
    Arrives and leaves: tile programs with allocated buffers. Refuses, with an
    error at the op: (R1) a write to an input; (R2) a read of a buffer that
    nothing wrote before the last `tile.sync`; (R3) an unguarded access that may
    leave its binding; (R4) buffers without a place, or two that overlap while
    both are live; (R5) a read of what another part of the phase writes. See
    test/passes/program/verify-programs-errors.mlir.
  }];
}

#endif
