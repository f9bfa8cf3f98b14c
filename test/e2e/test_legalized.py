"""Ops that rules replace, compiled, at values and in forms that IREE's importer gets wrong or refuses.

Cases of one kind are one model, because each module has a fixed cost. The reference is numpy, or ONNX's evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
import tilewright
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]

Array = np.ndarray[Any, Any]

_OPSET = 21
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3e4, -3e4, 7.0, -np.nan, 2.0)
_FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def _value(name: str, array: Array) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [_value(name, array) for name, array in inputs.items()],
        [_value(name, array) for name, array in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10)


def _check(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    *,
    rtol: float = 0.0,
) -> None:
    model = _model(nodes, inputs, expected, constants)
    results = tilewright.compile(model, threads=1)(*inputs.values())
    for (name, wanted), y in zip(expected.items(), results, strict=True):
        assert y.dtype == wanted.dtype, name
        if wanted.dtype.kind in "iub":
            np.testing.assert_array_equal(y, wanted, err_msg=name)
        else:
            np.testing.assert_allclose(
                y.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=rtol, err_msg=name
            )


def _evaluated(
    nodes: Sequence[NodeProto], inputs: Mapping[str, Array], constants: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Returns what ONNX's evaluator computes; outputs of all nodes are results."""
    names = [name for node in nodes for name in node.output]
    model = _model(nodes, inputs, {name: np.zeros(()) for name in names}, constants)
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(model).run(None, dict(inputs))
    return dict(zip(names, (np.asarray(result) for result in results), strict=True))


@pytest.mark.parametrize("dtype", _FLOATS)
def test_nan_propagates_through_extrema_and_signs(dtype: type) -> None:
    """A NaN is the left or right operand, variable or beside a constant, and alone or among the elements of a row."""
    x = np.tile(np.array(_SPECIAL), (3, 3))[:, :31].astype(dtype)
    z = x[:, ::-1].copy()
    wide_x, wide_z = x.astype(np.float64), z.astype(np.float64)
    constants = {"low": np.array(-1, dtype), "high": np.array(2, dtype), "axis": np.array([1])}
    nodes = [
        helper.make_node("Max", ["x", "z"], ["max"]),
        helper.make_node("Min", ["x", "z"], ["min"]),
        helper.make_node("Max", ["x", "high", "z"], ["max_of_three"]),
        helper.make_node("Min", ["x", "high"], ["min_of_constant"]),
        helper.make_node("Clip", ["x", "low", "high"], ["clip"]),
        helper.make_node("Clip", ["x", "low"], ["clip_below"]),
        helper.make_node("Clip", ["x", "", "high"], ["clip_above"]),
        helper.make_node("Sign", ["x"], ["sign"]),
        helper.make_node("Relu", ["x"], ["relu"]),
        helper.make_node("ReduceMax", ["x", "axis"], ["row_max"], keepdims=0),
    ]
    with np.errstate(invalid="ignore"):
        wide = {
            "max": np.maximum(wide_x, wide_z),
            "min": np.minimum(wide_x, wide_z),
            "max_of_three": np.maximum(np.maximum(wide_x, 2), wide_z),
            "min_of_constant": np.minimum(wide_x, 2),
            "clip": np.clip(wide_x, -1, 2),
            "clip_below": np.maximum(wide_x, -1),
            "clip_above": np.minimum(wide_x, 2),
            "sign": np.sign(wide_x),
            "relu": np.maximum(wide_x, 0),
            "row_max": wide_x.max(axis=1),
        }
    _check(nodes, {"x": x, "z": z}, {name: y.astype(dtype) for name, y in wide.items()}, constants)


@pytest.mark.parametrize("dtype", _FLOATS)
def test_nan_equals_nothing(dtype: type) -> None:
    """The second comparison is of a value with an equal op on the same operand, which compilers merge."""
    x = np.tile(np.array(_SPECIAL), 3).astype(dtype)
    nodes = [
        helper.make_node("Equal", ["x", "x"], ["same"]),
        helper.make_node("Not", ["same"], ["is_nan"]),
        helper.make_node("Abs", ["x"], ["left"]),
        helper.make_node("Abs", ["x"], ["right"]),
        helper.make_node("Equal", ["left", "right"], ["same_size"]),
    ]
    is_nan = np.isnan(x.astype(np.float64))
    _check(nodes, {"x": x}, {"same": ~is_nan, "is_nan": is_nan, "same_size": ~is_nan})


