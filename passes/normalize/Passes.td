// Passes of passes/normalize: tensor expressions to tensor expressions.
#ifndef TILEWRIGHT_NORMALIZE_PASSES_TD
#define TILEWRIGHT_NORMALIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandArgCompare : Pass<"tile-expand-arg-compare", "::mlir::func::FuncOp"> {
  let summary = "Expand IREE's arg_compare into reductions that fuse";
  let description = [{
    Arrives: any function, with `iree_linalg_ext.arg_compare` as an unregistered
    op. Leaves: for each whose comparison is strict, a reduction to the extremum,
    one to the least index at which it stands, and a choice of the initial index
    where no element wins over the initial value. All others are left alone.
    See test/passes/normalize/expand-arg-compare.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ExpandQuantization : Pass<"tile-expand-quantization", "::mlir::func::FuncOp"> {
  let summary = "Expand IREE's quantisations into arithmetic that fuses";
  let description = [{
    Arrives: any function, with `iree_linalg_ext.quantize_affine` and
    `iree_linalg_ext.dequantize_affine` as unregistered ops. Leaves: for each in
    f32 a `linalg.generic` with what ONNX says of it: x / scale, rounded to the
    even one of two, plus the zero point, cut off at the bounds, of which a NaN
    gives the lower; (q - zero point) * scale. All others are left alone.
    See test/passes/normalize/expand-quantization.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def LowerQuantizedMatmul : Pass<"tile-lower-quantized-matmul", "::mlir::func::FuncOp"> {
  let summary = "Multiply quantised bytes as bytes, and apply zero points and scales to the sums";
  let description = [{
    Arrives: expressions as the front end leaves them: matmuls of i8 that was
    widened and had zero points taken off before, `linalg.quantized_matmul`, and
    matmuls in f32 of dequantised i8, all of them also behind movement. Leaves:
    sums of products of bytes in i32, less what the zero points add to them:
    sum((a - za)(b - zb)) = sum(ab) - za sum(b) - zb sum(a) + K za zb. Zero points
    and scales may differ along whatever is not summed. Sums in i64 and f32 are
    taken only where i32 holds every one of them; those in f32 are multiplied by
    both scales, and are left alone in strict numerics, which round each term.

    Before that, what sums is made what register blocks compute (WidenAccumulators): a sum
    that starts from a tensor, or from a number other than zero, starts from zero,
    and an elementwise op adds its start, a broadcast one as small as it was; sums
    of products in f16 and bf16 are in f32, rounded once after the start has been
    added, but not in strict numerics. Convolutions and pools keep their starts,
    which `tile-convolution-to-matmul` adds.
    See test/passes/normalize/lower-quantized-matmul.mlir and test/passes/normalize/widen-accumulators.mlir.
  }];
  let options = [Option<"numerics", "numerics", "std::string", "\"default\"",
                        "default; strict: sums in f32 stay what they are">];
  let statistics = [Statistic<"numNarrowed", "narrowed", "matmuls of quantised numbers">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def ConvolutionToMatmul : Pass<"tile-convolution-to-matmul", "::mlir::func::FuncOp"> {
  let summary = "Make convolutions contractions of matrices, and what no register block computes reductions";
  let description = [{
    Arrives: expressions as the front end leaves them. Leaves: for a convolution
    of static shape that sums over input channels, a movement that lays every
    window of the image in a row (im2col), a contraction of those rows with the
    weights, and what the convolution starts from added at the end. The movement
    is for the planner to fold into whoever reads it. Of quantised bytes the zero
    points are taken off before, for `tile-lower-quantized-matmul`. A convolution with a filter
    for each channel becomes products and a reduction, and so does a contraction
    with both factors or none along the innermost dim of its result, if none of its
    other dims has lanes (then that is innermost, and the result turned behind it),
    or with few columns and rows of many terms in f32; a pool
    becomes the windows and a reduction.
    See test/passes/normalize/convolution-to-matmul.mlir.
  }];
  let statistics = [Statistic<"numUnfolded", "unfolded", "convolutions, pools and contractions">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def NormalizeExprs : Pass<"tile-normalize", "::mlir::func::FuncOp"> {
  let summary = "Erase operands and results of linalg.generic that nothing uses";
  let description = [{
    Arrives and leaves: any function. A result nobody reads (the index half of
    a maximum) would otherwise be computed and written by the kernel. Assertions
    inside bodies go too. A linalg operation of any kind one of whose loops has
    length zero is replaced by what its results begin with: a matmul along such
    a dim is its zeros. A contraction that kernels can take reads past the
    reshapes that lay batch dims of both operands together, and becomes a
    linalg.generic with a loop for each, and so does what is elementwise behind
    it, so that they have the dims of what is around them: an attention of several batches and heads is one chain then. A
    number that a body takes from a tensor of one element, at most computed on from
    there, becomes an operand, and integers are padded with such a number by a
    constant pad of differences to it. A maximum, minimum, `and` or `or` of the results
    of one of the same kind that has no other readers is one reduction. A slice of a computed tensor that was
    expanded is the slice of the tensor, expanded, where it is one. A copy that adds dims of length one is a reshape. Apart from that, contractions and everything that is not linalg.generic are
    left alone.
    See test/passes/normalize/normalize.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def CollapseDims : Pass<"tile-collapse-dims", "::mlir::func::FuncOp"> {
  let summary = "Make neighbouring dims one where rows are short for a vector unit";
  let description = [{
    Arrives: any function. Leaves: in pieces of it with rows that fill the target's
    vectors to less than 8/9, dims that follow one another wherever they occur as one:
    those of a plane that is reduced, or all of an elementwise op. Tensors that
    come from elsewhere or go there are seen through reshapes; a small one that
    changes along some of the dims only, as a bias does, is laid out along all. Dims of a tensor that
    a contraction, a slice or an unknown op takes part in, and loops of which an op
    asks the number, stay apart. See test/passes/normalize/collapse-dims.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OnePassVariance : Pass<"tile-one-pass-variance", "::mlir::func::FuncOp"> {
  let summary = "Sum squared differences in one pass where a workgroup cannot keep what it reduces";
  let description = [{
    Arrives: any function. A sum of `(x - b)^2`, with b the same for all that is
    summed and made of the sum of x, most often the mean, reads x again when b is
    known. Leaves: where x does not fit the target's memory for a workgroup, the
    sums of parts of x that do, those of `x - c` and of its square, c being the
    part's mean, and what b makes of all parts' sums. Its relative error is that
    of two passes. Parts are along whole dims; the last of these is cut where that
    would leave far more parts than need be, unless an op computes x. Moments of
    narrow floats are summed in f32 and rounded once. Where no dims cut x into such
    parts, and narrow floats on processors, it is left alone, and so are all
    others.
    See test/passes/normalize/one-pass-variance.mlir and shift-moments-narrow.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DeferNormalization : Pass<"tile-defer-normalization", "::mlir::func::FuncOp"> {
  let summary = "Divide after a contraction instead of before it where that is less work";
  let description = [{
    Arrives: any function. Leaves: where a contraction reads exponentials divided
    by their own sum (a softmax), at most rounded, moved about and read by it
    alone, and its result is smaller than they are, it reads the exponentials,
    and its result is divided. A product with the reciprocal of the sum counts as a
    division, and where whole rows are chosen to be zero behind it (by a condition
    of the row, or because they are NaN), so are those of the result. All others,
    exponentials of what its own maximum was not taken off, and contractions that
    round their sums or do not start from zero, are left alone. Exponentials of f32 that are read only rounded to bf16 and by
    that sum, and the sum by that division, have the form `exponentials within 2^-13`
    and the attribute `tile.for_bf16`. See test/passes/normalize/defer-normalization.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"delayed", "delayed", "divisions moved behind their contraction">];
}

def MarkOnlineSoftmax : Pass<"tile-mark-online-softmax", "::mlir::func::FuncOp"> {
  let summary = "Name the maxima of rows that may be used while they are accumulated";
  let description = [{
    Arrives: any function. A maximum m of long rows of f32 whose `exp(x - m)` is
    summed over the same rows reads each row twice: x again when m is known.
    Leaves: the form `running maximum` on such a maximum, by which planning and
    lowering find both in one pass. Where a contraction multiplies with such
    exponentials, the form is `running maximum of blocks`: the plan may have tiles
    walk the rows, of whatever length, in blocks. Where a mask hides what is beyond
    some point of each row, the form is `running maximum of counted blocks`, and the
    attribute `tile.counted` says where. All others are left alone: short
    rows, maxima across rows, narrow floats, maxima that nothing is taken relative
    to, or something else than what they are the maximum of.
    See test/passes/normalize/mark-online-softmax.mlir and run-maxima-counted.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numNamed", "named", "maxima named">];
}

#endif
