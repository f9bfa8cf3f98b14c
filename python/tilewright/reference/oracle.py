"""Reference results of a model: seeded inputs, float64 and ONNX Runtime references, and the accepted errors.

`float64_reference` is the standard. It rewrites the model so that every floating-point tensor is float64 and evaluates
it in ONNX Runtime. Where that is not installed or has no double kernel (Erf, Gelu, Conv, Elu, ...), it uses onnx's
ReferenceEvaluator with the operators below replaced, because its own round to float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
    version_converter,
)
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tilewright.reference import moving, quantized, recurrent
from tilewright.reference.drawing import random_inputs

__all__ = [
    "float64_reference",
    "model_tolerance",
    "ort_reference",
    "random_inputs",
    "relative_error",
    "run_double_onnx",
    "run_double_ort",
    "tolerance",
    "widen",
    "widen_array",
]

Array = np.ndarray[Any, Any]

_LOW_PRECISION = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
# ONNX Runtime also expands Gelu in double, but with its constants (sqrt(2/pi), ...) rounded to float32. On processors
# without VNNI, it adds pairs of products of u8 and s8 in 16 bits, which saturate, and some of s8 and u8 are wrong.
INEXACT_IN_ORT = frozenset({"Gelu", "MatMulInteger", "ConvInteger"})
"""Operators that ONNX Runtime may compute with larger errors than rounding."""
_FLOAT_ATTRIBUTES_OF_CONSTANT = ("value_float", "value_floats")


# Largest accepted distance of a result from float64, as ‖y − y64‖ / ‖y64‖ over a whole output.
#
# Each operation rounds by at most eps of its type. Over a whole output, rounding errors are close to independent, so d
# dependent operations err by about sqrt(d)·eps and a sum of n terms by sqrt(n)·eps; d·eps and n·eps are the worst case.
# - float32 (eps 1.2e-7): BERT-base chains about 400 operations: sqrt(400)·eps = 2.4e-6, and vendors' exp, erf and tanh
#   may add a few eps each. Bound: 2e-5. Observed in ONNX Runtime and stock IREE: up to 8e-7.
# - float16 (eps 9.8e-4): up to 14 dependent operations, worst case 14·eps = 1.4e-2. Bound: 2e-2. Seen in stock IREE: up
#   to 4e-4 in random graphs, and 4e-3 in a product of 105 factors rounded one by one.
# - bfloat16 (eps 7.8e-3): 14·eps = 1.1e-1. Bound: 1e-1. Seen in stock IREE: up to 3e-2, again in a long product; other
#   single operators stay below 1e-2.
# - integers and bool are exact.
# A graph must meet the bound of its narrowest type: float64 leaves out the rounding of casts, too.
_TOLERANCES: dict[np.dtype[Any], float] = {
    np.dtype(np.float64): 1e-12,
    np.dtype(np.float32): 2e-5,
    np.dtype(np.float16): 2e-2,
    np.dtype(ml_dtypes.bfloat16): 1e-1,
}


def tolerance(dtype: np.dtype[Any] | type) -> float:
    """Returns the largest acceptable `relative_error` if `dtype` is the narrowest type that a result went through."""
    return _TOLERANCES.get(np.dtype(dtype), 0.0)


def model_tolerance(model: ModelProto) -> float:
    """Returns the tolerance of the narrowest floating-point type that occurs anywhere in the model.

    It also holds for integer results: they stay exact only where the graph computes them from exact values, which the
    generators ensure, and exact values meet any tolerance.
    """
    inferred = onnx.shape_inference.infer_shapes(model)
    values = [*inferred.graph.input, *inferred.graph.value_info, *inferred.graph.output]
    types = {value.type.tensor_type.elem_type for value in values}
    types |= {tensor.data_type for tensor in inferred.graph.initializer}
    return max(tolerance(helper.tensor_dtype_to_np_dtype(element)) for element in types if element)


def relative_error(y: Array, y64: Array, *, least_scale: float = 0.0) -> float:
    """Returns ‖y − y64‖ / ‖y64‖.

    If the reference is zero, it is the plain ‖y − y64‖; if shapes or nan/inf differ, infinity. The denominator is at
    least `least_scale`.
    """
    if y.shape != y64.shape:
        return math.inf
    actual, expected = y.astype(np.float64).ravel(), y64.astype(np.float64).ravel()
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return math.inf
    difference = float(np.linalg.norm(actual[finite] - expected[finite]))
    scale = max(least_scale, float(np.linalg.norm(expected[finite])))
    error = difference / scale if scale > 0 else difference
    return error if math.isfinite(error) else math.inf


def ort_reference(model: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Returns what ONNX Runtime's CPU provider computes in the model's own types."""
    return _run(model, inputs, is_optimized=True)


def _run(model: ModelProto, inputs: Sequence[Array], *, is_optimized: bool) -> list[Array]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if is_optimized else levels.ORT_DISABLE_ALL
    # A refused operator raises an exception, so it need not be logged as well.
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Without VNNI, products of u8 and constant s8 are then those of u8, whose sums are exact.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, _feeds(model, inputs))]


