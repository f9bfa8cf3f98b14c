"""RNN (opsets 7 to 22), all attributes: H' = f(X W + H R + Wb + Rb)."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontends.rewrites.recurrence import Body, Cell, Direction, Step, spell_out
from tilewright.frontends.rewrites.rule import Operation, Rule


def _prepare(operation: Operation, direction: Direction) -> tuple[str, Step]:
    inputs = direction.inputs
    for bias in filter(None, (direction.input_bias, direction.recurrent_bias)):
        inputs = operation.make("Add", inputs, bias)

    def step(body: Body, given: str, states: Sequence[str]) -> list[str]:
        total = body.make("Add", given, body.make("MatMul", states[0], direction.recurrent))
        return [direction.activate(body, 0, total)]

    return inputs, step


_CELL = Cell(gates=1, states=1, activations=["Tanh"], prepare=_prepare)

RULES = [
    Rule(
        op="RNN",
        rewrite=lambda operation: spell_out(operation, _CELL),
        why="IREE's importer ignores sequence_lens, layout, clip and most activations",
    )
]
