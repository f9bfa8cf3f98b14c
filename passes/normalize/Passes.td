// Passes of passes/normalize: tensor expressions to tensor expressions.
#ifndef TILEWRIGHT_NORMALIZE_PASSES_TD
#define TILEWRIGHT_NORMALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandArgCompare : Pass<"tile-expand-arg-compare", "::mlir::func::FuncOp"> {
  let summary = "Expand IREE's arg_compare into reductions that fuse";
  let description = [{
    Input: any function, with `iree_linalg_ext.arg_compare` as an unregistered
    op. Output: each arg_compare with a strict comparison becomes a reduction to
    the extremum, a reduction to the least index that attains it, and a select of
    the initial index where no element wins over the initial value. All others
    are left alone.
    See test/passes/normalize/expand-arg-compare.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ExpandQuantization : Pass<"tile-expand-quantization", "::mlir::func::FuncOp"> {
  let summary = "Expand IREE's quantize and dequantize ops into arithmetic that fuses";
  let description = [{
    Input: any function, with `iree_linalg_ext.quantize_affine` and
    `iree_linalg_ext.dequantize_affine` as unregistered ops. Output: each one in
    f32 becomes a `linalg.generic` with ONNX's definition. Quantizing rounds
    x / scale to nearest, ties to even, adds the zero point and clamps the result
    to the bounds; a NaN becomes the lower bound. Dequantizing computes
    (q - zero point) * scale. All others are left alone.
    See test/passes/normalize/expand-quantization.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def LowerQuantizedMatmul : Pass<"tile-lower-quantized-matmul", "::mlir::func::FuncOp"> {
  let summary = "Multiply quantized bytes as bytes, and apply zero points and scales to the result";
  let description = [{
    Input: expressions as the front end produces them: matmuls of i8 operands that
    were widened and had their zero points subtracted first,
    `linalg.quantized_matmul`, and matmuls in f32 of dequantized i8, all of them
    possibly behind movement. Output: a matmul of the bytes in i32, and an
    elementwise op that corrects its result for the zero points:
    sum((a - za)(b - zb)) = sum(ab) - za sum(b) - zb sum(a) + K za zb. Zero points
    and scales may vary along every dim that is not reduced. Matmuls in i64 and f32
    are rewritten only if i32 holds every possible sum. Those in f32 are multiplied
    by both scales, and strict numerics leave them alone because the graph rounds
    each product.

    Before that, the pass gives sums the form that register blocks compute
    (WidenAccumulators). A sum that starts from a tensor, or from a number other than
    zero, starts from zero, and an elementwise op adds the start; a broadcast start
    keeps its small size. A sum of products in f16 or bf16 is computed in f32 and
    rounded once, after the start was added, unless numerics are strict.
    Convolutions and pools keep their starts, which `tile-convolution-to-matmul`
    adds.
    See test/passes/normalize/lower-quantized-matmul.mlir and test/passes/normalize/widen-accumulators.mlir.
  }];
  let options = [Option<"numerics", "numerics", "std::string", "\"default\"",
                        "default, or strict, which leaves sums in f32 as they are">];
  let statistics = [Statistic<"numLowered", "lowered", "quantized matmuls that became matmuls of bytes">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def ConvolutionToMatmul : Pass<"tile-convolution-to-matmul", "::mlir::func::FuncOp"> {
  let summary = "Turn convolutions into matmuls, and what no register block computes into reductions";
  let description = [{
    Input: expressions as the front end produces them. Output: a convolution of
    static shape that reduces over input channels becomes a movement of windows into
    rows (im2col), which the planner folds into its readers, a contraction of those
    rows with the weights, and an addition of the convolution's start. Zero points
    of quantized bytes are subtracted first, for `tile-lower-quantized-matmul`.
    Readers of the result keep its channels innermost, up to a convolution, a reshape
    of dims that lie apart in this layout, or a result of the function. Groups of
    many filters are batches of the contraction. A transposed convolution becomes one
    over the image without zeros between its points: results that cover the same
    points are further filters, which are moved to their places.

    A depthwise convolution becomes products and a reduction, and a pool becomes the
    windows and a reduction. So does a contraction that leaves vector lanes empty:
    one with both operands or neither along the innermost dim of its result, or one
    in f32 with few columns (N) and a long K. If another dim of the result would
    fill the lanes, that dim becomes the innermost one instead, and the result is
    transposed afterwards.
    For a target whose kernels read operands in any order (GPUs), a convolution is a
    contraction in the layout of its own result and weights, and groups are batch
    dims. Of other contractions, those become products and a reduction that have no
    dim for columns (N), such as a row by a column, or two vectors.

    A mark of `tile-lay-out-images` (`tile.form`) says that a convolution's result has
    channels innermost ("channels last"), and so have its windows and weights, or that
    it lies as in the model ("as-is").
    See test/passes/normalize/convolution-to-matmul.mlir, keep-layout.mlir,
    transposed-convolution.mlir and window-contraction.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"\"", "target whose kernels read the result; empty: a CPU">];
  let statistics = [Statistic<"numRewritten", "rewritten", "convolutions, pools and contractions that were rewritten">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def NormalizeExprs : Pass<"tile-normalize", "::mlir::func::FuncOp"> {
  let summary = "Simplify expressions where the simpler form is always right";
  let description = [{
    Input and output: any function. The pass makes these changes:

    - It erases operands and results of linalg.generic that nothing uses, such as the
      index half of a maximum, and assertions inside bodies.
    - It replaces a linalg op that has a loop of length zero by its init: a matmul
      with K = 0 is its zeros.
    - It folds roundings of constants outside of bodies, which IREE cannot compute.
    - A contraction that kernels can take, and the elementwise ops that follow it,
      have a loop for each batch dim instead of a merged one, so that an attention of
      several batches and heads is one chain.
    - An element that a body extracts at a known place becomes an operand, which is a
      slice. A running sum along a short dim becomes a reduction, and so do a sort or a
      search for the first elements, whose ranks are counted, and a scatter of few
      updates. A sort that remains keeps equal elements in order.
    - An elementwise op with results of several types becomes one op for each.
    - A number that a body takes from a one-element tensor, possibly with arithmetic
      on it, becomes an operand. A pad of integers with such a number becomes a pad
      of the differences to it with a constant.
    - A maximum, minimum, `and` or `or` of the results of a reduction of the same
      kind that has no other readers becomes one reduction.
    - A slice of a computed tensor that was expanded becomes an expanded slice of
      that tensor, where such a slice exists.
    - A copy that adds dims of length one becomes a reshape.

    Other contractions, and everything else that is not linalg.generic, are left
    alone.
    See test/passes/normalize/normalize.mlir, known-extracts.mlir,
    expand-scans.mlir, expand-sorts.mlir, expand-scatters.mlir and
    split-results.mlir.
  }];
  let options = [Option<"target", "target", "std::string", "\"\"",
                        "target whose costs say what is short and few; empty: the usual ones">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def CollapseDims : Pass<"tile-collapse-dims", "::mlir::func::FuncOp"> {
  let summary = "Collapse neighbouring dims where rows are too short for vectors";
  let description = [{
    Input: any function. Output: in connected groups of ops whose rows fill the
    target's vectors to less than 8/9 by default, dims that are neighbours wherever they occur
    are collapsed into one: those of a plane that is reduced, or all dims of an
    elementwise op. Tensors that cross the group's boundary are reshaped there. A
    small tensor that varies along only some of the dims, such as a bias, is
    repeated along all of them. Dims stay apart if a contraction, a slice or an
    unknown op uses their tensor, and so do loops whose index an op reads.
    See test/passes/normalize/collapse-dims.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OnePassVariance : Pass<"tile-one-pass-variance", "::mlir::func::FuncOp"> {
  let summary = "Sum squared differences in one pass if a workgroup cannot hold the input";
  let description = [{
    Input: any function. A sum of `(x - b)^2`, where b depends on the sum of x (b is
    usually the mean) and is the same for all summed elements, reads x a second
    time once b is known. Output: if x does not fit the target's memory for a
    workgroup, x is divided into parts that do. For each part, the sums of `x - c`
    and of its square are computed, where c is the part's mean, and the sums of all
    parts are combined with b. The relative error is that of two passes.

    Parts are taken along whole dims. The last of these dims is cut if whole dims
    would give many more parts than needed, unless an op computes x. Sums of narrow
    floats are computed in f32 and rounded once; that the graph extends narrow floats
    before it sums them makes no difference. The form is `two-moment variance`, with
    the parameters `dims` and `parts`. It is declined for inputs that fit or that no
    dims divide into such parts, and for narrow floats on CPUs. The pass leaves all
    other sums alone.
    See test/passes/normalize/one-pass-variance.mlir and one-pass-variance-narrow.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numTaken", "shifted", "sums of squares in one pass">,
                    Statistic<"numDeclined", "declined", "sums of squares in two passes, each with a missed remark">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DeferNormalization : Pass<"tile-defer-normalization", "::mlir::func::FuncOp"> {
  let summary = "Divide after a contraction instead of before it where that is less work";
  let description = [{
    Input: any function. Output: a contraction that reads exponentials divided by
    their own sum (a softmax) reads the exponentials instead, and its result is
    divided. This requires that the quotients are only rounded and moved before the
    contraction, and that the contraction alone reads them. The form `division after
    its contraction` is declined if the result is no smaller than the quotients. A
    multiplication by the reciprocal of the sum counts as a
    division. If a select afterwards makes whole rows zero (by a condition of the
    row, or because they are NaN), the select moves behind the contraction, too.

    Left alone are all other divisions, exponentials from which their own maximum
    was not subtracted, and contractions that round their accumulators or do not
    start from zero.

    If exponentials in f32 are read only by roundings to bf16 and by that sum, and
    the sum only by that division, they get the form `exponentials within 2^-13` and
    the attribute `tile.for_bf16`.
    See test/passes/normalize/defer-normalization.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"numTaken", "deferred", "divisions moved behind their contraction">,
                    Statistic<"numDeclined", "declined", "divisions that could move and stay, each with a missed remark">];
}

def MarkOnlineSoftmax : Pass<"tile-mark-online-softmax", "::mlir::func::FuncOp"> {
  let summary = "Mark maxima of rows that may be used while they are accumulated (online softmax)";
  let description = [{
    Input: any function. The maximum m of a long row of f32 whose `exp(x - m)` is
    summed over the same row makes a kernel read the row twice: x is read again once
    m is known. Output: such a maximum has one of these forms.

    - `online softmax`: planning and lowering compute maximum and sum in one pass.
    - `online softmax of blocks`, if a contraction multiplies with the
      exponentials: the plan may let tiles walk rows of any length in blocks.
    - `online softmax with a causal bound`, if a mask also hides everything beyond
      some point of each row: the attribute `tile.counted` holds that point.

    All other maxima are left alone: those of short rows, across rows or of narrow
    floats, and those that are not subtracted from anything, or from something other
    than what they are the maximum of.
    See test/passes/normalize/mark-online-softmax.mlir and mark-online-softmax-counted.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numTaken", "named", "maxima marked with a form">,
                    Statistic<"numDeclined", "declined", "maxima without the form they could have, each with a missed remark">];
}

#endif
