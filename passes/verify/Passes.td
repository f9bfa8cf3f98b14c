// Passes of passes/verify: what must hold between stages.
#ifndef TILEWRIGHT_VERIFY_PASSES_TD
#define TILEWRIGHT_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyPlanned : Pass<"tile-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check the planned graph before it is lowered";
  let description = [{
    Arrives and leaves: `tile.subprogram`s. Refuses, with an error at the op:
    (G1) an edge between two expressions without a connect; (G2) a scope that
    cannot be carried out, or `thread` out of a reduction; (G3) a root without
    `dims`; (G4) a grid dim that a root reduces, or that a root lacks which is
    reduced or yielded: others keep their values for the tiles along it, or
    compute them again; (G5) a block edge that is read across tiles of the grid.
    See test/passes/verify-planned-errors.mlir.
  }];
}

def VerifyPrograms : Pass<"tile-verify-programs", "::tilewright::tile::ProgramOp"> {
  let summary = "Check a tile program before target code is made of it";
  let description = [{
    Arrives and leaves: tile programs with allocated buffers. Refuses, with an
    error at the op: (R1) a write to an input; (R2) a read of a buffer that
    nothing wrote before the last `tile.sync`; (R3) an unguarded access that may
    leave its binding; (R4) buffers without a place, or two that overlap while
    both are live; (R5) a read of what another part of the phase writes. See
    test/passes/verify-programs-errors.mlir.
  }];
}

#endif
