"""Loops of ONNX whose states, trip counts and results are known or not.

The usual body computes x' = 2 x + w + i, collected, as long as the sum of x' is below a bound.
w and the bound are outside.
"""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from control_flow_models import (
    BOOL,
    FLOAT,
    INT64,
    START,
    Array,
    Shape,
    W,
    compiled,
    equal,
    graph_of,
    node,
    value,
)
from onnx import GraphProto

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


def doubling_body(*, is_counted: bool, state_shape: Shape = (3,)) -> GraphProto:
    nodes = [
        node("Cast", ["i"], ["i_float"], to=FLOAT),
        node("Add", ["x", "x"], ["doubled"]),
        node("Add", ["doubled", "w"], ["moved"]),
        node("Add", ["moved", "i_float"], ["next"]),
        node("Identity", ["next"], ["slice"]),
        node("ReduceSum", ["next"], ["total"], keepdims=0),
        node("Identity", ["going"], ["still"]) if is_counted else node("Less", ["total", "bound"], ["still"]),
    ]
    return graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL), value("x", state_shape)],
        [value("still", [], BOOL), value("next", state_shape), value("slice", state_shape)],
    )


def double(limit: float, *, begins: bool, bound: float) -> tuple[Array, Array]:
    x, slices, step = START.astype(np.float64), [], 0
    while step < limit and begins:
        x = 2 * x + W + step
        slices.append(x)
        begins, step = bool(x.sum() < bound), step + 1
    return x, np.stack(slices) if slices else np.zeros((0, 3))


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("condition", ["", "true", "false", "input"])
@pytest.mark.parametrize("trips", ["", "constant", "input"])
def test_loop(trips: str, condition: str, is_counted: bool) -> None:  # noqa: FBT001
    """Trip count and initial condition are absent, constant or inputs; the body keeps or computes the condition."""
    names = [f"{trips}_count" if trips else "", f"{condition}_condition" if condition else ""]
    constants = {
        "constant_count": np.int64(5),
        "true_condition": np.True_,
        "false_condition": np.False_,
        "w": W,
    }
    inputs = [value("x0", [3]), value("bound", [])]
    inputs += [value("input_count", [], INT64)] if trips == "input" else []
    inputs += [value("input_condition", [], BOOL)] if condition == "input" else []
    loop = node("Loop", [*names, "x0"], ["last", "all"], body=doubling_body(is_counted=is_counted))
    outputs = [value("last", [3]), value("all", [None, 3])]
    if not trips and is_counted:
        with pytest.raises(tilewright.ModelError, match="'last': a Loop without a trip count"):
            compiled([loop], inputs, outputs, constants)
        return
    program = compiled([loop], inputs, outputs, constants)
    for count in (0, 1, 7) if trips == "input" else (5,):
        for begins in (True, False) if condition == "input" else (condition != "false",):
            for bound in (40.0, -100.0):
                given: list[Array] = [START, np.float32(bound)]
                given += [np.int64(count)] if trips == "input" else []
                given += [np.bool_(begins)] if condition == "input" else []
                expected = double(
                    count if trips else np.inf, begins=begins, bound=np.inf if is_counted else bound
                )
                equal(program(*given), *expected)


@pytest.mark.parametrize("state_shape", [None, [None], ["n"]])
def test_a_body_need_not_declare_shapes(state_shape: Shape) -> None:
    """ONNX infers no shape for a state, which IREE's importer takes as a single number."""
    body = doubling_body(is_counted=True, state_shape=state_shape)
    loop = node("Loop", ["count", "", "x0"], ["last", "all"], body=body)
    program = compiled(
        [loop], [value("x0", [3])], [value("last", None), value("all", None)], {"count": np.int64(4), "w": W}
    )
    equal(program(START), *double(4, begins=True, bound=np.inf))


