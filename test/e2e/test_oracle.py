"""Tests of the oracle and the generators against each other, because the other end-to-end tests rely on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors  # type: ignore[import-untyped]
from tilewright.reference.oracle import (
    Array,
    float64_reference,
    model_tolerance,
    ort_reference,
    random_inputs,
    relative_error,
    run_double_onnx,
    run_double_ort,
    tolerance,
    widen,
    widen_array,
)

from benchmarks.suites import SUITES
from benchmarks.workloads import WORKLOADS, BertOptions, CnnOptions, bert, cnn, stitch
from fuzz.graphs import random_graph
from fuzz.op_table import OpCase, op_table

_RANDOM_SEEDS = range(41)
_TABLE = op_table()
# Gelu is omitted, because ONNX Runtime rounds its constants: see test_operator_without_double_kernel_is_double.
_FLOAT32_CASES = [c for c in _TABLE if "-f32-" in c.id and "-r2" in c.id and not c.id.startswith("gelu")]
# Large ones take seconds each, and have the same operators as smaller ones. Operators by themselves have references of
# their own (test_operator_suite.py), because neither of these two computes all of them.
_QUICK_WORKLOADS = [
    name
    for name, workload in WORKLOADS.items()
    if not workload.is_large and workload.suite not in SUITES["ops"]
]


def _errors(model: ModelProto, inputs: list[Array]) -> list[float]:
    results, expected = ort_reference(model, inputs), float64_reference(model, inputs)
    assert all(y64.dtype not in (np.float32, np.float16) for y64 in expected)
    return [relative_error(y, y64) for y, y64 in zip(results, expected, strict=True)]


def _read_in(graph: GraphProto) -> set[str]:
    """Returns the names that a graph's nodes read, in the graphs of loops and branches, too, and those of its
    outputs."""
    nested = [each.g for node in graph.node for each in node.attribute if each.HasField("g")]
    own = {operand for node in graph.node for operand in node.input} | {value.name for value in graph.output}
    return own.union(*map(_read_in, nested))


def _assert_nothing_dead(model: ModelProto) -> None:
    graph = model.graph
    used = _read_in(graph)
    assert [node.name for node in graph.node if not used.intersection(node.output)] == []
    defined = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    assert [name for name in defined if name not in used] == []


@pytest.mark.parametrize("seed", _RANDOM_SEEDS)
def test_random_graph_is_valid(seed: int) -> None:
    model = random_graph(seed)
    onnx.checker.check_model(model, full_check=True)
    _assert_nothing_dead(model)
    assert 4 <= len(model.graph.node) <= 20
    assert 1 <= len(model.graph.output) <= 6


def test_random_graphs_are_well_conditioned() -> None:
    """ONNX Runtime stays within the tolerance if it has all kernels of a graph; it lacks bf16 and some others."""
    evaluated = 0
    for seed in _RANDOM_SEEDS:
        model = random_graph(seed)
        inputs = random_inputs(model, seed)
        if any(value.dtype == ml_dtypes.bfloat16 for value in inputs):
            continue
        try:
            errors = _errors(model, inputs)
        except (ort_errors.NotImplemented, ort_errors.Fail, RuntimeError):
            continue
        evaluated += 1
        assert max(errors) <= model_tolerance(model), seed
    assert evaluated > 0.2 * len(_RANDOM_SEEDS)


def test_random_graph_is_deterministic() -> None:
    assert random_graph(7).SerializeToString() == random_graph(7).SerializeToString()
    assert random_graph(7).SerializeToString() != random_graph(8).SerializeToString()


def test_op_table_ids_are_unique() -> None:
    assert len({case.id for case in _TABLE}) == len(_TABLE)


def test_op_table_models_are_valid() -> None:
    for case in _TABLE:
        onnx.checker.check_model(case.model, full_check=True)


def test_op_table_matches_onnx_runtime() -> None:
    """This compares all cases for which ONNX Runtime has the kernel; it lacks bf16 and a few of i64 and bool."""
    failures, evaluated = [], 0
    for case in _TABLE:
        expected = float64_reference(case.model, case.inputs)[0]
        assert np.isfinite(expected.astype(np.float64)).all(), case.id
        if "bf16" in case.id:
            continue
        try:
            result = ort_reference(case.model, case.inputs)[0]
        except ort_errors.NotImplemented:
            continue
        evaluated += 1
        if relative_error(result, expected) > model_tolerance(case.model):
            failures.append(case.id)
    assert failures == []
    assert evaluated > 0.95 * sum("bf16" not in case.id for case in _TABLE)


@pytest.mark.parametrize("case", _FLOAT32_CASES, ids=lambda case: case.id)
def test_both_double_evaluators_agree(case: OpCase) -> None:
    """A model with one operator that ONNX Runtime lacks in double falls back as a whole, so both evaluators must be
    double."""
    widened = widen(case.model)
    inputs = [widen_array(value) for value in case.inputs]
    try:
        expected = run_double_ort(widened, inputs)[0]
    except ort_errors.NotImplemented:
        pytest.skip("no double kernel; see test_operator_without_double_kernel_is_double")
    assert relative_error(run_double_onnx(widened, inputs)[0], expected) <= tolerance(np.float64)


_erf = np.vectorize(math.erf, otypes=[np.float64])
_FORMULAS: dict[str, Callable[[Array], Any]] = {
    "Erf": _erf,
    "Gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "Gelu-tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "Softplus": lambda x: np.log(1 + np.exp(x)),
    "HardSigmoid": lambda x: np.clip(np.float64(np.float32(0.2)) * x + 0.5, 0, 1),
    "Elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "GlobalAveragePool": lambda x: x.mean(axis=(2, 3), keepdims=True),
}


@pytest.mark.parametrize("form", _FORMULAS)
def test_operator_without_double_kernel_is_double(form: str) -> None:
    op, *approximate = form.split("-")
    attributes = {"approximate": approximate[0]} if approximate else {}
    node = helper.make_node(op, ["x"], ["y"])
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    shape = (2, 3, 5, 7)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    graph = helper.make_graph(
        [node],
        op,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    expected = np.asarray(_FORMULAS[form](x.astype(np.float64)))
    assert relative_error(float64_reference(model, [x])[0], expected) <= tolerance(np.float64)


def test_convolution_is_double() -> None:
    """Conv is a sum of shifted products: strided and padded, it is compared with the loop."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 3, 7, 9)).astype(np.float32)
    weight = rng.standard_normal((5, 3, 3, 3)).astype(np.float32)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)
        for name, value in (("x", x), ("w", weight))
    ]
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 5, 4, 5))
    graph = helper.make_graph([node], "conv", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = sum(
        np.einsum(
            "nchw,fc->nfhw", padded[:, :, i : i + 7 : 2, j : j + 9 : 2], weight[:, :, i, j].astype(np.float64)
        )
        for i in range(3)
        for j in range(3)
    )
    assert relative_error(float64_reference(model, [x, weight])[0], np.asarray(expected)) <= tolerance(
        np.float64
    )


def test_quantised_products_are_rounded_before_the_zero_point_is_added() -> None:
    """A half is rounded to the even integer of its own, not to that of the sum with an odd zero point."""
    one = [np.array([[1]], np.uint8), np.array(0.5, np.float32), np.array(0, np.uint8)]
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    values = [*one, np.array([[3]], np.uint8), *one[1:], np.array(0.5, np.float32), np.array(1, np.uint8)]
    graph = helper.make_graph(
        [helper.make_node("QLinearMatMul", names, ["y"])],
        "half",
        [],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 1])],
        [numpy_helper.from_array(value, name) for name, value in zip(names, values, strict=True)],
    )
    (y,) = run_double_onnx(widen(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])), [])
    assert y == 2 + 1  # 1.5 is rounded to 2; 2.5 would be rounded to 2, too