@pytest.mark.parametrize(
    "source", [np.int8, np.int64, np.uint8, np.uint32, np.uint64, np.float32, np.float64]
)
def test_casts_to_all_integers(source: type) -> None:
    """Integers keep their low bits, and floats, which are in range here, are cut off."""
    targets = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
    nodes, inputs, expected = [], {}, {}
    for target in targets:
        name, bounds = np.dtype(target).name, np.iinfo(target)
        if np.dtype(source).kind == "f":
            largest = np.array([bounds.max], np.float64) * 0.9
            x = np.concatenate([[0, 0.5, 1.5, 100.99], largest, -largest if bounds.min else []]).astype(
                source
            )
        else:
            own = np.iinfo(source)
            x = np.array([own.min, own.max, own.max // 2 + 1, own.max // 3, 0, 1], source)
        nodes.append(
            helper.make_node(
                "Cast", [f"x_{name}"], [name], to=helper.np_dtype_to_tensor_dtype(np.dtype(target))
            )
        )
        inputs[f"x_{name}"], expected[name] = x, x.astype(target)
    _check(nodes, inputs, expected)


def _by_onnx_runtime(
    nodes: Sequence[NodeProto], inputs: Mapping[str, Array], constants: Mapping[str, Array]
) -> dict[str, Array]:
    """Returns what ONNX Runtime computes; outputs of all nodes are results."""
    names = [name for node in nodes for name in node.output]
    model = _model(nodes, inputs, {}, constants)
    model.graph.output.extend(ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


_RESIZES: list[dict[str, Any]] = [
    {"mode": mode, "coordinate_transformation_mode": where}
    for mode in ("nearest", "linear", "cubic")
    for where in ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
] + [
    *({"mode": "nearest", "nearest_mode": how} for how in ("floor", "ceil", "round_prefer_ceil")),
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "antialias": 1, "cubic_coeff_a": -0.5},
    {"mode": "cubic", "exclude_outside": 1},
]


@pytest.mark.parametrize("scale", [0.61, 1.73, 2.0])
def test_resizes(scale: float) -> None:
    """Every mode, by a factor that shrinks and factors that enlarge, whole and not. None puts a position halfway
    between two elements, where ONNX Runtime and onnx's evaluator round differently."""
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 5)).astype(np.float32)
    constants = {"scales": np.array([1, 1, scale, 1.29], np.float32)}
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], [f"y{number}"], **attributes)
        for number, attributes in enumerate(_RESIZES)
    ]
    _check(nodes, {"x": x}, _evaluated(nodes, {"x": x}, constants), constants, rtol=2e-6)


def test_the_nearest_element_is_found_in_f32() -> None:
    """3 / 0.6 is 5 in f32, and less than 5 for the f64 nearest to the f32 of 0.6."""
    x = np.random.default_rng(0).standard_normal((1, 3, 7, 7)).astype(np.float32)
    constants = {"scales": np.array([1, 1, 0.6, 0.6], np.float32)}
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["y0"], mode="nearest", **attributes)]
    _check(nodes, {"x": x}, _by_onnx_runtime(nodes, {"x": x}, constants), constants, rtol=0)


