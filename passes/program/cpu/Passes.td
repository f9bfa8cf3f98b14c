// Passes that improve tile programs for processors.
#ifndef TILEWRIGHT_PROGRAM_CPU_PASSES_TD
#define TILEWRIGHT_PROGRAM_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def StageTransposes : Pass<"tile-stage-transposes", "::tilewright::tile::ProgramOp"> {
  let summary = "Transpose tiles in registers where the vector dim is strided in memory";
  let description = [{
    Input: tile programs. If a nest accesses memory with a stride along its vector
    dim, but contiguously along another dim of the tile, the access goes to a buffer
    of the workgroup that is contiguous along the vector dim, and a separate copy
    connects the two. Code generation transposes the copy in squares of registers. If
    the other dim is the same for all accesses of the nest, the nest is vectorised
    along it instead. If a copy transposes an operand that a micro kernel with
    several elements of K per step reads along N, its buffer stores these elements
    side by side and the copy transposes them as one group, so that no tile has to
    interleave them again.

    Left unchanged: accesses whose buffer would not fit into the workgroup's memory
    beside the others, tiles narrower than half a vector, guarded reads, and other
    reads of micro kernels.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target of programs that do not name one">];
  let statistics = [
    Statistic<"turned", "turned", "accesses whose tiles are transposed in registers">,
    Statistic<"grouped", "grouped", "buffers that store the K elements of a step side by side">];
}

def WidenBuffers : Pass<"tile-widen-buffers", "::tilewright::tile::ProgramOp"> {
  let summary = "Store buffers of bf16 and f16 as f32, so that readers need not convert them";
  let description = [{
    Input: tile programs. Output: a buffer that nests read for arithmetic in f32 has
    f32 elements, which its writers convert; every rounding remains. Left unchanged:
    operands of micro kernels, accumulators, buffers of copies that transpose a tile,
    and buffers that would make the workgroup's buffers larger than L1.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target of programs that do not name one">];
  let statistics = [Statistic<"widenedBuffers", "widened", "buffers that became f32">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

#endif
