// Passes of passes/plan/forms: forms that need a prediction of the planner, and layouts of weights that the plan chose.
#ifndef TILEWRIGHT_PLAN_FORMS_PASSES_TD
#define TILEWRIGHT_PLAN_FORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def RequestForms : Pass<"tile-request-forms", "::mlir::ModuleOp"> {
  let summary = "Request the forms of a plan from a file";
  let description = [{
    Input: any module. Output: with `plan-in`, every function has the attribute
    `tile.requested_forms` with the plan's choices of forms, which override the rules
    of the passes that offer these forms. A choice that a pass cannot carry out is an
    error there, and one that no pass offers is an error when the plan is carried
    out. Each pass records its choices in `tile.forms`.
    See test/passes/plan/forms/request-forms.mlir.
  }];
  let options = [Option<"planIn", "plan-in", "std::string", "\"\"", "JSON plan; without it, nothing is requested">];
}

def SearchForms : Pass<"tile-search-forms", "::mlir::ModuleOp"> {
  let summary = "Search over the forms of each function, as the policy does over its plans";
  let description = [{
    Input: an imported module. Output: functions have the attribute
    `tile.requested_forms` with choices of forms that differ from those of the rules,
    because the whole plan is predicted to be faster with them. Each choice is tried on
    a copy of the module, which is normalised and planned. Functions that have the
    attribute stay as they are.

    The policy `exhaustive` tries all choices that can be carried out, at most 64, and
    takes the best. `unified`
    changes one choice after another, those of equal layers together, compares greedy
    plans, and keeps what is clearly faster; `plan-seconds` and the number of ops bound
    its trials. All other policies take what the rules choose.
    See test/passes/plan/forms/search-forms.mlir.
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"numerics", "numerics", "std::string", "\"default\"", "default, strict or tf32">,
    Option<"gridSync", "grid-sync", "bool", "true", "true if kernels may use grid barriers">,
    Option<"policy", "policy", "std::string", "\"greedy\"", "planning policy (tile-print-policies lists them)">,
    Option<"planSeconds", "plan-seconds", "double", "2", "about how long the search of the policy unified may take">];
  let statistics = [Statistic<"numChanged", "changed", "choices that differ from the rules'">];
}

def LayOutImages : Pass<"tile-lay-out-images", "::mlir::ModuleOp"> {
  let summary = "Turn convolutions into matmuls, in the layouts of images that are predicted to be faster";
  let description = [{
    Input and output: as of `tile-convolution-to-matmul`, which this pass runs on each
    function. The form `channels last` is offered for each region of images that a
    convolution reads or writes for another one. A region is what must lie alike:
    results of convolutions, and what elementwise ops, pads and pools make of them.

    The function is normalised and planned with channels first, with channels last,
    and with the cheapest layout of each region, which is the minimum cut of the
    predicted times of regions and of the convolutions between them. Channels last
    are taken unless the layout of the model is predicted to be clearly faster, and
    mixed layouts if they are clearly faster than that. A layout changes the order in
    which the elements of a window are summed, so strict numerics offer none.

    On CPUs, the form `winograd` is offered for each 3x3 convolution in f32 that has
    channels last, constant weights, and no strides, dilations or groups: 4x4 points,
    and the weights, are summed in 16 ways, and 2x2 results are sums of the products
    of both. It is taken where it is predicted to be clearly faster.
    See test/passes/plan/forms/lay-out-images.mlir and winograd.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">,
                 Option<"numerics", "numerics", "std::string", "\"default\"", "default, strict or tf32">,
                 Option<"gridSync", "grid-sync", "bool", "true", "true if kernels may use grid barriers">];
  let statistics = [Statistic<"numTaken", "taken", "regions with channels last, and convolutions by sums of points">,
                    Statistic<"numDeclined", "declined", "those that stay as they are">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SplitReductions : Pass<"tile-split-reductions", "::mlir::func::FuncOp"> {
  let summary = "Reduce in two phases where there are too few results to fill the GPU";
  let description = [{
    Input: any function. A reduction with few results occupies few thread blocks.
    Output: two phases are offered for it. If they are predicted to take clearly less
    time, it becomes a reduction of parts of the elements to partial results, which
    starts from neutral elements, and a reduction of these to the results. Both have
    the form `two-phase reduction`. The choice has the parameters `dims` and `parts`,
    and both predictions. The split changes the order of summation, and
    partial sums of f16 and bf16 are kept in f32.

    The planner predicts how many parts each dim is cut into, as it predicts
    kernels. The phases are separated by a grid barrier (`grid-sync`) or by a launch;
    those of a contraction are separated by a launch.

    Sums of exponentials relative to a maximum along the same dim (a softmax and the
    contraction that reads it) are split together with the maximum and with the ops
    that compute their exponents: each part is relative to its own maximum. This is
    the form `sums relative to maxima of parts`, with the parameter `parts`.

    Left alone are contractions that no micro kernel computes, reductions whose body
    is not a sum, product, extremum or bit operation for each result, inits that are
    not constants, and all targets except GPUs; a missed remark gives the reason.
    See test/passes/plan/forms/split-reductions.mlir and split-keys.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">,
                 Option<"gridSync", "grid-sync", "bool", "true", "true if kernels may use grid barriers">];
  let statistics = [Statistic<"numTaken", "split", "reductions split into two phases">,
                    Statistic<"numDeclined", "declined",
                              "reductions on GPUs that stay in one phase, each with a missed remark">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def SwizzleWeights : Pass<"tile-swizzle-weights", "::mlir::func::FuncOp"> {
  let summary = "Lay out weights of contractions as their tiles lie in shared memory, swizzle included";
  let description = [{
    Input: composed subprograms, in which the plan's attribute `tile.swizzled` on a
    contraction holds the number of lines and the K of a step of its rhs. Output:
    that operand has the shape steps x lines x K of a step, padded with zeros, and
    its atoms of 16 bytes are swizzled as in shared memory, so that one bulk copy
    brings a step of a tile. The contraction's map gives the position of an element
    without the swizzle, which code generation knows from the attribute.

    An operand that is not an input of the subprogram, or not a matrix, is an error.
    See test/passes/plan/forms/swizzle-weights.mlir.
  }];
  let statistics = [Statistic<"numPacked", "packed", "operands with a swizzled layout">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def StoreWeights : Pass<"tile-store-weights", "::mlir::ModuleOp"> {
  let summary = "Store packed weights in the parameter file";
  let description = [{
    Input: functions whose weights `tile-pack-weights` or `tile-swizzle-weights` laid
    out. Output: each of these weights that is made of parameters of `scopes` by
    movement, and by products with constant matrices, becomes a parameter of its own,
    which IREE maps from the file when it loads the program. Equal weights share one
    parameter. Globals of parameters that nothing reads any more are erased.

    `recipes` is a JSON file that says how each new parameter is made of the old
    ones, and which of those are no longer needed. The writer of the parameter file
    carries it out; without `recipes` the pass changes nothing. IREE computes weights
    that are made of others, or by arithmetic, each time the program is loaded, and a
    missed remark says so.
    See test/passes/plan/forms/store-weights.mlir.
  }];
  let options = [
    ListOption<"scopes", "scopes", "std::string", "scopes of the parameter files that can be rewritten">,
    Option<"recipes", "recipes", "std::string", "\"\"", "JSON file to write the recipes of new parameters to">];
  let statistics = [Statistic<"numStored", "stored", "packed weights stored as parameters">,
                    Statistic<"numDeclined", "declined", "packed weights that are computed at load">];
}

#endif
