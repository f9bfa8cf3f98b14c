"""The suite `ops`: single operators of ONNX in every element type, for checks on a GPU."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import onnx
import pytest
from tilewright.reference.drawing import random_inputs

from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.sketch import norm, sketch
from benchmarks.suites import DTYPES, select
from benchmarks.workloads.operators.left_out import LEFT_OUT, LEFT_OUT_TYPES
from benchmarks.workloads.operators.model import NEWEST_OPSET, OPSET, types_of
from benchmarks.workloads.operators.reference import references

_MODELS = {w.name: w for w in select(["ops"], dtypes=DTYPES, pattern="*")}
_OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})


def _checked() -> dict[str, set[str]]:
    """Returns the types in which the result of an operator is an output of a model."""
    found: dict[str, set[str]] = defaultdict(set)
    for workload in _MODELS.values():
        graph = workload.build().graph
        outputs = {value.name for value in graph.output}
        for node in graph.node:
            if not outputs.isdisjoint(node.output):
                found[node.op_type].add(workload.dtype)
    return found


def test_every_operator_is_checked_in_every_type_or_left_out() -> None:
    checked, missing = _checked(), []
    for op in _OPERATORS:
        if op not in LEFT_OUT:
            types = {t for opset in (OPSET, NEWEST_OPSET) for t in _types(op, opset)}
            missing += [f"{op} {dtype}" for dtype in types - checked[op]]
    assert not missing


def _types(op: str, opset: int) -> tuple[str, ...]:
    has_op = onnx.defs.has(op, max_inclusive_version=opset, domain="")
    return types_of(op, opset) if has_op and not onnx.defs.get_schema(op, opset).deprecated else ()


def test_what_is_left_out_exists() -> None:
    assert set(LEFT_OUT) <= set(_OPERATORS)
    assert {op for op, _ in LEFT_OUT_TYPES} <= set(_OPERATORS) - set(LEFT_OUT)


def test_a_model_has_the_same_bytes_each_time() -> None:
    for workload in _MODELS.values():
        assert workload.build().SerializeToString() == workload.build().SerializeToString()


@pytest.mark.parametrize("name", ["ops-multiply-f16", "ops-move-bool", "ops-newest-i32"])
def test_every_output_has_a_finite_reference_of_its_shape(name: str) -> None:
    model = _MODELS[name].build()
    results = references(model, random_inputs(model, 0))
    for value, result in zip(model.graph.output, results, strict=True):
        dims = value.type.tensor_type.shape.dim
        assert np.isfinite(result.astype(np.float64)).all()
        assert [d.dim_value or n for d, n in zip(dims, result.shape, strict=True)] == list(result.shape)


def _case(folder: Path, **outputs: tuple[np.ndarray, float]) -> Case:
    described = [
        {"name": name, "shape": y.shape, "norm": norm(y), "sketch": sketch(y), "tolerance": tolerance}
        for name, (y, tolerance) in outputs.items()
    ]
    return Case(folder, {"outputs": described, "tolerance": 1e-2})


def test_the_worst_output_is_named(tmp_path: Path) -> None:
    floats, numbers = np.linspace(1.0, 2.0, 77), np.arange(77)
    case = _case(tmp_path, floats=(floats, 1e-2), numbers=(numbers, 0.0))
    judged = case.judge([floats * 1.001, numbers])
    assert (judged.output, judged.error <= judged.tolerance) == ("floats", True)
    changed = numbers + (numbers == 5)
    judged = case.judge([floats * 1.001, changed])
    assert (judged.output, judged.error <= judged.tolerance) == ("numbers", False)


def test_an_output_of_another_size_is_wrong(tmp_path: Path) -> None:
    case = _case(tmp_path, flags=(np.array([True, False, True]), 0.0))
    assert case.judge([np.array([True, False])]).error == np.inf
    assert case.judge([]).error == np.inf
