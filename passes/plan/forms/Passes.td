// Passes of passes/plan/forms: forms of contractions and reductions, and layouts of weights, chosen for the target.
#ifndef TILEWRIGHT_PLAN_FORMS_PASSES_TD
#define TILEWRIGHT_PLAN_FORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def SplitReductions : Pass<"tile-split-reductions", "::mlir::func::FuncOp"> {
  let summary = "Reduce in two phases where the results are too few to fill the GPU";
  let description = [{
    Arrives: any function. A reduction of few results keeps few blocks busy.
    Leaves: where two phases are predicted to take clearly less time, a reduction
    of parts of the reduced elements into partial results, from a neutral start,
    and one of those into the results. Both have the form `two-phase reduction`,
    with both predictions; sums are regrouped by it, and those of f16 and bf16
    keep partial results in f32. Which dims are cut into how many parts is
    predicted as the planner predicts kernels, with a barrier of the grid between
    the phases (`grid-sync`) or else a launch; of contractions, a launch. Left
    alone are contractions that no micro kernel computes, reductions whose body is
    not a sum, product, extremum or bit operation per result, inits that are no
    constants, and targets that are no GPUs; a missed remark says why. Sums of
    exponentials relative to a maximum along the same dim (a softmax and what it
    is multiplied with) are cut together with the maximum, and with what their
    exponents are computed from: each part is relative to a maximum of its own.
    See test/passes/plan/forms/split-reductions.mlir and split-keys.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "whether kernels may wait at a barrier of the grid">];
  let statistics = [Statistic<"numSplit", "split", "reductions in two phases">,
                    Statistic<"numDeclined", "declined", "reductions of GPUs left in one, each with a missed remark">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def MergeContractions : Pass<"tile-merge-contractions", "::mlir::func::FuncOp"> {
  let summary = "Make independent contractions that share an input one, their weights side by side";
  let description = [{
    Arrives: expressions as the front end leaves them. Leaves: contractions that
    multiply one tensor with weights or constants, and agree in all but their
    numbers of columns, as one (Souffle 6.1: horizontal transformation), with
    the columns split into heads, slots and width: one dim where each part has
    one slot, so that a tile holds the same columns of every part. Elementwise
    ops that follow each part alike, such as biases, are one as well. Readers
    get their part as a slice. Nothing is added in another order.

    Weights that are computed in each call, other dims, orders of elements or
    types, and columns that would fill up more register blocks of `target` than
    a launch is worth keep contractions apart; a missed remark says which.
    See test/passes/plan/forms/merge-contractions.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numMerged", "merged", "contractions that became part of one">,
                    Statistic<"numDeclined", "declined", "pairs that share an input and stay apart">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def PackWeights : Pass<"tile-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Lay constant operands of contractions out as the micro kernel reads them";
  let description = [{
    Arrives: expressions as the front end leaves them. Leaves: every contraction
    that a register block can compute, and whose lane operand depends on weights
    and constants alone, reading that operand as blocks of lanes, one block
    after another, each with the reduced dims outside and its lanes inside,
    filled up with zeros (Chimera 5: packing); where a step of the micro kernel
    takes several terms, those of a lane lie side by side. Whatever order the
    weights came in, the kernel then reads them from first to last. Where any
    other operand lies across the lanes (the keys of an attention), the
    contraction reads a copy of it with the lanes innermost, for the planner to
    place.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"numerics", "numerics", "std::string", "\"default\"", "default or strict: which micro kernels there are">];
  let statistics = [Statistic<"packed", "packed", "operands packed">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def SwizzleWeights : Pass<"tile-swizzle-weights", "::mlir::func::FuncOp"> {
  let summary = "Lay weights of contractions out as images of their tiles in shared memory";
  let description = [{
    Arrives: composed subprograms, in which `tile.swizzled` on a contraction names the
    lines and the terms of a step of its operand along the lanes, as the plan lays
    it out. Leaves: that operand as steps x lines x terms, filled up with zeros, its
    atoms of 16 bytes swizzled as shared memory has them, so that one bulk copy
    brings a step of a tile; and maps that say where its elements are but for the
    swizzle, which code generation knows by the attribute. An operand that is no
    input of the subprogram, or no matrix of lanes and terms, stays as it is: the
    attribute is gone, and a missed remark says why.
    See test/passes/plan/forms/swizzle-weights.mlir.
  }];
  let statistics = [Statistic<"numPacked", "packed", "operands packed">,
                    Statistic<"numDeclined", "declined", "operands that stay as they are">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def StoreWeights : Pass<"tile-store-weights", "::mlir::ModuleOp"> {
  let summary = "Have weights stored in the parameter file as they were laid out for kernels";
  let description = [{
    Arrives: functions whose weights `tile-pack-weights` or `tile-swizzle-weights` laid
    out. Leaves: every
    one that movement alone makes of parameters of `scopes` as a parameter of its
    own, which is loaded, and mapped, as it lies in the file; globals of
    parameters that nothing reads then are gone. Equal ones are one parameter.
    `recipes` says, as JSON, how each new parameter is made of the ones there
    were, and which of those nobody needs: who writes the file carries it out,
    and without `recipes` nothing is changed. What is made of other weights, or
    by arithmetic, IREE computes whenever the program is loaded, and a missed
    remark says so.
    See test/passes/plan/forms/store-weights.mlir.
  }];
  let options = [
    ListOption<"scopes", "scopes", "std::string", "parameter files that can be written anew, by scope">,
    Option<"recipes", "recipes", "std::string", "\"\"", "write what to store as JSON">];
  let statistics = [Statistic<"numStored", "stored", "parameters to be stored packed">,
                    Statistic<"numDeclined", "declined", "packed weights that are computed at load">];
}

#endif
