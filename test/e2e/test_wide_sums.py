"""Tests of means, norms, pools and sums of f16 and bf16 whose sums exceed the range or the precision of the type.

Values that an op of ONNX or PyTorch holds between its sum and its result are in f32: in every mode, on every device,
and also if the op stays with IREE.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.simulator.programs import simulate_program

from benchmarks.workloads.builder import GraphBuilder

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

Array = np.ndarray
_DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
_ELEMENTS = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
# The tolerance is relative to the largest number of a result: eight times its own rounding. In strict numerics, an
# expanded layer norm reads a mean near 100 that is rounded, and divides by a deviation of 12.
_TOLERANCES = {"f16": 2**-8, "bf16": 2**-5}

_ROWS, _IMAGE = (5, 1027), (2, 3, 33, 37)
Build = Callable[[GraphBuilder, str], str]
Reference = Callable[[Array], Array]


def _reduced(op: str, axes: list[int], *, keepdims: int = 1) -> Build:
    """Adds a reduction. Up to opset 17, axes are an attribute, except for ReduceSum."""
    if op == "ReduceSum":
        return lambda g, x: g.op(op, x, g.ints(axes), keepdims=keepdims)
    return lambda g, x: g.op(op, x, axes=axes, keepdims=keepdims)


def _windows(x: Array, *, padding: int = 0) -> Array:
    sides = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, sides), (3, 3), (2, 3))


def _log_sum_exp(x: Array) -> Array:
    largest = x.max(1)
    return largest + np.log(np.exp(x - largest[:, None]).sum(1))


def _scaled(x: Array, deviation: Array) -> Array:
    return x / np.sqrt(deviation + 1e-5)


def _layer_norm(g: GraphBuilder, x: str) -> str:
    """Adds a layer norm written with simple ops, as older exporters do."""
    centred = g.op("Sub", x, _reduced("ReduceMean", [1])(g, x))
    variance = _reduced("ReduceMean", [1])(g, g.op("Mul", centred, centred))
    return g.op("Div", centred, g.op("Sqrt", variance))


def _rms_norm(g: GraphBuilder, x: str) -> str:
    return g.op("Div", x, g.op("Sqrt", _reduced("ReduceMean", [1])(g, g.op("Mul", x, x))))


# The rows have numbers from 80 to 120, with either sign in every second row.
_OF_ROWS: dict[str, tuple[Build, Reference]] = {
    "mean": (_reduced("ReduceMean", [1], keepdims=0), lambda x: x.mean(1)),
    "mean of columns": (_reduced("ReduceMean", [0]), lambda x: x.mean(0, keepdims=True)),
    "mean of all": (lambda g, x: g.op("ReduceMean", x, keepdims=0), lambda x: x.mean()),
    "norm": (_reduced("ReduceL2", [1]), lambda x: np.sqrt((x * x).sum(1, keepdims=True))),
    "logarithm of a sum": (
        lambda g, x: _reduced("ReduceLogSum", [1])(g, g.op("Abs", x)),
        lambda x: np.log(np.abs(x).sum(1, keepdims=True)),
    ),
    "logarithm of exponentials": (_reduced("ReduceLogSumExp", [1], keepdims=0), _log_sum_exp),
    "layer norm": (_layer_norm, lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)),
    "RMS norm": (_rms_norm, lambda x: x / np.sqrt((x * x).mean(1, keepdims=True))),
    "division by a norm": (
        lambda g, x: g.op("LpNormalization", x, axis=1),
        lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    ),
    "logarithm of a softmax": (
        lambda g, x: g.op("LogSoftmax", x, axis=1),
        lambda x: x - _log_sum_exp(x)[:, None],
    ),
    "mean of two": (
        lambda g, x: g.op("Mean", *[g.op("Mul", x, _number(g, 500))] * 2),
        lambda x: 500 * x,
    ),
    "partial sums": (
        lambda g, x: g.op("CumSum", g.op("Mul", x, _number(g, 0.25)), g.constant(np.array(1))),
        lambda x: (x / 4).cumsum(1),
    ),
    "remainder": (
        lambda g, x: g.op("Mod", x, _number(g, 0.375), fmod=1),
        lambda x: np.fmod(x, 0.375),
    ),
    "scaled product": (
        lambda g, x: g.op("Gemm", x, g.constant(np.ones((_ROWS[1], 3), _DTYPES[g.name])), alpha=0.01),
        lambda x: 0.01 * x.sum(1, keepdims=True) * np.ones(3),
    ),
    "sums of rows": (
        lambda g, x: g.op("Einsum", g.op("Mul", x, _number(g, 0.25)), equation="ij->i"),
        lambda x: (x / 4).sum(1),
    ),
}
_OF_IMAGES: dict[str, tuple[Build, Reference]] = {
    "mean of the image": (_reduced("ReduceMean", [2, 3]), lambda x: x.mean((2, 3), keepdims=True)),
    "global pool": (lambda g, x: g.op("GlobalAveragePool", x), lambda x: x.mean((2, 3), keepdims=True)),
    "global pool of squares": (
        lambda g, x: g.op("GlobalLpPool", x),
        lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)),
    ),
    "pool": (
        lambda g, x: g.op("AveragePool", g.op("Mul", x, _number(g, 400)), kernel_shape=[3, 3]),
        lambda x: 400 * _windows(x).mean((-1, -2)),
    ),
    "padded pool": (
        lambda g, x: g.op(
            "AveragePool",
            g.op("Mul", x, _number(g, 400)),
            kernel_shape=[3, 3],
            pads=[1] * 4,
            count_include_pad=1,
        ),
        lambda x: 400 * _windows(x, padding=1).mean((-1, -2)),
    ),
    "norm over channels": (
        lambda g, x: g.op("LRN", g.op("Mul", x, _number(g, 4)), size=3, alpha=3e-4),
        lambda x: 4 * x / (1 + 1e-4 * _neighbouring_squares(4 * x)) ** 0.75,
    ),
}


def _number(g: GraphBuilder, value: float) -> str:
    """Adds a constant of the graph's type, which the graph is named after."""
    return g.constant(np.array(value, _DTYPES[g.name]))


