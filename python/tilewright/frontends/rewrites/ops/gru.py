"""GRU (opsets 7 to 22), all attributes, `linear_before_reset` among them:

z = f(X Wz + H Rz + Wbz + Rbz)
r = f(X Wr + H Rr + Wbr + Rbr)
h = g(X Wh + (r * H) Rh + Rbh + Wbh), or with linear_before_reset g(X Wh + r * (H Rh + Rbh) + Wbh)
H' = (1 - z) * h + z * H
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontends.rewrites.recurrence import Body, Cell, Direction, Step, spell_out
from tilewright.frontends.rewrites.rule import Operation, Rule


def _prepare(operation: Operation, direction: Direction) -> tuple[str, Step]:
    hidden = direction.hidden
    gates = 2 * hidden
    is_linear = bool(operation.attribute("linear_before_reset", 0))
    of_gates = operation.slice(direction.recurrent, 1, 0, gates)
    of_state = operation.slice(direction.recurrent, 1, gates, 3 * hidden)
    inputs, state_bias = direction.inputs, None
    if direction.input_bias and direction.recurrent_bias:
        inputs = operation.make("Add", inputs, direction.input_bias)
        if not is_linear:
            inputs = operation.make("Add", inputs, direction.recurrent_bias)
        else:
            state_bias = direction.recurrent_bias

    def step(body: Body, given: str, states: Sequence[str]) -> list[str]:
        (state,) = states
        given_gates, given_state = body.split(given, [gates, hidden])
        if is_linear:
            product = body.make("MatMul", state, direction.recurrent)
            if state_bias:
                product = body.make("Add", product, state_bias)
            for_gates, for_state = body.split(product, [gates, hidden])
        else:
            for_gates = body.make("MatMul", state, of_gates)
        both = direction.activate(body, 0, body.make("Add", given_gates, for_gates))
        update, reset = body.split(both, [hidden, hidden])
        if is_linear:
            kept = body.make("Mul", reset, for_state)
        else:
            kept = body.make("MatMul", body.make("Mul", reset, state), of_state)
        new = direction.activate(body, 1, body.make("Add", given_state, kept))
        fresh = body.make("Mul", body.make("Sub", body.number(1), update), new)
        return [body.make("Add", fresh, body.make("Mul", update, state))]

    return inputs, step


_CELL = Cell(gates=3, states=1, activations=["Sigmoid", "Tanh"], prepare=_prepare)

RULES = [
    Rule(
        op="GRU",
        rewrite=lambda operation: spell_out(operation, _CELL),
        why="IREE's importer ignores sequence_lens and layout, and refuses other forms",
    )
]
