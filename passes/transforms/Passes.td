// Passes of passes/transforms: tensor expressions into planned subprograms, and those into tile programs.
#ifndef TILEWRIGHT_TRANSFORMS_PASSES_TD
#define TILEWRIGHT_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Tensor expressions as the front end leaves them
//===----------------------------------------------------------------------===//

def ExpandArgCompare : Pass<"tile-expand-arg-compare", "::mlir::func::FuncOp"> {
  let summary = "Expand IREE's arg_compare into reductions that fuse";
  let description = [{
    Arrives: any function, with `iree_linalg_ext.arg_compare` as an unregistered
    op. Leaves: for each whose comparison is strict, a reduction to the extremum,
    one to the least index at which it stands, and a choice of the initial index
    where no element wins over the initial value. All others are left alone.
    See test/passes/expand-arg-compare.mlir.
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
    See test/passes/expand-quantization.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def NarrowProducts : Pass<"tile-narrow-products", "::mlir::func::FuncOp"> {
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

    Before that, what sums is made what register blocks compute (WidenSums): a sum
    that starts from a tensor, or from a number other than zero, starts from zero,
    and an elementwise op adds its start, a broadcast one as small as it was; sums
    of products in f16 and bf16 are in f32, rounded once after the start has been
    added, but not in strict numerics. Convolutions and pools keep their starts,
    which `tile-unfold-contractions` adds.
    See test/passes/narrow-products.mlir and test/passes/widen-sums.mlir.
  }];
  let options = [Option<"numerics", "numerics", "std::string", "\"default\"",
                        "default; strict: sums in f32 stay what they are">];
  let statistics = [Statistic<"numNarrowed", "narrowed", "matmuls of quantised numbers">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def UnfoldContractions : Pass<"tile-unfold-contractions", "::mlir::func::FuncOp"> {
  let summary = "Make convolutions contractions of matrices, and what no register block computes reductions";
  let description = [{
    Arrives: expressions as the front end leaves them. Leaves: for a convolution
    of static shape that sums over input channels, a movement that lays every
    window of the image in a row (im2col), a contraction of those rows with the
    weights, and what the convolution starts from added at the end. The movement
    is for the planner to fold into whoever reads it. Of quantised bytes the zero
    points are taken off before, for `tile-narrow-products`. A convolution with a filter
    for each channel becomes products and a reduction, and so does a contraction
    with both factors or none along the innermost dim of its result, if none of its
    other dims has lanes (then that is innermost, and the result turned behind it),
    or with few columns and rows of many terms in f32; a pool
    becomes the windows and a reduction.
    See test/passes/unfold-contractions.mlir.
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
    See test/passes/normalize.mlir.
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
    asks the number, stay apart. See test/passes/collapse-dims.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ShiftMoments : Pass<"tile-shift-moments", "::mlir::func::FuncOp"> {
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
    See test/passes/shift-moments.mlir and shift-moments-narrow.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DelayDivisions : Pass<"tile-delay-divisions", "::mlir::func::FuncOp"> {
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
    and the attribute `tile.for_bf16`. See test/passes/delay-divisions.mlir.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [Statistic<"delayed", "delayed", "divisions moved behind their contraction">];
}

def RunMaxima : Pass<"tile-run-maxima", "::mlir::func::FuncOp"> {
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
    See test/passes/run-maxima.mlir and run-maxima-counted.mlir.
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"cpu\"", "target name or JSON file">];
  let statistics = [Statistic<"numNamed", "named", "maxima named">];
}

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
    See test/passes/split-reductions.mlir and split-keys.mlir.
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
    See test/passes/merge-contractions.mlir.
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

def PackImages : Pass<"tile-pack-images", "::mlir::func::FuncOp"> {
  let summary = "Lay weights of contractions out as images of their tiles in shared memory";
  let description = [{
    Arrives: composed subprograms, in which `tile.image` on a contraction names the
    lines and the terms of a step of its operand along the lanes, as the plan lays
    it out. Leaves: that operand as steps x lines x terms, filled up with zeros, its
    atoms of 16 bytes swizzled as shared memory has them, so that one bulk copy
    brings a step of a tile; and maps that say where its elements are but for the
    swizzle, which code generation knows by the attribute. An operand that is no
    input of the subprogram, or no matrix of lanes and terms, stays as it is: the
    attribute is gone, and a missed remark says why.
    See test/passes/pack-images.mlir.
  }];
  let statistics = [Statistic<"numPacked", "packed", "operands packed">,
                    Statistic<"numDeclined", "declined", "operands that stay as they are">];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
    "::mlir::arith::ArithDialect"];
}

def StoreWeights : Pass<"tile-store-weights", "::mlir::ModuleOp"> {
  let summary = "Have weights stored in the parameter file as they were laid out for kernels";
  let description = [{
    Arrives: functions whose weights `tile-pack-weights` or `tile-pack-images` laid
    out. Leaves: every
    one that movement alone makes of parameters of `scopes` as a parameter of its
    own, which is loaded, and mapped, as it lies in the file; globals of
    parameters that nothing reads then are gone. Equal ones are one parameter.
    `recipes` says, as JSON, how each new parameter is made of the ones there
    were, and which of those nobody needs: who writes the file carries it out,
    and without `recipes` nothing is changed. What is made of other weights, or
    by arithmetic, IREE computes whenever the program is loaded, and a missed
    remark says so.
    See test/passes/store-weights.mlir.
  }];
  let options = [
    ListOption<"scopes", "scopes", "std::string", "parameter files that can be written anew, by scope">,
    Option<"recipes", "recipes", "std::string", "\"\"", "write what to store as JSON">];
  let statistics = [Statistic<"numStored", "stored", "parameters to be stored packed">,
                    Statistic<"numDeclined", "declined", "packed weights that are computed at load">];
}

//===----------------------------------------------------------------------===//
// The plan carried out
//===----------------------------------------------------------------------===//

def FormSubprograms : Pass<"tile-form-subprograms", "::mlir::ModuleOp"> {
  let summary = "Plan which ops share a kernel, and put each kernel into a tile.subprogram";
  let description = [{
    Arrives: `func.func`s of one block with linalg and tensor ops, and any other
    ops between them. Leaves: per part of the plan a `tile.subprogram` that
    holds its expressions, raised, with a `tile.connect` on every edge between
    them that names its scope; domain dims of one point are gone. Parts packed
    into one kernel stand next to each other under one name. Ops of the block
    are put into an order that allows it; ops with effects, unregistered ones
    among them, keep theirs.

    The plan is made for `target`, or read from `plan-in`, checked, and carried
    out as it is; one that is not legal is an error at the function. With
    `plan-in`, `plan-out` and `report` the module may hold one function with
    tensor expressions. Every edge left at scope `launch` and every op left to
    IREE gets a missed remark with the reason. After a pass failed on a kernel,
    `unfused` (or `fuse=false`) and `left` name ops that the next plan keeps
    apart, or leaves to IREE.
    See test/passes/form-subprograms.mlir.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">,
    Option<"cores", "cores", "int64_t", "0", "hardware threads to plan for; 0: the target's">,
    Option<"blockBytes", "block-bytes", "int64_t", "0",
           "memory of a block that plans count on, where code took more than was counted; 0: the target's">,
    Option<"policy", "policy", "std::string", "\"greedy\"", "how to plan: greedy">,
    Option<"takeSingles", "take-singles", "bool", "true", "take what IREE would run as one dispatch too">,
    Option<"pack", "pack", "bool", "true", "pack small independent parts into one kernel">,
    Option<"gridSync", "grid-sync", "bool", "true",
           "join kernels by barriers of the grid, where the target has them">,
    Option<"numerics", "numerics", "std::string", "\"default\"",
           "what kernels may do to numbers: default, or strict: every rounding as in the graph">,
    Option<"planIn", "plan-in", "std::string", "\"\"", "JSON plan to carry out instead of planning">,
    Option<"planOut", "plan-out", "std::string", "\"\"", "write the plan as JSON">,
    Option<"report", "report", "std::string", "\"\"", "write what was built, and why, as JSON">];
  let statistics = [Statistic<"numKernels", "kernels", "kernels formed">,
                    Statistic<"numTaken", "taken", "ops taken into kernels">,
                    Statistic<"numLeft", "declined", "ops left to IREE, each with a missed remark">,
                    Statistic<"numLaunch", "launch-edges", "edges left at scope launch, each with a missed remark">];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def RaiseTensorExprs : Pass<"tile-raise", "::mlir::func::FuncOp"> {
  let summary = "Raise tensor ops to tile.expr";
  let description = [{
    Arrives: linalg and tensor ops. Leaves: a `tile.expr` for each that is a
    static tensor expression and no contraction; accumulators and padding values
    are constants, splat constants are scalars of the body. Reshapes, slices,
    pads and concats become maps and guards. Others are left, with a missed
    remark that says why. See test/passes/raise.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numRaised", "raised", "ops raised">,
                    Statistic<"numLeft", "left", "ops left as they were, each with a missed remark">];
}

def ApplyNumerics : Pass<"tile-apply-numerics", "::tilewright::tile::SubprogramOp"> {
  let summary = "Make the roundings and freedoms of a subprogram's numerics explicit in its bodies";
  let description = [{
    Arrives: expressions whose bodies compute with bf16 and f16 as such. Leaves:
    arithmetic in f32 alone, with an `arith.truncf` after each operation that
    rounds and an `arith.extf` where a stored value is read. Where `numerics`
    relaxes roundings, one that only arithmetic of the same body reads is gone;
    the `unrounded` edges are `tile-compose`'s to carry out. Where math is fast,
    divisions allow reciprocals (`arcp`). A subprogram without `numerics` is
    taken as relaxed and fast. See test/passes/apply-numerics.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numLeftOut", "left-out", "roundings left out inside bodies">];
}

def ComposeExprs : Pass<"tile-compose", "::mlir::func::FuncOp"> {
  let summary = "Fold producers into their consumers by composing index maps";
  let description = [{
    Souffle's vertical transformation (section 6.2). Inside a `tile.subprogram`
    it carries out exactly the `tile.connect` edges of scope `thread`; a
    reduction behind such an edge is an error. Outside subprograms it folds every
    one-relies-on-one producer whose folding repeats no arithmetic: movement
    always, arithmetic when its one reader reads each element at most once.
    Always exact. See test/passes/compose.mlir.
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numInlined", "inlined", "producers folded into a consumer">,
                    Statistic<"numKept", "kept", "producers kept, each with a missed remark">];
}

//===----------------------------------------------------------------------===//
// Tile programs
//===----------------------------------------------------------------------===//

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

#endif
