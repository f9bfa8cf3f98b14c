"""If of ONNX: branches that are chosen at run time, or by a constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from control_flow_models import (
    BOOL,
    INT64,
    START,
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


def branch(op: str, operand: str = "x", shape: Shape = None, **attributes: Any) -> GraphProto:
    name = f"{op}_of_{operand}"
    return graph_of([node(op, [operand], [name], **attributes)], [], [value(name, shape)])


# One program gives either branch.
def test_if_chooses_when_the_program_runs() -> None:
    choice = node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs"))
    program = compiled([choice], [value("c", [1], BOOL), value("x", [3])], [value("y", [3])])
    x = np.array([1, -2, 3], np.float32)
    equal(program(np.array([True]), x), -x)
    equal(program(np.array([False]), x), np.abs(x))


def test_branches_may_differ_in_a_length() -> None:
    """The result has a dim of unknown length, and what reads it, too."""
    joined = graph_of([node("Concat", ["x", "x"], ["twice"], axis=0)], [], [value("twice", None)])
    nodes = [
        node("If", ["c"], ["z"], then_branch=joined, else_branch=branch("Abs")),
        node("Neg", ["z"], ["y"]),
    ]
    program = compiled(nodes, [value("c", [], BOOL), value("x", [3])], [value("y", [None])])
    x = np.array([1, -2, 3], np.float32)
    equal(program(np.True_, x), -np.concatenate([x, x]))
    equal(program(np.False_, x), -np.abs(x))


# No type of the result fits both.
def test_branches_of_different_ranks_are_refused() -> None:
    flat = graph_of([node("ReduceSum", ["x"], ["sum"], keepdims=0)], [], [value("sum", None)])
    choice = node("If", ["c"], ["y"], then_branch=flat, else_branch=branch("Abs"))
    with pytest.raises(tilewright.ModelError, match="'y': the branches of an If give 'y' different ranks"):
        compiled([choice], [value("c", [], BOOL), value("x", [3])], [value("y", [None])])


@pytest.mark.parametrize("truth", [True, False])
def test_a_constant_condition_in_a_body_leaves_one_branch(truth: bool) -> None:  # noqa: FBT001
    """The other branch may have any shape."""
    flat = graph_of([node("ReduceSum", ["x"], ["sum"], keepdims=0)], [], [value("sum", None)])
    branches = {"then_branch": branch("Neg"), "else_branch": flat}
    if not truth:
        branches = {"then_branch": flat, "else_branch": branch("Neg")}
    body = graph_of(
        [node("If", ["c"], ["next"], **branches), node("Identity", ["g"], ["still"])],
        [value("i", [], INT64), value("g", [], BOOL), value("x", [3])],
        [value("still", [], BOOL), value("next", [3])],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=body)],
        [value("x0", [3])],
        [value("y", [3])],
        {"count": np.int64(3), "c": np.bool_(truth)},
    )
    equal(program(START), -START)


def test_if_in_a_loop_in_an_if() -> None:
    """Even iterations double, odd ones negate; the body and its branches capture values of all graphs around them."""
    doubled = graph_of([node("Add", ["x", "x"], ["twice"])], [], [value("twice", None)])
    body = graph_of(
        [
            node("Mod", ["i", "two"], ["parity"]),
            node("Equal", ["parity", "zero"], ["is_even"]),
            node("If", ["is_even"], ["z"], then_branch=doubled, else_branch=branch("Neg")),
            node("Add", ["z", "w"], ["next"]),
            node("Identity", ["g"], ["still"]),
        ],
        [value("i", [], INT64), value("g", [], BOOL), value("x", None)],
        [value("still", [], BOOL), value("next", None)],
        {"zero": np.int64(0), "two": np.int64(2)},
    )
    looped = graph_of([node("Loop", ["count", "", "x0"], ["looped"], body=body)], [], [value("looped", None)])
    choice = node("If", ["c"], ["y"], then_branch=looped, else_branch=branch("Abs", "x0"))
    inputs = [value("c", [], BOOL), value("x0", [3]), value("count", [], INT64)]
    program = compiled([choice], inputs, [value("y", [3])], {"w": W})
    x = START.astype(np.float64)
    for step in range(5):
        x = (2 * x if step % 2 == 0 else -x) + W
    equal(program(np.True_, START, np.int64(5)), x)
    equal(program(np.False_, START, np.int64(5)), np.abs(START))