def _neighbouring_squares(x: Array) -> Array:
    squares = np.pad(x * x, [(0, 0), (1, 1), (0, 0), (0, 0)])
    return squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]


def _inputs(dtype: str) -> list[Array]:
    rng = np.random.default_rng()
    rows = rng.uniform(80, 120, _ROWS)
    rows[1::2] *= rng.choice([-1, 1], rows[1::2].shape)
    return [rows.astype(_DTYPES[dtype]), rng.uniform(80, 120, _IMAGE).astype(_DTYPES[dtype])]


def _model(dtype: str, rows: Array, image: Array, *, is_dynamic: bool = False) -> onnx.ModelProto:
    """Builds a graph with all of these ops, because compiling a graph has a fixed cost."""
    g = GraphBuilder(dtype)
    for name, array, table in (("rows", rows, _OF_ROWS), ("image", image, _OF_IMAGES)):
        x = g.input(name, array.shape, _ELEMENTS[dtype])
        for build, reference in table.values():
            g.output(build(g, x), reference(array.astype(np.float64)).shape, _ELEMENTS[dtype])
    model = g.build()
    if is_dynamic:
        for value in model.graph.input:
            for dim in value.type.tensor_type.shape.dim[:1]:
                dim.dim_param = f"{value.name}_count"
        for value in model.graph.output:
            for number, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}_{number}"
    return model


def _check(results: list[Array], dtype: str, rows: Array, image: Array) -> None:
    tables = [(rows, _OF_ROWS), (image, _OF_IMAGES)]
    expected = {
        name: reference(x.astype(np.float64)) for x, table in tables for name, (_, reference) in table.items()
    }
    for (name, exact), y in zip(expected.items(), results, strict=True):
        error = np.abs(np.asarray(y).astype(np.float64) - exact).max() / np.abs(exact).max()
        assert error <= _TOLERANCES[dtype], name


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("numerics", ["default", "strict"])
def test_ops_of_onnx_sum_in_f32(dtype: str, numerics: str) -> None:
    inputs = _inputs(dtype)
    program = tilewright.compile(_model(dtype, *inputs), numerics=numerics, threads=1)
    _check(program(*inputs), dtype, *inputs)


