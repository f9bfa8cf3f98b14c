// Passes of passes/normalize/forms: forms and layouts of contractions that need no prediction of the planner.
#ifndef TILEWRIGHT_NORMALIZE_FORMS_PASSES_TD
#define TILEWRIGHT_NORMALIZE_FORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def MergeContractions : Pass<"tile-merge-contractions", "::mlir::func::FuncOp"> {
  let summary = "Merge independent contractions that share an input into one with concatenated weights";
  let description = [{
    Input: expressions as the front end produces them. Output: contractions that
    multiply the same tensor with weights or constants, and differ at most in their
    number of columns, become one (Souffle 6.1: horizontal transformation). The
    columns are split into heads, slots and width; the slots are one dim, of which
    each contraction has one or several, so that a tile contains the same columns of
    every contraction. Elementwise ops that follow all of them alike, such as biases,
    are merged as well. Readers get their part as a slice. The order of summation
    does not change.

    Contractions stay apart if their weights are computed in each call, if their
    dims, layouts or types differ, which a missed remark says. All others are offered
    the form `merged contractions`, with the parameters `heads` and `width`. It is
    declined if padding the columns to whole register blocks of `target` costs more
    than a launch.
    See test/passes/normalize/forms/merge-contractions.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numTaken", "merged", "merges of several contractions">,
                    Statistic<"numDeclined", "declined", "contractions that share an input and stay apart">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def PackWeights : Pass<"tile-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Lay out operands of contractions in the order in which the micro kernel reads them";
  let description = [{
    Input: expressions as the front end produces them. Output: every contraction
    that a register block can compute, and whose rhs depends only on weights and
    constants, reads that operand in packed form (Chimera 5: packing): blocks of
    lanes one after another, each with K outside and the lanes inside, padded with
    zeros. If a step of the micro kernel covers several elements of K, those of a
    lane are contiguous. The kernel then reads the weights sequentially, whatever
    their original layout.

    If any other rhs is not contiguous along the lanes (such as the keys of an
    attention), the contraction reads a transposed copy of it, which the planner
    places. The copy is packed if at least 64 rows read it, it takes little of a
    core's cache, and each tile of rows would copy panels of it otherwise, since a
    step of a register block is one line (AVX2 in f32).
    See test/passes/normalize/forms/pack-weights.mlir.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"numerics", "numerics", "std::string", "\"default\"", "default, or strict, which has fewer micro kernels">];
  let statistics = [Statistic<"packed", "packed", "operands packed">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

#endif
