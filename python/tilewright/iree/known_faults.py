"""Faults of the pinned IREE, which computes something wrongly or cannot compile it, and what Tilewright does instead.

One table, from which docs/reference/iree-faults.md is generated. `tilewright.iree.recheck` runs the evidence of each
entry through IREE's own importer and compiler, without Tilewright, and reports those that no longer show the fault, so
that workarounds can be removed with an upgrade.

What IREE's importer merely lacks is not here: the rules that spell it out say so (docs/reference/onnx-rules.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tilewright.iree.fault_programs import Evidence

Symptom = Literal["wrong numbers", "refused", "fails when called", "hangs"]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of IREE and the workaround."""

    pattern: str
    """The ops that show it."""
    types: str
    targets: str
    symptom: Symptom
    evidence: str
    """What happens: a few words, with numbers where it computes."""
    instead: str
    """What Tilewright does."""
    where: str
    """The module with the workaround, or its function: "module:function"."""
    program: str = ""
    """The function of `fault_programs` that makes a program which shows it; "" if the CPU cannot show it."""
    unchecked: str = ""
    """Why there is no such program."""
    versions: str = "3.13"

    def make(self) -> Evidence:
        """Makes the program that shows the fault."""
        from tilewright.iree import fault_programs

        build: Callable[[], Evidence] = getattr(fault_programs, self.program)
        return build()


_OPS = "tilewright.frontends.rewrites.ops"
_NAN = "a NaN becomes a number"

