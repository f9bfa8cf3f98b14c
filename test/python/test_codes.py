"""Types of eight bits or fewer become codes: each cast to and from them is that of ml_dtypes, which ONNX uses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from conftest import value
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tilewright.frontends.onnx_importer import rewrite_model
from tilewright.frontends.rewrites.codes import NARROW_TYPES, bits_of, values_of

Array = np.ndarray[Any, Any]

_FLOATS: dict[int, Any] = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}
_OPSET = 25


def _model(
    nodes: list[onnx.NodeProto], source: int, target: int, size: int, **constants: Array
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    graph = helper.make_graph(
        nodes, "graph", [value("x", [size], source)], [value("y", [size], target)], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=11)


def _run(model: onnx.ModelProto, x: Array) -> Array:
    """Evaluates the rewritten model, in which narrow types are bytes."""
    rewrite_model(model)
    with np.errstate(all="ignore"):
        (y,) = ReferenceEvaluator(model).run(None, {"x": x})
    return np.asarray(y)


def _near(kind: int) -> Array:
    """Returns the finite values, and the f32 at and beside the middle of each two neighbours, with both signs."""
    values = np.unique(values_of(kind)[np.isfinite(values_of(kind))])
    middles = ((values[:-1] + values[1:]) / 2).astype(np.float32)
    beside = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    ends = np.float32(values[-1]) * np.array([1.01, 1.06, 1.0625, 1.07, 1.2, 2, 1e6, np.inf], np.float32)
    return np.concatenate(
        [values.astype(np.float32), middles, *beside, ends, -ends, np.array([np.nan, -0.0], np.float32)]
    )


@pytest.mark.parametrize("kind", sorted(NARROW_TYPES))
def test_every_code_is_decoded(kind: int) -> None:
    codes = np.arange(1 << bits_of(kind), dtype=np.uint8)
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    y = _run(_model([node], kind, TensorProto.FLOAT, codes.size), codes)
    np.testing.assert_array_equal(y, codes.view(helper.tensor_dtype_to_np_dtype(kind)).astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", _FLOATS)
def test_floats_are_rounded_to_the_nearest_code(kind: int, saturate: int) -> None:
    x, dtype = _near(kind), _FLOATS[kind]
    node = helper.make_node("Cast", ["x"], ["y"], to=kind, saturate=saturate)
    y = _run(_model([node], TensorProto.FLOAT, kind, x.size), x).view(dtype)
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    clipped = np.clip(x, float(limits.min), float(limits.max)) if saturate else x
    with np.errstate(invalid="ignore", over="ignore"):
        expected = clipped.astype(dtype)
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_exponents_are_rounded_as_the_mode_says(mode: str) -> None:
    x = np.array([0, 2**-126, 1.4, 1.5, 1.6, 2, 3e38, 1e-30, np.inf, np.nan, 0.124, 96], np.float32)
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, round_mode=mode)
    y = _run(_model([node], TensorProto.FLOAT, TensorProto.FLOAT8E8M0, x.size), x)
    np.testing.assert_array_equal(y, numpy_helper.to_float8e8m0(x, True, mode).view(np.uint8))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2])
def test_integers_wrap_around(dtype: type) -> None:
    x = np.arange(-40, 40, dtype=np.int32)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    y = _run(_model([helper.make_node("Cast", ["x"], ["y"], to=kind)], TensorProto.INT32, kind, x.size), x)
    np.testing.assert_array_equal(y, x.astype(dtype).view(np.uint8))


def test_an_op_that_computes_in_codes_is_named() -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="rectifier")
    kind = TensorProto.FLOAT8E5M2
    model = _model([helper.make_node("Identity", ["x"], ["z"]), node], kind, kind, 3)
    model.graph.node[1].input[0] = "z"
    with pytest.raises(tilewright.TilewrightError, match=r"rectifier|Relu"):
        tilewright.compile(model)


def test_a_program_takes_and_returns_narrow_types() -> None:
    """Bytes pass through unchanged, and a large initializer of half bytes is a parameter."""
    weights = np.random.default_rng(0).integers(-8, 8, 300).astype(ml_dtypes.int4)
    nodes = [
        helper.make_node("Cast", ["w"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["wide", "numbers"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT8E5M2),
    ]
    model = _model(nodes, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, 300, w=weights)
    program = tilewright.compile(model, threads=1)
    assert program.signature is not None
    assert [spec.dtype for spec in program.signature.inputs] == ["float8_e4m3fn"]
    assert "model" in program.parameter_paths
    x = np.random.default_rng(1).standard_normal(300).astype(ml_dtypes.float8_e4m3fn)
    (y,) = program(x)
    assert y.dtype == ml_dtypes.float8_e5m2
    expected = (x.astype(np.float32) + weights.astype(np.float32)).astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))