def test_relative_error_tells_results_apart() -> None:
    y = np.array([3.0, 4.0])
    assert relative_error(y, y) == 0.0
    assert relative_error(np.array([3.0, 4.5]), y) == pytest.approx(0.1)
    assert relative_error(np.array([0.0, 0.5]), np.zeros(2)) == pytest.approx(0.5)
    assert relative_error(np.array([3.0, math.nan]), y) == math.inf
    assert relative_error(y[None], y) == math.inf


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize("name", _QUICK_WORKLOADS)
def test_workload_is_valid_and_matches_float64(name: str) -> None:
    model = WORKLOADS[name].build()
    onnx.checker.check_model(model, full_check=True)
    _assert_nothing_dead(model)
    errors = _errors(model, random_inputs(model, 0))
    assert max(errors) <= model_tolerance(model)


@pytest.mark.parametrize(
    "build",
    [
        lambda: bert(BertOptions(layers=1, hidden=24, heads=3, sequence=7, batch=2, intermediate=40)),
        lambda: cnn(CnnOptions(image=24, channels=5, classes=3, batch=2)),
        lambda: stitch.softmax((5, 7, 3), axis=1),
        lambda: stitch.batch_statistics((3, 5, 7)),
    ],
    ids=["bert", "cnn", "softmax", "batch-statistics"],
)
def test_workload_sizes_are_parameters(build: Callable[[], ModelProto]) -> None:
    model = build()
    onnx.checker.check_model(model, full_check=True)
    assert max(_errors(model, random_inputs(model, 0))) <= model_tolerance(model)


@pytest.mark.parametrize("seed", range(50))
def test_random_stitch_has_dependent_reductions(seed: int) -> None:
    """At least two reductions lie on some path from an input to an output."""
    graph = WORKLOADS[f"random-stitch-{seed}"].build().graph
    depth: dict[str, int] = {}
    for node in graph.node:
        below = max((depth.get(operand, 0) for operand in node.input), default=0)
        depth[node.output[0]] = below + node.op_type.startswith("Reduce")
    assert max(depth[value.name] for value in graph.output) >= 2