FAULTS: Mapping[str, Fault] = {
    "dynamic data tiling": Fault(
        pattern="contractions with several dims of unknown length, with data tiling",
        types="f32",
        targets="CPUs",
        symptom="wrong numbers",
        evidence="softmax(x·xᵀ)·x + x of 3 × 131 × 16 is off in the third digit",
        instead="data tiling is off, with a note",
        where="tilewright.iree.faults:without_data_tiling",
        program="dynamic_rows_in_tiles",
    ),
    "narrow convolutions": Fault(
        pattern="convolutions with operands narrower than f32",
        types="f16, bf16",
        targets="CUDA",
        symptom="wrong numbers",
        evidence="a 1×1 convolution of stride 2 has wrong tiles",
        instead="they are computed in f32, with a note",
        where="tilewright.iree.faults:widen_convolutions",
        unchecked="needs a GPU",
    ),
    "denormal truth": Fault(
        pattern="Cast to bool",
        types="f32, f64, bf16",
        targets="CPUs",
        symptom="wrong numbers",
        evidence="subnormal numbers are false, because the runtime makes the processor read them as zero",
        instead="the bits are tested",
        where="tilewright.frontends.onnx_importer",
        program="truth_of_subnormals",
    ),
    "NaN in extrema": Fault(
        pattern="Max, Min",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence=f"max(1, NaN) is 1: {_NAN} on one side",
        instead="a comparison and a selection keep it",
        where=f"{_OPS}.extrema",
        program="extremum_of_nan",
    ),
    "NaN in Clip": Fault(
        pattern="Clip",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence=f"clip(NaN, -1, 1) is -1: {_NAN}",
        instead="a comparison and a selection keep it",
        where=f"{_OPS}.extrema",
        program="clip_of_nan",
    ),
    "NaN in Sign": Fault(
        pattern="Sign",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="sign(NaN) is 0; for constants, the result depends on the contents of memory",
        instead="comparisons with a float, and a selection",
        where=f"{_OPS}.sign",
        program="sign_of_nan",
    ),
    "NaN equals itself": Fault(
        pattern="Not(Equal(x, x))",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="the comparison is folded to true",
        instead="one side is hidden from the folder",
        where=f"{_OPS}.equal",
        program="equal_to_itself",
    ),
    "negative integers": Fault(
        pattern="Neg",
        types="i32, i64",
        targets="all",
        symptom="wrong numbers",
        evidence="-16777217 becomes -16777216, because the product with -1 is one of f32",
        instead="the difference from zero",
        where=f"{_OPS}.neg",
        program="negative_integers",
    ),
    "negative integers of torch": Fault(
        pattern="torch.aten.neg",
        types="i32, i64",
        targets="all",
        symptom="wrong numbers",
        evidence="-16777217 becomes -16777216, because it is computed in f32",
        instead="a product with -1",
        where="tilewright.frontends.pytorch_elementwise",
        program="negative_integers_of_torch",
    ),
    "quotients of integers": Fault(
        pattern="torch.aten.floor_divide",
        types="i64",
        targets="all",
        symptom="wrong numbers",
        evidence="2**62 // 3 is 85 too small, because it is computed in f64",
        instead="a quotient that is cut off, and its remainder",
        where="tilewright.frontends.pytorch_elementwise",
        program="quotients_of_integers",
    ),
    "whole numbers beside constants": Fault(
        pattern="torch.aten.lt.Scalar and its like, add, sub and mul, of a constant of floats and a whole number",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="-2.0 < 0 is folded to false, because the bits of 0 are taken for a float",
        instead="the number as a float",
        where="tilewright.frontends.pytorch_scalars",
        program="whole_number_beside_a_constant",
    ),
    "running logarithms of sums": Fault(
        pattern="torch.aten.logcumsumexp",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="that of 1000 is infinite, because exp(1000) overflows",
        instead="sums of pairs less their larger one",
        where="tilewright.frontends.pytorch_running",
        program="running_logarithms_of_sums",
    ),
    "places of NaN": Fault(
        pattern="torch.aten.max.dim, min.dim, argmax, argmin",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="the place of the largest of (1, NaN) is 0",
        instead="that of the first NaN",
        where="tilewright.frontends.pytorch_extremes",
        program="place_of_nan",
    ),
    "powers of integers": Fault(
        pattern="Pow",
        types="i32, i64, f64",
        targets="all",
        symptom="wrong numbers",
        evidence="every power of a negative base is the least integer, or NaN in f64",
        instead="products by squaring; in f64, the power of the magnitude",
        where=f"{_OPS}.pow",
        program="powers_of_integers",
    ),
    "single scatter": Fault(
        pattern="ScatterElements, and ScatterND that reduces, with one update, index and update constant",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="the update is zero, or does not compile, because the index is read for it",
        instead="a kernel of ours looks for the update; it is made twice where a size is not known",
        where=f"{_OPS}.scatter",
        unchecked="from run to run, the compiler refuses the same model, or computes wrong numbers",
    ),
    "gelu by tanh": Fault(
        pattern="Gelu with approximate=tanh",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="0.797724 stands for √(2/π) = 0.797885",
        instead="the formula is spelled out",
        where=f"{_OPS}.gelu",
        program="gelu_by_tanh",
    ),
    "gelu by tanh of torch": Fault(
        pattern='torch.aten.gelu "tanh"',
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="0.797724 stands for √(2/π) = 0.797885",
        instead="the formula is spelled out",
        where="tilewright.frontends.rewrites.torch_ops:spell_out_torch",
        program="gelu_of_torch",
    ),
    "starts behind the end": Fault(
        pattern="Slice with negative steps",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="x[2**63-1::-1] of an open dim has a row that is behind the tensor; of a fixed one, it is refused",
        instead="a slice of the reversed tensor",
        where=f"{_OPS}.slice",
        program="slice_from_behind",
    ),
    "weights of embedding bags": Fault(
        pattern="torch.aten.embedding_bag.padding_idx that sums",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="the weights of the samples are ignored: half of 2 is 2",
        instead="rows are gathered, weighted and reduced",
        where="tilewright.frontends.pytorch_bags",
        program="weighted_embedding_bag",
    ),
    "elu near zero": Fault(
        pattern="Elu, Celu, Selu",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="elu(-1e-9) is 0, because 1 is subtracted from exp(x)",
        instead="expm1",
        where="tilewright.frontends.onnx_importer",
        program="elu_of_small_numbers",
    ),
    "constants of selu": Fault(
        pattern="Selu",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="gamma is 1.0507 instead of 1.050701",
        instead="the constants in full",
        where="tilewright.frontends.onnx_importer",
        program="selu_at_infinity",
    ),
    "narrow sums": Fault(
        pattern="means, norms, pools and losses",
        types="f16, bf16",
        targets="all",
        symptom="wrong numbers",
        evidence="the mean of 1024 numbers of 100 is infinite in f16",
        instead="they are computed in f32 and rounded once",
        where="tilewright.frontends.rewrites.wide_sums:sum_in_f32",
        program="mean_of_f16",
    ),
    "log of sums of exponentials": Fault(
        pattern="ReduceLogSumExp",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="exponentials overflow from 89 on",
        instead="the maximum is subtracted first",
        where=f"{_OPS}.reduce_log_sum_exp",
        program="log_sum_exp",
    ),
    "norms of zero": Fault(
        pattern="LpNormalization",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="a vector of zeros is divided by zero",
        instead="it stays zero",
        where=f"{_OPS}.lp_normalization",
        program="normalized_zeros",
    ),
    "channels as blocks": Fault(
        pattern="DepthToSpace with mode CRD",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="channels are split as if they were blocks",
        instead="reshapes and a transpose",
        where=f"{_OPS}.depth_to_space",
        program="depth_to_space",
    ),
    "zero points of rows": Fault(
        pattern="MatMulInteger with a zero point for each row",
        types="i8, u8",
        targets="all",
        symptom="refused",
        evidence="it is taken as one for each column, which does not compile or is wrong",
        instead="differences are multiplied in i32",
        where=f"{_OPS}.matmul_integer",
        program="zero_points_of_rows",
    ),
    "wrapped pads": Fault(
        pattern="Pad with mode wrap",
        types="all",
        targets="all",
        symptom="hangs",
        evidence="64 × 48 elements with pads of 7 compile for minutes",
        instead="slices are concatenated, or elements gathered",
        where=f"{_OPS}.pad",
        program="padded_by_wrapping",
    ),
    "pads that are set apart": Fault(
        pattern="ConvTranspose with strides behind a Pad with zeros",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="the image moves by 4 elements instead of 12, for a pad of 4 and a stride of 3",
        instead="zeros of the other sign are added, and the pad stays",
        where=f"{_OPS}.conv_transpose",
        program="pads_set_apart",
    ),
    "determinants": Fault(
        pattern="Det",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="no rows are swapped, so [[0, 1], [1, 0]] has NaN",
        instead="elimination with pivots",
        where=f"{_OPS}.det",
        program="determinant",
    ),
    "lengths of sequences": Fault(
        pattern="RNN, GRU, LSTM",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="sequence_lens, layout, clip and most activations are ignored",
        instead="loops over cells of our own",
        where="tilewright.frontends.rewrites.recurrence",
        program="lengths_of_sequences",
    ),
    "loops that end early": Fault(
        pattern="Loop with a condition",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="the condition that the body computes is ignored",
        instead="scf.while",
        where="tilewright.frontends.control_flow",
        program="loop_that_ends_early",
    ),
    "loops on several threads": Fault(
        pattern="scf.while, scf.for and scf.if, on local-task",
        types="all",
        targets="CPUs",
        symptom="fails when called",
        evidence="memory is used before it is allocated: transient buffer has not been committed (iree#24885)",
        instead="IREE runs such programs on one thread (local-sync)",
        where="tilewright.records.threads:threads_in_iree",
        unchecked="it takes several loops in a program, and happens in most of its calls only",
    ),
    "scans backwards": Fault(
        pattern="Scan with directions",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="directions are ignored",
        instead="scf.for that counts from the end",
        where="tilewright.frontends.control_flow",
        program="scan_backwards",
    ),
    "unsigned division": Fault(
        pattern="Div, Mod, Relu, ReduceMax and others",
        types="unsigned integers",
        targets="all",
        symptom="wrong numbers",
        evidence="200 / 3 of u8 is -18",
        instead="they are computed in a wider signed type",
        where="tilewright.frontends.rewrites.unsigned:keep_signs",
        program="quotient_of_unsigned",
    ),
    "halves in grids": Fault(
        pattern="GridSample with mode nearest",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="0.5 rounds to 1 instead of 0",
        instead="positions are rounded to even, and elements gathered",
        where=f"{_OPS}.grid_sample",
        program="nearest_ties",
    ),
    "indices of maxima": Fault(
        pattern="MaxPool with Indices",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="they count from the beginning of a plane instead of the tensor",
        instead="the offsets of planes are added",
        where=f"{_OPS}.max_pool",
        program="indices_of_maxima",
    ),
    "the rest of a shape": Fault(
        pattern="Reshape to a shape with -1 that is an input",
        types="all",
        targets="all",
        symptom="fails when called",
        evidence="the length of -1 is used as it is",
        instead="it is computed",
        where=f"{_OPS}.reshape",
        program="reshaped_to_the_rest",
    ),
    "implicit results of einsums": Fault(
        pattern="Einsum without ->",
        types="all",
        targets="all",
        symptom="refused",
        evidence="a missing result is taken as a number",
        instead="the result is spelled out",
        where=f"{_OPS}.einsum",
        program="einsum_without_result",
    ),
    "tanh of f64": Fault(
        pattern="Tanh",
        types="f64",
        targets="CPUs",
        symptom="refused",
        evidence="the back end has no such function",
        instead="exponentials",
        where=f"{_OPS}.tanh",
        program="tanh_of_doubles",
    ),
    "names of weights": Fault(
        pattern="weights whose names differ in punctuation",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence='"a:b" and "a_b" get one parameter',
        instead="the importer gives every weight a key of its own",
        where="tilewright.frontends.onnx_importer",
        unchecked="only with weights in a parameter archive; test_onnx_weights has such a model",
    ),
    "constants through Softplus": Fault(
        pattern="Softplus of a constant",
        types="floats",
        targets="all",
        symptom="wrong numbers",
        evidence="its threshold is an integer, which is compared as a float",
        instead="the threshold is a float",
        where="tilewright.frontends.onnx_importer",
        unchecked="the result depends on the contents of memory",
    ),
    "carried tensors": Fault(
        pattern="scf.for, scf.while and scf.if that carry tensors",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="lengths of the first iteration are kept, and buffers overwritten that others read",
        instead="tensors cross the border as buffer views of their own",
        where="tilewright.frontends.scf:Carrier",
        unchecked="many small models in test/e2e/test_control_flow.py show it without the workaround",
    ),
    "kernels without operands": Fault(
        pattern="dispatches with several results and no operand",
        types="all",
        targets="all",
        symptom="wrong numbers",
        evidence="they are repeated for each result",
        instead="each such kernel gets an operand",
        where="tilewright.iree",
        unchecked="only kernels of ours have this form: passes/iree/SpliceIree.cpp",
    ),
    "tensors without elements": Fault(
        pattern="ops on extents of zero",
        types="all",
        targets="all",
        symptom="refused",
        evidence="the compiler divides by the extents",
        instead="`tile-normalize` removes them",
        where="tilewright.api.stitch:stitch",
        unchecked="only some ops show it, and the compiler then ends by a signal",
    ),
}
