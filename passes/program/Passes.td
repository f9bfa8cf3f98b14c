// Passes that lower planned graphs to tile programs, place their buffers and verify them.
#ifndef TILEWRIGHT_PROGRAM_PASSES_TD
#define TILEWRIGHT_PROGRAM_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerToProgram : Pass<"tile-lower-to-program", "::mlir::ModuleOp"> {
  let summary = "Lower each subprogram to a tile program with explicit movement";
  let description = [{
    Input: `tile.subprogram`s whose expressions are roots (thread edges have been
    composed away) with dims in the iteration space. Output: a `tile.program` per
    kernel in the nested module `tilewright_kernels`, and a `tile.launch` in place
    of the subprograms.

    Roots of one phase with the same dims share a loop nest and hand values over in
    registers; block edges become buffers. Inputs are copied to buffers once per tile
    or once per workgroup where the plan says so (`tile.staged`). An input of
    several parts is one binding. Accumulators of f16 and bf16 sums are f32. Beside
    contractions on GPUs, a nest is vectorised along the dim along which most of its
    accesses are contiguous.

    With the form `online softmax`, values proportional to exp(-m)
    are computed in the nest that accumulates m, relative to references instead of m,
    and corrected where later nests read them. A dim that tiles walk in blocks
    becomes a loop around the nests that have it; with the form `online softmax of
    blocks`, sums relative to m are rescaled whenever m has grown.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"",
                        "target name or JSON file; its registers determine how many points share a reference">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
  let statistics = [Statistic<"programs", "programs", "tile programs made">];
}

def TieResults : Pass<"tile-tie-results", "::mlir::ModuleOp"> {
  let summary = "Let results reuse the memory of inputs that are not read any more";
  let description = [{
    Input: launches of tile programs in the nested module. Output: the attribute
    `tied` on a launch, and the same entry in `in_place` of its program, for each
    result that may reuse the memory of an input. The input must come from another
    launch and be read by this launch alone, and each tile must have read all of its
    part of the input before it writes the same part of the output. That memory is
    then still in the caches, and a chain of kernels needs only one buffer.
  }];
  let statistics = [Statistic<"tied", "tied", "results that reuse the memory of an input">];
}

def AllocateBuffers : Pass<"tile-allocate-buffers", "::tilewright::tile::ProgramOp"> {
  let summary = "Give each buffer of a tile program its offset in the memory of the workgroup";
  let description = [{
    Input: `tile.alloc`s without offsets. Output: every one has an offset, aligned
    to 64 bytes, such that buffers that are live together do not overlap (best fit
    over live ranges, largest first). A buffer lives until the units of the block
    synchronise at a `tile.sync` after its last use; buffers of the preamble live
    throughout.
  }];
  let statistics = [Statistic<"bytes", "bytes", "bytes of block memory over all programs">,
                    Statistic<"shared", "bytes-shared", "bytes saved because buffers share memory">];
}

def VerifyPrograms : Pass<"tile-verify-programs", "::tilewright::tile::ProgramOp"> {
  let summary = "Check a tile program before code generation";
  let description = [{
    Tile programs with allocated buffers pass through unchanged. The pass reports an
    error at the op for (R1) a write to an input; (R2) a read of a buffer that no op
    wrote before the last `tile.sync`; (R3) an unguarded access that may leave its
    binding; (R4) a buffer without an offset, or two buffers that overlap while both
    are live; (R5) a read of a binding that another part of the phase writes; (R6) a gather
    from a slice that is no input. See
    test/passes/program/verify-programs-errors.mlir.
  }];
}

#endif