def _feeds(model: ModelProto, inputs: Sequence[Array]) -> dict[str, Array]:
    """Returns inputs by name. The order is that of a program: inputs that are initializers, too, are last and may be
    left out."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in defaults]
    optional = [value.name for value in model.graph.input if value.name in defaults]
    if not len(names) <= len(inputs) <= len(names) + len(optional):
        raise ValueError(f"{len(inputs)} inputs were given for {', '.join(names) or 'none'}")
    return dict(zip([*names, *optional], inputs, strict=False))


def _new_ops() -> list[Any]:
    """Returns the operators that replace onnx's own: these round to float32, ignore inputs, or fail."""
    recurrences = [recurrent.RNN, recurrent.GRU, recurrent.LSTM]
    others: list[Any] = [moving.Scan, moving.Loop, moving.GatherElements, moving.ScatterElements]
    others += [moving.GlobalMaxPool, moving.ConvTranspose]
    others += [quantized.QLinearMatMul, quantized.QLinearConv, quantized.ConvInteger]
    return [Erf, Gelu, Softplus, HardSigmoid, Elu, *recurrences, *others]


_OPSET_OF_EVALUATOR = 21
"""An opset of which onnx's evaluator has all operators."""


def float64_reference(model: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Returns the outputs of the model computed in float64. Integer and bool outputs keep their type."""
    widened = widen(model)
    wide_inputs = [widen_array(value) for value in inputs]
    if any(node.op_type in INEXACT_IN_ORT for node in model.graph.node):
        return run_double_onnx(widened, wide_inputs)
    try:
        return run_double_ort(widened, wide_inputs)
    except _missing_in_ort():
        # ONNX Runtime lacks one of the operators in double; onnx's own evaluator has all of them.
        return run_double_onnx(widened, wide_inputs)


def _missing_in_ort() -> tuple[type[Exception], ...]:
    """Returns the errors of ONNX Runtime for models that it does not take, or that of its absence."""
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as errors
    except ImportError:
        return (ImportError,)
    return (
        errors.NotImplemented,
        errors.InvalidGraph,
        errors.Fail,
        errors.InvalidArgument,
        errors.RuntimeException,
    )


def run_double_ort(widened: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Runs a widened model in ONNX Runtime without optimisation, so that no fusion adds a kernel that works in
    float32."""
    return _run(widened, inputs, is_optimized=False)


def run_double_onnx(widened: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Runs a widened model in onnx's ReferenceEvaluator with the operators at the end of this file."""
    feeds = _feeds(widened, inputs)
    new_ops = _new_ops()
    with np.errstate(all="ignore"):
        try:
            results = ReferenceEvaluator(widened, new_ops=new_ops).run(None, feeds)
        except RuntimeError:  # the evaluator lacks older versions of some operators
            newer = version_converter.convert_version(widened, _OPSET_OF_EVALUATOR)
            results = ReferenceEvaluator(newer, new_ops=new_ops).run(None, feeds)
    return [np.asarray(result) for result in results]


# The rewrite to float64.


def widen(model: ModelProto) -> ModelProto:
    """Returns a copy of the model in which every f32, f16 and bf16 tensor, constant and cast is float64."""
    wide = ModelProto()
    wide.CopyFrom(model)
    _widen_graph(wide.graph)
    return wide


def _widen_graph(graph: GraphProto) -> None:
    for tensor in graph.initializer:
        if tensor.data_type in _LOW_PRECISION:
            tensor.CopyFrom(_widen_tensor(tensor))
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type in _LOW_PRECISION:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    del graph.value_info[:]
    for node in graph.node:
        _widen_node(node)


def _widen_node(node: NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            _widen_graph(attribute.g)
        elif attribute.type == AttributeProto.TENSOR and attribute.t.data_type in _LOW_PRECISION:
            attribute.t.CopyFrom(_widen_tensor(attribute.t))
        elif node.op_type == "Constant" and attribute.name in _FLOAT_ATTRIBUTES_OF_CONSTANT:
            values = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            tensor = numpy_helper.from_array(np.array(values, dtype=np.float64))
            attribute.CopyFrom(helper.make_attribute("value", tensor))
        elif attribute.name in ("to", "dtype") and attribute.i in _LOW_PRECISION:
            attribute.i = TensorProto.DOUBLE


def _widen_tensor(tensor: TensorProto) -> TensorProto:
    return numpy_helper.from_array(widen_array(numpy_helper.to_array(tensor)), tensor.name)


def widen_array(value: Array) -> Array:
    """Returns a floating-point array as float64, any other unchanged."""
    is_float = value.dtype in (np.float32, np.float16) or value.dtype == ml_dtypes.bfloat16
    return value.astype(np.float64) if is_float else value


# Operators that onnx's ReferenceEvaluator computes in float32 (Erf, and Gelu through it) or evaluates slowly.

_erf = np.frompyfunc(math.erf, 1, 1)


def _erf64(x: Array) -> Array:
    return np.asarray(_erf(x)).astype(np.float64)


class Erf(OpRun):
    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (_erf64(x),)


class Gelu(OpRun):
    op_domain = ""

    def _run(self, x: Array, approximate: str = "none") -> tuple[Array]:
        if approximate == "tanh":
            return (0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),)
        return (0.5 * x * (1.0 + _erf64(x / math.sqrt(2.0))),)


class Softplus(OpRun):
    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.logaddexp(x, 0.0),)


class HardSigmoid(OpRun):
    op_domain = ""

    def _run(self, x: Array, alpha: float = 0.2, beta: float = 0.5) -> tuple[Array]:
        return (np.clip(alpha * x + beta, 0.0, 1.0),)


class Elu(OpRun):
    op_domain = ""

    def _run(self, x: Array, alpha: float = 1.0) -> tuple[Array]:
        return (np.where(x > 0, x, alpha * np.expm1(x)),)
