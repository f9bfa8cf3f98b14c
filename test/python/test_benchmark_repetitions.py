"""Benchmarks repeat a model inside itself, so that kernels are timed apart from the call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from tilewright.reference.oracle import (
    Array,
    float64_reference,
    model_tolerance,
    ort_reference,
    random_inputs,
    relative_error,
)

from benchmarks.expected import expected_repetitions, largest_error
from benchmarks.repetition import COUNTS, NotRepeatableError, is_barrier, repeat
from benchmarks.workloads import stitch
from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.usefixtures("fake_peers")


def _evaluated(model: onnx.ModelProto, inputs: list[Array]) -> list[Array]:
    names = [value.name for value in model.graph.input]
    return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))]


# Every repetition computes what the model computes.
@pytest.mark.parametrize(
    "build",
    [
        partial(stitch.softmax, (5, 7)),
        partial(stitch.masked_softmax, (3, 5)),
        partial(stitch.silu_product, (3, 5)),
        partial(stitch.rotary, (2, 3, 8)),
    ],
)
def test_repetition_is_composition(build: Callable[[], onnx.ModelProto]) -> None:
    model = build()
    inputs = random_inputs(model, 0)
    [last] = _evaluated(repeat(model, 3), inputs)
    value = inputs[0]
    for _ in range(3):
        [value] = _evaluated(model, [value, *inputs[1:]])
    np.testing.assert_allclose(last, value, rtol=1e-6, atol=1e-7)


def test_outputs_that_are_not_read_are_outputs_of_every_repetition() -> None:
    """bias-residual-layer-norm feeds both of its outputs back; batch statistics feeds back only the first of three."""
    model = stitch.batch_statistics((5, 3, 2))
    inputs = random_inputs(model, 0)
    outputs = _evaluated(repeat(model, 2), inputs)
    first = _evaluated(model, inputs)
    second = _evaluated(model, [first[0]])
    expected = [*first[1:], *second]
    assert len(outputs) == len(expected)
    for actual, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


# No repetition may start before the last one ends, and none may be left out as unread.
def test_link_depends_on_the_last_repetition_and_changes_nothing() -> None:
    model = stitch.transpose_cast((3, 5, 4))
    inputs = random_inputs(model, 0)
    repeated = repeat(model, 3)
    [expected] = _evaluated(model, inputs)
    for output in _evaluated(repeated, inputs):
        np.testing.assert_array_equal(output, expected)
    producers = {name: node for node in repeated.graph.node for name in node.output}
    waiting, reached = [repeated.graph.output[-1].name], set()
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += [i for i in producers[name].input if i not in reached] if name in producers else []
    assert {output.name for output in repeated.graph.output} <= reached


@pytest.mark.parametrize(
    "build",
    [
        partial(stitch.softmax, (5, 7)),
        partial(stitch.bias_residual_layer_norm, (3, 5)),
        partial(stitch.batch_statistics, (5, 3, 2)),
        partial(stitch.transpose_cast, (3, 5, 4)),
        partial(stitch.rotary, (2, 3, 8)),
    ],
)
def test_repetitions_are_expected_as_the_repeated_model_computes_them(
    build: Callable[[], onnx.ModelProto],
) -> None:
    """The cases feed back both outputs, the first or none, and one settles long before the last repetition."""
    model = build()
    inputs = random_inputs(model, 0)
    expected = expected_repetitions(model, inputs, COUNTS[1:])
    assert list(expected) == list(COUNTS[1:])
    for count, outputs in expected.items():
        wanted = float64_reference(repeat(model, count), inputs)
        assert len(outputs) == len(wanted)
        for one, values in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(one.values, values, rtol=1e-9, atol=1e-12)


def test_repetitions_are_held_to_the_magnitude_of_the_first() -> None:
    """The mean of a normalised value is zero except for rounding."""
    model = stitch.batch_statistics((129, 7))
    inputs = random_inputs(model, 0)
    outputs = ort_reference(repeat(model, 4), inputs)
    expected = expected_repetitions(model, inputs, [4])[4]
    assert largest_error(outputs, expected) < model_tolerance(model)
    assert max(relative_error(y, one.values) for y, one in zip(outputs, expected, strict=True)) > 0.1


# Repetitions whose values would overflow are not compared.
def test_numbers_beyond_the_type_are_not_expected() -> None:
    g = GraphBuilder("thousandfold")
    x = g.input("x", (3, 5))
    g.output(g.op("Mul", x, g.scalar(1000.0)), (3, 5))
    model = g.build()
    assert list(expected_repetitions(model, random_inputs(model, 0), COUNTS[1:])) == [4]


# Such a workload is measured by calls.
def test_workload_that_cannot_be_repeated_says_so() -> None:
    with pytest.raises(NotRepeatableError, match="no output fits an input"):
        repeat(stitch.argmax((3, 5)), 4)


# ONNX's checker accepts what the repetition writes.
@pytest.mark.parametrize("count", COUNTS)
def test_repeated_model_is_valid(count: int) -> None:
    model = repeat(stitch.gelu_erf_chain((3, 5)), count)
    onnx.checker.check_model(model, full_check=True)
    assert sum(map(is_barrier, model.graph.node)) == count - 1
