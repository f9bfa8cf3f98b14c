"""LSTM (opsets 7 to 22), all attributes, `input_forget` among them, and peepholes:

    i = f(X Wi + H Ri + Pi * C + Wbi + Rbi)
    f = f(X Wf + H Rf + Pf * C + Wbf + Rbf), or with input_forget 1 - i
    c = g(X Wc + H Rc + Wbc + Rbc)
    C' = f * C + i * c
    o = f(X Wo + H Ro + Po * C' + Wbo + Rbo)
    H' = o * h(C')

`clip` bounds the arguments of f and g. It does not bound C', the argument of h, as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.frontends.rewrites.recurrence import Body, Cell, Direction, Step, spell_out
from tilewright.frontends.rewrites.rule import Operation, Rule


def _prepare(operation: Operation, direction: Direction) -> tuple[str, Step]:
    hidden = direction.hidden
    is_coupled = bool(operation.attribute("input_forget", 0))
    inputs = direction.inputs
    for bias in filter(None, (direction.input_bias, direction.recurrent_bias)):
        inputs = operation.make("Add", inputs, bias)
    peepholes: list[str | None] = [None] * 3
    if direction.peepholes:
        peepholes = [operation.slice(direction.peepholes, 0, n * hidden, (n + 1) * hidden) for n in range(3)]
    peep_in, peep_out, peep_forget = peepholes

    def step(body: Body, given: str, states: Sequence[str]) -> list[str]:
        state, memory = states

        def seen(gate: str, peephole: str | None, seen_memory: str) -> str:
            return body.make("Add", gate, body.make("Mul", peephole, seen_memory)) if peephole else gate

        total = body.make("Add", given, body.make("MatMul", state, direction.recurrent))
        gate_in, gate_out, gate_forget, candidate = body.split(total, [hidden] * 4)
        opened = direction.activate(body, 0, seen(gate_in, peep_in, memory))
        if is_coupled:
            kept = body.make("Sub", body.number(1), opened)
        else:
            kept = direction.activate(body, 0, seen(gate_forget, peep_forget, memory))
        new = body.make("Mul", opened, direction.activate(body, 1, candidate))
        memory = body.make("Add", body.make("Mul", kept, memory), new)
        shown = direction.activate(body, 0, seen(gate_out, peep_out, memory))
        return [body.make("Mul", shown, direction.activations[2].apply(body, memory)), memory]

    return inputs, step


_CELL = Cell(gates=4, states=2, activations=["Sigmoid", "Tanh", "Tanh"], prepare=_prepare)

RULES = [
    Rule(
        op="LSTM",
        rewrite=lambda operation: spell_out(operation, _CELL),
        why="IREE's importer ignores sequence_lens, peepholes and other activations, and refuses layout and clip",
    )
]