def test_transposed_convolutions() -> None:
    """Groups, dilations, padding that differs between sides, and shapes of the result."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 8, 7, 9)).astype(np.float32)
    forms: list[tuple[int, tuple[int, int], dict[str, Any]]] = [
        (1, (3, 3), {"pads": [0, 1, 1, 0], "strides": [2, 2]}),
        (1, (3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        (1, (3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 1]}),
        (1, (3, 3), {"output_shape": [15, 20], "strides": [2, 2]}),
        (2, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
        (8, (4, 4), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        (4, (3, 2), {"pads": [1, 0, 0, 1], "strides": [2, 3], "dilations": [2, 1], "output_padding": [1, 0]}),
    ]
    nodes, constants = [], {}
    for number, (group, kernel, attributes) in enumerate(forms):
        constants[f"w{number}"] = rng.standard_normal((8, 3, *kernel)).astype(np.float32)
        constants[f"b{number}"] = rng.standard_normal(3 * group).astype(np.float32)
        nodes.append(
            helper.make_node(
                "ConvTranspose", ["x", f"w{number}", f"b{number}"], [f"y{number}"], group=group, **attributes
            )
        )
    _check(nodes, {"x": x}, _by_onnx_runtime(nodes, {"x": x}, constants), constants, rtol=1e-5)


@pytest.mark.parametrize("target", [[6, -1], [0, 12], [-1, 0]])
def test_a_shape_at_run_time(target: list[int]) -> None:
    x, shape = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array(target)
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    (expected,) = (v for k, v in _evaluated(nodes, {"x": x, "shape": shape}).items() if k == "y")
    model = _model(nodes, {"x": x, "shape": shape}, {"y": expected})
    for dim, name in zip(model.graph.output[0].type.tensor_type.shape.dim, "ab", strict=True):
        dim.dim_param = name
    np.testing.assert_array_equal(tilewright.compile(model, threads=1)(x, shape)[0], expected)


@pytest.mark.parametrize("how", ["max", "min", "mul"])
def test_scattered_updates_of_one_element_are_combined(how: str) -> None:
    rng = np.random.default_rng(0)
    x, updates = (
        rng.standard_normal((5, 4)).astype(np.float32),
        rng.standard_normal((6, 3)).astype(np.float32),
    )
    indices = rng.integers(-5, 5, (6, 3))
    nodes = [helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction=how)]
    inputs = {"x": x, "i": indices, "u": updates}
    expected = x.copy()
    combine = {"max": np.maximum, "min": np.minimum, "mul": np.multiply}[how]
    combine.at(expected, (indices % 5, np.arange(3)[None, :]), updates)
    _check(nodes, inputs, {"y": expected}, rtol=1e-6)


def test_hardmax_of_an_old_opset_runs_over_all_later_dims() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    node = helper.make_node("Hardmax", ["x"], ["y"], axis=1)
    model = _model([node], {"x": x}, {"y": x})
    model.opset_import[0].version = 11
    (y,) = tilewright.compile(model, threads=1)(x)
    expected = np.zeros((2, 12), np.float32)
    expected[np.arange(2), x.reshape(2, 12).argmax(axis=1)] = 1
    np.testing.assert_array_equal(y, expected.reshape(x.shape))


def test_groups_of_opset_18_have_a_scale_each() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 5)).astype(np.float32)
    scale, bias = rng.standard_normal((2, 3)).astype(np.float32)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=3)
    model = _model([node], {"x": x}, {"y": x}, {"s": scale, "b": bias})
    model.opset_import[0].version = 18
    (y,) = tilewright.compile(model, threads=1)(x)
    groups = x.astype(np.float64).reshape(2, 3, 10)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    expected = normal * scale[None, :, None] + bias[None, :, None]
    np.testing.assert_allclose(y, expected.reshape(x.shape), rtol=1e-5, atol=1e-6)


def test_einsums_without_a_result() -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "a": rng.standard_normal((2, 3, 4)),
        "b": rng.standard_normal((4, 5)),
        "c": rng.standard_normal((3, 4)),
    }
    narrow = {name: x.astype(np.float32) for name, x in inputs.items()}
    equations = {"kij,jl": ("a", "b"), "ba": ("c",), "...j,jk": ("a", "b"), "ij,ij": ("c", "c")}
    nodes = [
        helper.make_node("Einsum", names, [f"y{number}"], equation=equation)
        for number, (equation, names) in enumerate(equations.items())
    ]
    expected = {
        f"y{number}": np.asarray(np.einsum(equation, *(narrow[name] for name in names)), np.float32)
        for number, (equation, names) in enumerate(equations.items())
    }
    _check(nodes, narrow, expected, rtol=1e-5)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_pads_that_differ_and_remove(mode: str) -> None:
    """What a negative amount removes is not repeated."""
    x = np.random.default_rng(0).standard_normal((3, 5, 7)).astype(np.float32)
    forms = [
        [0, 1, 2, 0, 2, 1],
        [2, 0, 3, 0, 2, 0],
        [0, -1, 2, 0, 1, -2],
        [0, -1, -2, 0, -1, -1],
        [1, 0, -1, 2, 3, 4],
    ]
    nodes, constants, expected = [], {}, {}
    for number, pads in enumerate(forms):
        before, after = pads[:3], pads[3:]
        kept = x[
            tuple(slice(max(0, -b), n - max(0, -a)) for b, n, a in zip(before, x.shape, after, strict=True))
        ]
        added = [(max(0, b), max(0, a)) for b, a in zip(before, after, strict=True)]
        constants[f"p{number}"], expected[f"y{number}"] = np.array(pads), np.pad(kept, added, mode=mode)  # type: ignore[call-overload]
        nodes.append(helper.make_node("Pad", ["x", f"p{number}"], [f"y{number}"], mode=mode))
    _check(nodes, {"x": x}, expected, constants)


def test_pools_whose_last_window_would_begin_in_the_padding() -> None:
    """Such windows do not exist. Other windows that reach beyond the padding count what is inside."""
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 9)).astype(np.float32)
    forms: list[dict[str, Any]] = [
        {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ]
    nodes = [
        helper.make_node(op, ["x"], [f"{op}{number}"], ceil_mode=1, **attributes)
        for number, attributes in enumerate(forms)
        for op in ("MaxPool", "AveragePool")
    ]
    _check(nodes, {"x": x}, _by_onnx_runtime(nodes, {"x": x}, {}), rtol=1e-6)