def test_the_number_of_an_iteration_may_be_a_vector() -> None:
    """Some exporters declare the inputs of a body as vectors of one element."""
    body = doubling_body(is_counted=False)
    for number in (0, 1):
        body.input[number].type.tensor_type.shape.dim.add().dim_value = 1
    loop = node("Loop", ["count", "condition", "x0"], ["last", "all"], body=body)
    inputs = [value("x0", [3]), value("bound", []), value("count", [1], INT64), value("condition", [1], BOOL)]
    program = compiled([loop], inputs, [value("last", None), value("all", None)], {"w": W})
    given = START, np.float32(40), np.array([7]), np.array([True])
    equal(program(*given), *double(7, begins=True, bound=40))


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("width", [2, "n"])
def test_a_state_that_grows(width: int | str, is_counted: bool) -> None:  # noqa: FBT001
    """The state gets another row in each iteration. Its first shape is known, but not that of any iteration."""
    nodes = [
        node("Concat", ["x", "row"], ["longer"], axis=0),
        node("Shape", ["longer"], ["shape"]),
        node("Gather", ["shape", "zero"], ["rows"], axis=0),
        node("Identity", ["going"], ["still"]) if is_counted else node("Less", ["rows", "most"], ["still"]),
    ]
    body = graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL), value("x", None)],
        [value("still", [], BOOL), value("longer", None), value("rows", [], INT64)],
        {"zero": np.int64(0)},
    )
    loop = node("Loop", ["count", "", "x0"], ["last", "lengths"], body=body)
    program = compiled(
        [loop],
        [value("x0", [1, width]), value("row", [1, width]), value("count", [], INT64)],
        [value("last", [None, width]), value("lengths", [None], INT64)],
        {"most": np.int64(4)},
    )
    first, row = np.ones((1, 2), np.float32), np.array([[2, 3]], np.float32)
    for count in (0, 1, 6):
        done = count if is_counted else min(count, 3)
        rows = np.concatenate([first] + [row] * done)
        equal(program(first, row, np.int64(count)), rows, np.arange(2, 2 + done))


def test_slices_of_a_shape_that_is_not_known_before_the_loop() -> None:
    """Each slice is cut to a length that an operand holds."""
    nodes = [
        node("Slice", ["x", "zero", "length"], ["cut"]),
        node("Add", ["cut", "cut"], ["slice"]),
        node("Identity", ["going"], ["still"]),
    ]
    body = graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL)],
        [value("still", [], BOOL), value("slice", None)],
        {"zero": np.array([0])},
    )
    loop = node("Loop", ["count", ""], ["all"], body=body)
    inputs = [value("x", [4]), value("length", [1], INT64), value("count", [], INT64)]
    program = compiled([loop], inputs, [value("all", [None, None])])
    x = np.arange(4, dtype=np.float32)
    for count, length in ((3, 2), (1, 4)):
        equal(program(x, np.array([length]), np.int64(count)), np.stack([2 * x[:length]] * count))


# Collected slices need one shape, which only the run can show.
def test_slices_of_different_shapes_end_the_program() -> None:
    nodes = [
        node("Reshape", ["i", "one"], ["length"]),
        node("Slice", ["x", "zero", "length"], ["slice"]),
        node("Identity", ["going"], ["still"]),
    ]
    body = graph_of(
        nodes,
        [value("i", [], INT64), value("going", [], BOOL)],
        [value("still", [], BOOL), value("slice", None)],
        {"zero": np.array([0]), "one": np.array([1])},
    )
    loop = node("Loop", ["count", ""], ["all"], body=body)
    program = compiled([loop], [value("x", [4]), value("count", [], INT64)], [value("all", [None, None])])
    with pytest.raises(tilewright.ProgramError, match="iterations give 'slice' different shapes"):
        program(np.zeros(4, np.float32), np.int64(3))


def test_loops_in_loops() -> None:
    """The inner one runs as often as the number of the outer iteration says, and reads its state."""
    inner = graph_of(
        [node("Mul", ["y", "x"], ["y_next"]), node("Identity", ["g"], ["s"])],
        [value("j", [], INT64), value("g", [], BOOL), value("y", None)],
        [value("s", [], BOOL), value("y_next", None)],
    )
    outer = graph_of(
        [
            node("Loop", ["i", "", "x"], ["power"], body=inner),
            node("Identity", ["going"], ["still"]),
        ],
        [value("i", [], INT64), value("going", [], BOOL), value("x", None)],
        [value("still", [], BOOL), value("power", None)],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=outer)],
        [value("x0", [2])],
        [value("y", [2])],
        {"count": np.int64(3)},
    )
    x = np.array([1.5, -0.5], np.float32)
    equal(program(x), x ** (1 * 2 * 3))
