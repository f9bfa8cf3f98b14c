// Passes of passes/program/cpu: tile programs for processors.
#ifndef TILEWRIGHT_PROGRAM_CPU_PASSES_TD
#define TILEWRIGHT_PROGRAM_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def StageTransposes : Pass<"tile-stage-transposes", "::tilewright::tile::ProgramOp"> {
  let summary = "Turn tiles in registers where lanes are not neighbours in memory";
  let description = [{
    Arrives: tile programs. Where a nest reads, writes or accumulates memory across
    its lanes, and what lies next to each other in memory is next to each other along
    another dim of the tile: a buffer of the workgroup in which lanes are
    neighbours, and a copy between the two, which code generation turns in squares
    of registers. Where that other dim is the same for all that the nest touches, its
    lanes go along that instead. Where a copy turns what a micro kernel of several
    terms a step reads along its lanes, its buffer has these terms side by side, in
    groups that are turned as one; no tile has to put them so again. Left alone: what
    does not fit into the workgroup's memory beside what is there, tiles narrower
    than half a vector, guarded reads, other reads of micro kernels.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "of programs that do not say theirs">];
  let statistics = [
    Statistic<"turned", "turned", "accesses whose tiles are turned in registers">,
    Statistic<"grouped", "grouped", "buffers that have the terms of a step side by side">];
}

def WidenBuffers : Pass<"tile-widen-buffers", "::tilewright::tile::ProgramOp"> {
  let summary = "Keep buffers of bf16 and f16 in f32, so that nests need not convert what they read";
  let description = [{
    Arrives: tile programs. Leaves: a buffer that nests read for arithmetic in f32
    has elements of f32, converted by what writes it; every rounding stays. Left
    alone: what micro kernels read, what is summed up in the buffer, copies that
    turn a tile, and what would make the workgroup's buffers larger than L1.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "of programs that do not say theirs">];
  let statistics = [Statistic<"widenedBuffers", "widened", "buffers">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif
