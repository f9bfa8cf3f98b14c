"""Attention with large scores, masked rows, infinities and NaN."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import tilewright
from attention_models import PLAIN, kernels
from one_graph import one_graph
from onnx import TensorProto, helper
from tilewright.reference.oracle import float64_reference

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=9)]


def test_large_scores_in_bf16_leave_no_infinity() -> None:
    """A score and the maximum of its row must be rounded alike, because half a unit of such scores would overflow
    exp."""
    attention = replace(PLAIN, dtype="bf16")
    program = tilewright.compile(attention.build(), threads=[2])
    query, key, value = attention.inputs(program)
    (result,) = program(query * 4096, key * 4096, value)
    assert np.isfinite(result.astype(np.float64)).all()


def test_large_scores_of_a_softmax_op_by_op_in_bf16_leave_no_infinity() -> None:
    """The maximum itself is in bf16 here, as PyTorch and JAX may write it."""
    nodes = [
        helper.make_node("MatMul", ["query", "key"], ["scores"]),
        helper.make_node("ReduceMax", ["scores", "last"], ["largest"]),
        helper.make_node("Sub", ["scores", "largest"], ["below"]),
        helper.make_node("Exp", ["below"], ["weights"]),
        helper.make_node("ReduceSum", ["weights", "last"], ["total"]),
        helper.make_node("Div", ["weights", "total"], ["shares"]),
        helper.make_node("MatMul", ["shares", "value"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    scales = {"query": 60, "key": 60, "value": 1}
    inputs = {
        name: (rng.standard_normal((2, 64, 64)) * scale).astype(ml_dtypes.bfloat16)
        for name, scale in scales.items()
    }
    model = one_graph(nodes, inputs, {"last": np.array([-1])}, (TensorProto.BFLOAT16, (2, 64, 64)), opset=20)
    program = tilewright.compile(model, threads=1)
    assert len(kernels(program)) == 1, kernels(program)
    query, key, value = (array.astype(np.float64) for array in inputs.values())
    scores = query @ key
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ value
    result = program(*inputs.values())[0].astype(np.float64)
    # Scores differ by hundreds, so each row selects one value.
    np.testing.assert_allclose(result, expected, atol=1e-6)


# Strict numerics keep the division in front of the second product, at the price of a division per weight.
def test_strict_numerics_divide_where_the_graph_does() -> None:
    attention = replace(PLAIN, dtype="bf16")
    model = attention.build()
    program = tilewright.compile(model, threads=[2], numerics="strict")
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    assert np.linalg.norm(error) <= 4 * 2.0**-9 * np.linalg.norm(expected)
    assert "division after" not in program.explain()
    assert "exponentials within" not in program.explain()


def test_a_masked_row_is_what_onnx_says() -> None:
    """A row without any key gives NaN, and no other row is affected."""
    attention = replace(PLAIN, mask="rows")
    program = tilewright.compile(attention.build(), threads=[2])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(attention.build(), inputs)
    assert np.isnan(expected[..., 2, :]).all()
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6, equal_nan=True)


# Infinities and NaN in any operand give what float64 gives.
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("where", [0, 1, 2], ids=["query", "key", "value"])
def test_what_is_no_number_goes_where_it_must(where: int, value: float) -> None:
    model = PLAIN.build()
    program = tilewright.compile(model, threads=[2])
    inputs = PLAIN.inputs(program)
    inputs[where][0, 1, 4, 5] = value
    (expected,) = float64_reference(model, inputs)
    np.testing.assert_allclose(program(*inputs)[0], expected, rtol=1e-5, atol=2e-6, equal_nan=True)
