"""Tests of the edges of tensors: pads and windows are right on every instruction set, at sizes that fill no vector."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tilewright
from compiled import compiled
from onnx import ModelProto, TensorProto, helper, numpy_helper

from fuzz.hunt import GRAPHS_PER_MODULE
from fuzz.judge import Expected, compare
from fuzz.kinds import KINDS
from fuzz.merge import merge

# Every x86-64 machine that runs these tests supports both.
_TARGETS = ("x86-64-v2", "x86-64-avx2")
_TYPES = {
    "f64": (TensorProto.DOUBLE, np.dtype(np.float64)),
    "f32": (TensorProto.FLOAT, np.dtype(np.float32)),
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
    "i8": (TensorProto.INT8, np.dtype(np.int8)),
    "i16": (TensorProto.INT16, np.dtype(np.int16)),
    "i32": (TensorProto.INT32, np.dtype(np.int32)),
    "i64": (TensorProto.INT64, np.dtype(np.int64)),
}
# Each entry has rows and columns, and the sizes that they are padded to.
_SIZES = (
    (8, 8, 16, 16),
    (10, 20, 13, 32),
    (3, 2, 3, 16),
    (5, 17, 8, 24),
    (7, 31, 9, 33),
    (1, 5, 4, 40),
    (6, 9, 6, 11),
)


def _pads(dtype: str) -> ModelProto:
    """Pads every size at the end with zeros, and on all sides with sevens; a negation makes it a computation."""
    element, numpy = _TYPES[dtype]
    nodes, inputs, outputs, constants = [], [], [], []
    constants.append(numpy_helper.from_array(np.array(7, dtype=numpy), "seven"))
    for k, (rows, columns, high, wide) in enumerate(_SIZES):
        inputs.append(helper.make_tensor_value_info(f"x{k}", element, [rows, columns]))
        for name, before, fill in (
            ("behind", (0, 0), ""),
            ("around", (high - rows, (wide - columns) // 2), "seven"),
        ):
            amounts = np.array([*before, high - rows - before[0], wide - columns - before[1]], dtype=np.int64)
            constants.append(numpy_helper.from_array(amounts, f"{name}{k}.pads"))
            nodes.append(
                helper.make_node(
                    "Pad", [f"x{k}", f"{name}{k}.pads", *([fill] if fill else [])], [f"{name}{k}.wide"]
                )
            )
            nodes.append(helper.make_node("Neg", [f"{name}{k}.wide"], [f"{name}{k}"]))
            outputs.append(helper.make_tensor_value_info(f"{name}{k}", element, [high, wide]))
    graph = helper.make_graph(nodes, f"pads_{dtype}", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("target", _TARGETS)
def test_pads_have_what_they_are_filled_with(target: str, dtype: str) -> None:
    numpy = _TYPES[dtype][1]
    rng = np.random.default_rng()
    inputs = [rng.integers(-99, 100, size[:2]).astype(numpy) for size in _SIZES]
    results = iter(tilewright.compile(_pads(dtype), target, threads=[2])(*inputs))
    for x, (rows, columns, high, wide) in zip(inputs, _SIZES, strict=True):
        for left, top, fill in ((0, 0, 0), ((wide - columns) // 2, high - rows, 7)):
            expected = np.full((high, wide), fill, dtype=numpy)
            expected[top : top + rows, left : left + columns] = x
            np.testing.assert_array_equal(next(results).astype(np.float64), -expected.astype(np.float64))


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("first", [0, GRAPHS_PER_MODULE])
@pytest.mark.parametrize("target", _TARGETS)
def test_random_pads_windows_and_masks_are_right(target: str, first: int) -> None:
    seeds = {f"g{seed}": seed for seed in range(first, first + GRAPHS_PER_MODULE)}
    expected = {name: Expected.of(KINDS["windows"].graph(seed), seed) for name, seed in seeds.items()}
    with compiled(merge({name: part.model for name, part in expected.items()}), target=target) as result:
        outputs = result.program(*(array for part in expected.values() for array in part.inputs))
        verdicts = compare(expected, outputs, result.program.metadata.report)
    assert {name: verdict.message for name, verdict in verdicts.items() if verdict.failed} == {}
