"""Bodies of loops: what they capture, the types of their states, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright
from control_flow_models import BOOL, FLOAT, INT64, Array, compiled, equal, graph_of, node, value
from onnx import GraphProto, helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


def test_bodies_of_old_opsets() -> None:
    """The ops in a body have the meaning of the model's opset, too: Softmax 11 flattens, and Squeeze has attributes."""
    body = graph_of(
        [
            node("Softmax", ["x"], ["soft"], axis=1),
            node("Unsqueeze", ["soft"], ["wide"], axes=[0]),
            node("Squeeze", ["wide"], ["next"], axes=[0]),
            node("Identity", ["going"], ["still"]),
        ],
        [value("i", [], INT64), value("going", [], BOOL), value("x", [2, 3, 5])],
        [value("still", [], BOOL), value("next", [2, 3, 5])],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=body)],
        [value("x0", [2, 3, 5])],
        [value("y", [2, 3, 5])],
        {"count": np.int64(1)},
        opset=11,
    )
    x = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    equal(program(x), powers / powers.sum((1, 2), keepdims=True))


def test_weights_and_constants_are_captured() -> None:
    """A large weight is a parameter of the program, and the body has a constant of its own."""
    rng = np.random.default_rng(1)
    weight = (rng.standard_normal((20, 20)) / 5).astype(np.float32)
    body = graph_of(
        [
            node("MatMul", ["x", "weight"], ["product"]),
            node("Mul", ["product", "half"], ["next"]),
            node("Identity", ["going"], ["still"]),
        ],
        [value("i", [], INT64), value("going", [], BOOL), value("x", [3, 20])],
        [value("still", [], BOOL), value("next", [3, 20])],
        {"half": np.float32(0.5)},
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y"], body=body)],
        [value("x0", [3, 20])],
        [value("y", [3, 20])],
        {"count": np.int64(3), "weight": weight},
    )
    x = rng.standard_normal((3, 20)).astype(np.float32)
    expected = x @ np.linalg.matrix_power(weight.astype(np.float64) / 2, 3)
    np.testing.assert_allclose(program(x)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [3, "n"])
def test_computed_values_are_captured_by_several_loops(batch: int | str) -> None:
    """Loops and branches read what was computed just before them from weights and inputs, and each other's results.
    In models of dynamic shapes, IREE 3.13 may not wait for that, or take another tensor for it."""
    rng = np.random.default_rng(2)
    weights = {name: (rng.standard_normal((8, 8)) / 3).astype(np.float32) for name in "abcde"}

    def looped(captured: str, weight: str, state: str) -> GraphProto:
        nodes = [
            node("Transpose", [weight], [f"{state}_t"], perm=[1, 0]),
            node("MatMul", [f"{state}_x", f"{state}_t"], [f"{state}_m"]),
            node("Add", [f"{state}_m", captured], [f"{state}_a"]),
            node("Tanh", [f"{state}_a"], [f"{state}_next"]),
            node("Sub", [f"{state}_next", f"{state}_y"], [f"{state}_y_next"]),
            node("Identity", [f"{state}_y_next"], [f"{state}_slice"]),
            node("Identity", [f"{state}_g"], [f"{state}_still"]),
        ]
        inputs = [value(f"{state}_i", [], INT64), value(f"{state}_g", [], BOOL)]
        inputs += [value(f"{state}_x", None), value(f"{state}_y", None)]
        names = [f"{state}_next", f"{state}_y_next", f"{state}_slice"]
        return graph_of(
            nodes, inputs, [value(f"{state}_still", [], BOOL), *(value(name, None) for name in names)]
        )

    branches = {
        "then_branch": graph_of([node("MatMul", ["r", "d"], ["u"])], [], [value("u", None)]),
        "else_branch": graph_of([node("MatMul", ["p", "e"], ["v"])], [], [value("v", None)]),
    }
    nodes = [
        node("MatMul", ["x", "a"], ["p"]),
        node("Loop", ["count", "", "x", "x"], ["l1", "m1", "s1"], body=looped("p", "b", "first")),
        node("MatMul", ["p", "c"], ["q"]),
        node("Loop", ["count", "", "x", "q"], ["l2", "m2", "s2"], body=looped("q", "d", "second")),
        node("MatMul", ["m1", "e"], ["r"]),
        node("If", ["k"], ["z"], **branches),
        node("Add", ["z", "m2"], ["y"]),
    ]
    program = compiled(
        nodes,
        [value("k", [], BOOL), value("x", [batch, 8])],
        [value("y", [batch, 8]), value("s1", [4, batch, 8]), value("s2", [4, batch, 8])],
        {"count": np.int64(4), **weights},
    )
    x = rng.standard_normal((3, 8)).astype(np.float32)
    wide = {name: weight.astype(np.float64) for name, weight in weights.items()}

    def run(captured: Array, weight: Array, first: Array, second: Array) -> tuple[Array, Array]:
        slices = []
        for _ in range(4):
            first = np.tanh(first @ weight.T + captured)
            second = first - second
            slices.append(second)
        return second, np.stack(slices)

    p = x @ wide["a"]
    m1, s1 = run(p, wide["b"], x, x)
    q = p @ wide["c"]
    m2, s2 = run(q, wide["d"], x, q)
    for truth in (True, False):
        z = m1 @ wide["e"] @ wide["d"] if truth else p @ wide["e"]
        for ours, exact in zip(program(np.bool_(truth), x), (z + m2, s1, s2), strict=True):
            np.testing.assert_allclose(ours, exact, rtol=1e-4, atol=1e-5)


# The carried values of a loop have every type that ONNX allows there.
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8, np.bool_])
def test_states_of_other_types(dtype: Any) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    op = "Xor" if dtype is np.bool_ else "Add"
    body = graph_of(
        [
            node(op, ["x", "step"], ["next"]),
            node("Identity", ["next"], ["s"]),
            node("Identity", ["g"], ["still"]),
        ],
        [value("i", [], INT64), value("g", [], BOOL), value("x", [3], kind)],
        [value("still", [], BOOL), value("next", [3], kind), value("s", [3], kind)],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["y", "all"], body=body)],
        [value("x0", [3], kind), value("step", [3], kind)],
        [value("y", [3], kind), value("all", [3, 3], kind)],
        {"count": np.int64(3)},
    )
    x, step = np.array([1, 0, 250]).astype(dtype), np.array([1, 1, 3]).astype(dtype)
    slices = [x ^ step, x, x ^ step] if dtype is np.bool_ else [x + step, x + 2 * step, x + 3 * step]
    slices = [np.asarray(s, dtype) for s in slices]
    equal(program(x, step), slices[-1], np.stack(slices))


# An op that cannot be compiled is refused by its name, and not by an error of IREE.
def test_a_sequence_as_state_is_refused() -> None:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [3]))
    body = graph_of(
        [node("SequenceInsert", ["s", "x"], ["longer"]), node("Identity", ["g"], ["still"])],
        [value("i", [], INT64), value("g", [], BOOL), helper.make_value_info("s", kind)],
        [value("still", [], BOOL), helper.make_value_info("longer", kind)],
    )
    nodes = [
        node("SequenceConstruct", ["x"], ["s0"]),
        node("Loop", ["count", "", "s0"], ["s1"], body=body),
        node("ConcatFromSequence", ["s1"], ["y"], axis=0),
    ]
    with pytest.raises(tilewright.ModelError, match=r"'s1'.*no tensor"):
        compiled(nodes, [value("x", [3])], [value("y", [None])], {"count": np.int64(2)})
