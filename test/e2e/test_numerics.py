"""The promises of docs/guide/numerics.md for bf16 and f16: strict rounds op by op, default is as close to float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cpu_levels
import numpy as np
import pytest
import tilewright
from rounded_graphs import BINARY, DTYPES, SHAPE, Graph, softmax
from tilewright.errors import PlanError

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


Array = np.ndarray[Any, np.dtype[Any]]


def chain(kind: str, seed: int) -> Graph:
    """Builds random arithmetic in which every step reads the result of the last one."""
    random = np.random.default_rng(seed)
    graph = Graph(kind)
    known = [graph.input(), graph.input(), graph.constant(1.375)]
    last = graph.op("arith.addf", known[0], known[1])
    for _ in range(10):
        if random.random() < 0.7:
            other = str(random.choice(known))
            pair = (last, other) if random.random() < 0.5 else (other, last)
            op = str(random.choice(list(BINARY)))
            # Inputs and constants are away from 0, and serve as divisors.
            last = graph.op(op, *((last, other) if op == "arith.divf" else pair))
        else:
            op = str(random.choice(["arith.negf", "math.absf", "math.tanh", "sqrt", "exp"]))
            if op == "sqrt":
                last = graph.op("math.sqrt", graph.op("math.absf", last))
            elif op == "exp":
                last = graph.op("math.exp", graph.op("math.tanh", last))
            else:
                last = graph.op(op, last)
    return graph


def layer_norm(kind: str) -> Graph:
    graph = Graph(kind)
    x, scale = graph.input(), graph.input()
    count, epsilon = graph.constant(float(SHAPE[1])), graph.constant(0.0009765625)
    mean = graph.op("arith.divf", graph.reduce("arith.addf", x), count)
    centred = graph.op("arith.subf", x, mean)
    squares = graph.op("arith.mulf", centred, centred)
    variance = graph.op("arith.divf", graph.reduce("arith.addf", squares), count)
    deviation = graph.op("math.sqrt", graph.op("arith.addf", variance, epsilon))
    graph.op("arith.mulf", graph.op("arith.divf", centred, deviation), scale)
    return graph


_CHAINS = 6


_GRAPHS: dict[str, Callable[[str], Graph]] = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    **{f"chain-{seed}": lambda kind, seed=seed: chain(kind, seed) for seed in range(_CHAINS)},
}


@dataclass(frozen=True)
class Case:
    """A graph, compiled in both modes and evaluated."""

    graph: Graph
    inputs: list[Array]
    strict: tilewright.Program
    default: tilewright.Program


@cpu_levels.cached
def _case(name: str, kind: str) -> Case:
    graph = _GRAPHS[name](kind)
    random = np.random.default_rng(1)
    signs = random.choice([-1.0, 1.0], (len(graph.inputs), *SHAPE))
    inputs = [(sign * random.uniform(0.5, 2.0, SHAPE)).astype(DTYPES[kind]) for sign in signs]
    text = graph.text(graph.steps[-1][0])
    strict = tilewright.compile(text, threads=1, numerics="strict", strict=True)
    default = tilewright.compile(text, threads=1, strict=True)
    for program in (strict, default):
        assert len(program.kernels) == 1, "nothing is fused"
    return Case(graph, inputs, strict, default)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", _GRAPHS)
def test_strict_rounds_as_op_by_op(name: str, kind: str) -> None:
    case = _case(name, kind)
    (ours,) = case.strict(*case.inputs)
    expected = case.graph.evaluate(case.inputs, DTYPES[kind])
    np.testing.assert_array_equal(ours.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", _GRAPHS)
def test_default_is_as_close_to_float64(name: str, kind: str) -> None:
    """The tolerance is 5%, because the remaining rounding of a value near a midpoint may go either way."""
    case = _case(name, kind)
    exact = case.graph.evaluate([x.astype(np.float64) for x in case.inputs], np.dtype(np.float64))

    def error(program: tilewright.Program) -> float:
        (ours,) = program(*case.inputs)
        return float(np.sqrt(np.mean((ours.astype(np.float64) - exact) ** 2)))

    assert error(case.default) <= 1.05 * error(case.strict)


@pytest.mark.parametrize("kind", DTYPES)
def test_explain_declares_what_was_left_out(kind: str) -> None:
    case = _case("softmax", kind)
    default, strict = case.default.explain(), case.strict.explain()
    assert "default numerics" in default
    assert f"to {kind} left out between ops, where values stay in f32" in default
    assert f"accumulated in f32, rounded once to {kind}, reassociated over lanes" in default
    assert "by a reciprocal where lanes share the divisor" in default
    assert "strict numerics" in strict
    assert f"accumulated in {kind}" in strict
    assert "f32" not in strict
    assert "left out" not in strict
    assert "reciprocal" not in strict


def test_a_plan_is_carried_out_in_its_own_mode() -> None:
    case = _case("softmax", "bf16")
    text = case.graph.text(case.graph.steps[-1][0])
    with pytest.raises(PlanError, match="made with numerics 'strict', carried out with 'default'"):
        tilewright.compile(text, threads=1, plan=case.strict.plan)
    again = tilewright.compile(text, threads=1, plan=case.strict.plan, numerics="strict")
    assert again.plan == case.strict.plan
