"""Recommendation models: many small operators, whose time is mostly that of launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.workloads.builder import GraphBuilder

_Gate = tuple[str, str, str]
"""Weights of the input and of the state, and the bias."""


@dataclass(frozen=True, kw_only=True)
class MmoeOptions:
    """Sizes of a multi-gate mixture of experts; the defaults are those of its paper's synthetic data."""

    features: int = 100
    experts: int = 8
    expert_size: int = 16
    tower_size: int = 8
    tasks: int = 2
    batch: int = 1
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class DienOptions:
    """Sizes of the interest evolution part of DIEN."""

    hidden: int = 36
    steps: int = 16
    batch: int = 256
    is_loop: bool = False
    """True if the recurrence is a Scan, and not a node for every op of every step."""
    seed: int = 0


def mmoe(options: MmoeOptions = MmoeOptions()) -> onnx.ModelProto:
    """Builds experts that all tasks share, a softmax gate over them, and a tower for every task."""
    o = options
    g = GraphBuilder("mmoe", seed=o.seed)
    x = g.input("features", (o.batch, o.features))
    weights = g.weight((o.experts, o.features, o.expert_size), fan_in=o.features)
    bias = g.weight((o.experts, 1, o.expert_size), fan_in=100)
    products = g.op("MatMul", g.op("Unsqueeze", x, g.ints([0])), weights)
    experts = g.op("Relu", g.op("Add", products, bias))
    for _ in range(o.tasks):
        gate = g.op(
            "Softmax", g.op("MatMul", x, g.weight((o.features, o.experts), fan_in=o.features)), axis=-1
        )
        shares = g.op("Unsqueeze", g.op("Transpose", gate, perm=[1, 0]), g.ints([2]))
        mixed = g.op("ReduceSum", g.op("Mul", experts, shares), g.ints([0]), keepdims=0)
        tower = g.op("Relu", _dense(g, mixed, o.expert_size, o.tower_size))
        g.output(g.op("Sigmoid", _dense(g, tower, o.tower_size, 1)), (o.batch, 1))
    return g.build()


def dien(options: DienOptions = DienOptions()) -> onnx.ModelProto:
    """Builds attention of the target to each interest, then a GRU whose update gate it scales."""
    o = options
    g = GraphBuilder("dien", seed=o.seed)
    interests = g.input("interests", (o.batch, o.steps, o.hidden))
    target = g.input("target", (o.batch, o.hidden))
    attention = _attention(g, interests, target, o)
    gates = [_gate_weights(g, o.hidden) for _ in range(3)]
    zero = g.constant(np.zeros((o.batch, o.hidden), dtype=np.float32), "state")
    evolve = _evolve_in_loop if o.is_loop else _evolve_unrolled
    state = evolve(g, interests, attention, zero, gates, o)
    joined = g.op("Concat", state, target, axis=1)
    hidden = g.op("Relu", _dense(g, joined, 2 * o.hidden, o.hidden))
    g.output(g.op("Sigmoid", _dense(g, hidden, o.hidden, 1)), (o.batch, 1))
    return g.build()


def _evolve_unrolled(
    g: GraphBuilder, interests: str, attention: str, state: str, gates: Sequence[_Gate], o: DienOptions
) -> str:
    for step in range(o.steps):
        index = g.constant(np.array(step))
        x = g.op("Gather", interests, index, axis=1)
        state = _cell(g, x, g.op("Gather", attention, index, axis=1), state, gates)
    return state


def _evolve_in_loop(
    g: GraphBuilder, interests: str, attention: str, state: str, gates: Sequence[_Gate], o: DienOptions
) -> str:
    body = g.body("cell")
    last = body.input("last_state", (o.batch, o.hidden))
    x, share = body.input("interest", (o.batch, o.hidden)), body.input("share", (o.batch,))
    body.output(_cell(body, x, share, last, gates), (o.batch, o.hidden))
    return g.op(
        "Scan",
        state,
        g.op("Transpose", interests, perm=[1, 0, 2]),
        g.op("Transpose", attention, perm=[1, 0]),
        body=body.graph(),
        num_scan_inputs=2,
    )


def _cell(g: GraphBuilder, x: str, share: str, state: str, gates: Sequence[_Gate]) -> str:
    """Adds a step of a GRU whose update gate is scaled by the share of the step."""
    update, reset, candidate = gates
    u = g.op("Mul", g.op("Sigmoid", _gate(g, x, state, update)), g.op("Unsqueeze", share, g.ints([1])))
    r = g.op("Sigmoid", _gate(g, x, state, reset))
    c = g.op("Tanh", _gate(g, x, g.op("Mul", r, state), candidate))
    kept = g.op("Mul", g.op("Sub", g.scalar(1.0), u), state)
    return g.op("Add", kept, g.op("Mul", u, c))


def _dense(g: GraphBuilder, x: str, fan_in: int, fan_out: int) -> str:
    return g.op("Gemm", x, g.weight((fan_in, fan_out), fan_in=fan_in), g.vector(fan_out))


def _attention(g: GraphBuilder, interests: str, target: str, o: DienOptions) -> str:
    """Adds a softmax over the steps of interest · W · target."""
    projected = g.op("MatMul", interests, g.weight((o.hidden, o.hidden), fan_in=o.hidden))
    products = g.op("Mul", projected, g.op("Unsqueeze", target, g.ints([1])))
    return g.op("Softmax", g.op("ReduceMean", products, axes=[2], keepdims=0), axis=-1)


def _gate_weights(g: GraphBuilder, hidden: int) -> _Gate:
    square = (hidden, hidden)
    return g.weight(square, fan_in=hidden), g.weight(square, fan_in=hidden), g.vector(hidden)


def _gate(g: GraphBuilder, x: str, state: str, weights: _Gate) -> str:
    of_input, of_state, bias = weights
    return g.op("Add", g.op("MatMul", x, of_input), g.op("Gemm", state, of_state, bias))
