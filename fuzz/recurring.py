"""Steps of random graphs with recurrent ops and control flow. `elementwise` says what a step is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from fuzz.builder import ELEMENT_TYPES, FLOATS, NUMPY_TYPES
from fuzz.pool import BOUNDS, MAX_ELEMENTS, MAX_RANK, Pool, Value, result

RECURRENT = ("RNN", "GRU", "LSTM")
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}
_BOUNDED = ("Tanh", "Sigmoid", "HardSigmoid", "Softsign")


def recurrent(pool: Pool, x: Value, op: str) -> Value | None:
    """Applies a recurrent op to [sequence, batch, features], in any direction and layout, with lengths and states."""
    if len(x.shape) != 3 or x.dtype not in FLOATS or min(x.shape) < 1 or x.bound > 8.0:
        return None
    batch_first = op != "RNN" and pool.chance(0.2)
    steps, batch = x.shape[1::-1] if batch_first else x.shape[:2]
    if steps > 9:
        return None
    hidden, direction = pool.pick((1, 2, 3, 5)), pool.pick(("forward", "reverse", "bidirectional"))
    count = 2 if direction == "bidirectional" else 1
    rows, features = _GATES[op] * hidden, x.shape[2]

    def weights(*shape: int) -> str:
        return pool.constant(shape, x.dtype, low=-0.5, high=0.5).name

    operands = [x.name, weights(count, rows, features), weights(count, rows, hidden)]
    operands.append(weights(count, 2 * rows) if pool.chance(0.7) else "")
    lengths = pool.rng.integers(1, steps + 1, batch).astype(np.int32)
    operands.append(pool.m.constant(lengths) if pool.chance(0.5) else "")
    state = (batch, count, hidden) if batch_first else (count, batch, hidden)
    operands.append(weights(*state) if pool.chance(0.5) else "")
    if op == "LSTM":
        operands += [weights(*state) if pool.chance(0.5) else "", ""]
        operands[-1] = weights(count, 3 * hidden) if pool.chance(0.4) else ""
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if batch_first:
        attributes["layout"] = 1
    if pool.chance(0.3):
        attributes["activations"] = [pool.pick(_BOUNDED) for _ in range(count * _ACTIVATIONS[op])]
    if pool.chance(0.2):
        attributes["clip"] = 1.0
    if op == "GRU":
        attributes["linear_before_reset"] = int(pool.chance(0.5))
    while not operands[-1]:
        operands.pop()
    results = pool.m.ops(op, 3 if op == "LSTM" else 2, *operands, **attributes)
    pool.use(x)
    at = pool.pick(range(len(results)))
    whole = (batch, steps, count, hidden) if batch_first else (steps, count, batch, hidden)
    return result(results[at], state if at else whole, x.dtype, 4.0 * steps, exact=False)


class _Body:
    """Nodes of an inner graph, whose names are unlike those of all others."""

    def __init__(self, pool: Pool) -> None:
        self.prefix = f"b{len(pool.m.nodes)}_"
        self.nodes: list[NodeProto] = []
        self._dtype = ""

    def op(self, op: str, *operands: str, **attributes: Any) -> str:
        name = f"{self.prefix}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(operands), [name], **attributes))
        return name

    def number(self, value: float, dtype: str) -> str:
        return self.op("Constant", value=numpy_helper.from_array(np.array(value, NUMPY_TYPES[dtype])))

    def blend(self, pool: Pool, x: Value, state: str) -> str:
        """Returns a value within the bound of `x`, from the state and another value within it."""
        if x.dtype in FLOATS:
            half = self.op("Mul", state, self.number(0.5, x.dtype))
            other = self.op("Mul", x.name, self.number(0.5, x.dtype))
            return self.op(pool.pick(("Add", "Sub")), half, other)
        return self.op(pool.pick(("Max", "Min")), self.op("Neg", state), x.name)

    def graph(
        self, inputs: list[onnx.ValueInfoProto], outputs: list[tuple[str, str, tuple[int, ...]]]
    ) -> GraphProto:
        values = [helper.make_tensor_value_info(name, ELEMENT_TYPES[t], s) for name, t, s in outputs]
        return helper.make_graph(self.nodes, f"{self.prefix}body", inputs, values)


def branch(pool: Pool, x: Value, op: str) -> Value | None:
    """Takes one of two branches, by a condition that is an input."""
    if x.dtype == "bool":
        return None
    bodies = []
    for tag in "te":
        body = _Body(pool)
        body.prefix += tag
        kind = pool.pick(("Neg", "Abs", "Relu", "Max"))
        more = [body.number(1, x.dtype)] if kind == "Max" else []
        y = body.op(kind, x.name, *more)
        bodies.append(body.graph([], [(y, x.dtype, x.shape)]))
    pool.use(x)
    condition = pool.m.input((), "bool")
    name = pool.m.op(op, condition, then_branch=bodies[0], else_branch=bodies[1])
    return result(name, x.shape, x.dtype, max(1.0, x.bound), exact=x.exact)


def loop(pool: Pool, x: Value, op: str) -> Value | None:
    """Repeats a body that captures a value; it may end early, and may stack what it computes."""
    if x.dtype not in ("f32", "i32", "i64") or len(x.shape) == MAX_RANK:
        return None
    trips, stop = pool.pick((0, 1, 3, 4)), pool.pick((None, None, 1, 2))
    stacks = stop is None and trips > 0 and pool.chance(0.5) and math.prod(x.shape) * trips <= MAX_ELEMENTS
    body = _Body(pool)
    counter, going, state = (f"{body.prefix}{name}" for name in ("i", "go", "s"))
    limit = body.number(99 if stop is None else stop, "i64")
    on = body.op("Less", counter, limit)
    y = body.blend(pool, x, state)
    outputs = [(on, "bool", ()), (y, x.dtype, x.shape)]
    if stacks:
        outputs.append((body.op("Neg", y), x.dtype, x.shape))
    inputs = [
        helper.make_tensor_value_info(counter, TensorProto.INT64, []),
        helper.make_tensor_value_info(going, TensorProto.BOOL, []),
        helper.make_tensor_value_info(state, ELEMENT_TYPES[x.dtype], x.shape),
    ]
    start = pool.constant(x.shape, x.dtype)
    first = pool.m.constant(np.array(pool.chance(0.9)))
    results = pool.m.ops(
        op,
        1 + stacks,
        pool.m.scalar(trips, "i64"),
        first,
        start.name,
        body=body.graph(inputs, outputs),
    )
    pool.use(x)
    shape = (trips, *x.shape) if stacks else x.shape
    if stacks and pool.m.constants[-1] is not None:
        _set(pool, first)
    return result(results[-1], shape, x.dtype, max(3.0, x.bound), exact=x.exact and x.dtype not in FLOATS)


def _set(pool: Pool, name: str) -> None:
    """Makes a condition true, where the number of stacked values must be known."""
    tensor = next(tensor for tensor in pool.m.constants if tensor.name == name)
    tensor.CopyFrom(numpy_helper.from_array(np.array(True), name))


def scan(pool: Pool, x: Value, op: str) -> Value | None:
    """Scans an axis in either direction, with a state; returns the last state or the stacked outputs."""
    if x.dtype not in ("f32", "i32", "i64") or len(x.shape) < 2 or min(x.shape) < 1:
        return None
    axis = int(pool.rng.integers(len(x.shape)))
    if x.shape[axis] > 9:
        return None
    element = (*x.shape[:axis], *x.shape[axis + 1 :])
    body = _Body(pool)
    state, item = f"{body.prefix}s", f"{body.prefix}e"
    inner = Value(item, element, x.dtype, x.bound, x.exact)
    y = body.blend(pool, inner, state)
    outputs = [(y, x.dtype, element), (body.op("Neg", y), x.dtype, element)]
    inputs = [helper.make_tensor_value_info(name, ELEMENT_TYPES[x.dtype], element) for name in (state, item)]
    start = pool.constant(element, x.dtype)
    backwards = [int(pool.chance(0.5)) for _ in range(2)]
    results = pool.m.ops(
        op,
        2,
        start.name,
        x.name,
        body=body.graph(inputs, outputs),
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=backwards[:1],
        scan_output_directions=backwards[1:],
    )
    pool.use(x)
    at = pool.pick((0, 1))
    shape = (x.shape[axis], *element) if at else element
    bound = max(3.0, x.bound)
    assert bound <= BOUNDS[x.dtype]
    return result(results[at], shape, x.dtype, bound, exact=x.exact and x.dtype not in FLOATS)