def test_ops_of_onnx_sum_in_f32_on_the_least_processor() -> None:
    inputs = _inputs("f16")
    program = tilewright.compile(_model("f16", *inputs), "x86-64-v2", threads=1)
    _check(program(*inputs), "f16", *inputs)


def test_ops_of_onnx_that_stay_with_iree_sum_in_f32() -> None:
    inputs = _inputs("f16")
    program = tilewright.compile(_model("f16", *inputs, is_dynamic=True), threads=1)
    _check(program(*inputs), "f16", *inputs)


@pytest.mark.cpu_levels("cpu")
def test_ops_of_onnx_sum_in_f32_on_a_gpu(tmp_path: Path) -> None:
    inputs = _inputs("f16")
    program = tilewright.compile(_model("f16", *inputs), "cuda:h200", dump_dir=tmp_path)
    _check(simulate_program(program, tmp_path, inputs).results, "f16", *inputs)


# The tests below use PyTorch.

_LAYER_NORM = """
  %size = torch.constant.int 1027
  %shape = torch.prim.ListConstruct %size : (!torch.int) -> !torch.list<int>
  %none = torch.constant.none
  %epsilon = torch.constant.float 1.0e-5
  %no = torch.constant.bool false
  %y = torch.aten.layer_norm %x, %shape, %none, %none, %epsilon, %no
    : TYPE, !torch.list<int>, !torch.none, !torch.none, !torch.float, !torch.bool -> TYPE
"""
_MEAN = """
  %last = torch.constant.int 1
  %dims = torch.prim.ListConstruct %last : (!torch.int) -> !torch.list<int>
  %kind = torch.constant.int KIND
  %yes = torch.constant.bool true
  %mean = torch.aten.mean.dim %x, %dims, %yes, %kind
    : TYPE, !torch.list<int>, !torch.bool, !torch.int -> !torch.vtensor<[5,1],ELEMENT>
  %one = torch.constant.int 1
  %y = torch.aten.sub.Tensor %x, %mean, %one
    : TYPE, !torch.vtensor<[5,1],ELEMENT>, !torch.int -> TYPE
"""
_DEVIATION = """
  %last = torch.constant.int 1
  %dims = torch.prim.ListConstruct %last : (!torch.int) -> !torch.list<int>
  %none = torch.constant.int 0
  %yes = torch.constant.bool true
  %deviation = torch.aten.std.correction %x, %dims, %none, %yes
    : TYPE, !torch.list<int>, !torch.int, !torch.bool -> !torch.vtensor<[5,1],ELEMENT>
  %y = torch.aten.div.Tensor %x, %deviation
    : TYPE, !torch.vtensor<[5,1],ELEMENT> -> TYPE
"""
_OF_TORCH: dict[str, tuple[str, Reference]] = {
    "layer_norm": (_LAYER_NORM, lambda x: _scaled(x - x.mean(1, keepdims=True), x.var(1, keepdims=True))),
    "mean": (_MEAN, lambda x: x - x.mean(1, keepdims=True)),
    "std": (_DEVIATION, lambda x: x / x.std(1, keepdims=True)),
}


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("numerics", ["default", "strict"])
@pytest.mark.parametrize("op", list(_OF_TORCH))
def test_ops_of_torch_sum_in_f32(op: str, dtype: str, numerics: str) -> None:
    """The inputs are numbers around 100 with a deviation of 300, whose variance exceeds the range of f16."""
    body, reference = _OF_TORCH[op]
    kind = f"!torch.vtensor<[5,1027],{dtype}>"
    body = body.replace("KIND", {"f16": "5", "bf16": "15"}[dtype]).replace("ELEMENT", dtype)
    source = f"func.func @f(%x: {kind}) -> {kind} {{{body.replace('TYPE', kind)}  return %y : {kind}\n}}"
    x = np.random.default_rng().normal(100, 300, _ROWS).astype(_DTYPES[dtype])
    (y,) = tilewright.compile(source, numerics=numerics, threads=1)(x)
    exact = reference(x.astype(np.float64))
    assert np.abs(y.astype(np.float64) - exact).max() <= _TOLERANCES[dtype] * np.abs(exact).max()
