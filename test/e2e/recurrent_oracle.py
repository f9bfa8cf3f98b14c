"""RNN, GRU and LSTM in float64, as ONNX defines them: one sequence after the other, cut to its length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

ACTIVATIONS: Mapping[str, Callable[[Array, float, float], Array]] = {
    "Affine": lambda x, a, b: a * x + b,
    "Elu": lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "LeakyRelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "Sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x, a, b: np.logaddexp(x, 0),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Tanh": lambda x, a, b: np.tanh(x),
    "ThresholdedRelu": lambda x, a, b: np.where(x >= a, x, 0),
}
HAS_ALPHA = ("Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh", "ThresholdedRelu")
HAS_BETA = ("Affine", "HardSigmoid", "ScaledTanh")


@dataclass(frozen=True)
class Form:
    """A recurrence without its numbers. Activations are those of all directions, as ONNX lists them."""

    op: str
    direction: str = "forward"
    layout: int = 0
    activations: tuple[str, ...] = ()
    alphas: tuple[float, ...] = ()
    betas: tuple[float, ...] = ()
    clip: float | None = None
    linear_before_reset: int = 0
    input_forget: int = 0

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def attributes(self, hidden: int) -> dict[str, Any]:
        """Returns the node's attributes; those with default values are left out."""
        given = {
            "direction": self.direction if self.direction != "forward" else None,
            "layout": self.layout or None,
            "activations": list(self.activations) or None,
            "activation_alpha": list(self.alphas) or None,
            "activation_beta": list(self.betas) or None,
            "clip": self.clip,
            "linear_before_reset": self.linear_before_reset or None,
            "input_forget": self.input_forget or None,
        }
        return {"hidden_size": hidden} | {name: value for name, value in given.items() if value is not None}

    def functions(self) -> list[Callable[[Array], Array]]:
        names = self.activations or FUNCTIONS[self.op] * self.directions
        alphas, betas = list(self.alphas), list(self.betas)
        functions = []
        for name in names:
            alpha = alphas.pop(0) if name in HAS_ALPHA else 0.0
            beta = betas.pop(0) if name in HAS_BETA else 0.0
            functions.append(lambda x, f=ACTIVATIONS[name], a=alpha, b=beta: f(x, a, b))
        return functions


def run(form: Form, given: Mapping[str, Array]) -> list[Array]:
    """Returns Y, Y_h and, of an LSTM, Y_c. `given` has X, W and R, and may have B, sequence_lens, initial_h, initial_c
    and P."""
    values = {name: value.astype(np.float64) for name, value in given.items()}
    batch_first = form.layout == 1

    def steps_first(value: Array) -> Array:
        return value.swapaxes(0, 1) if batch_first else value

    x = steps_first(values["X"])
    steps, batch, _ = x.shape
    hidden = values["R"].shape[2]
    states = 2 if form.op == "LSTM" else 1
    lengths = given.get("sequence_lens", np.full(batch, steps))
    outputs = np.zeros((steps, form.directions, batch, hidden))
    last = np.zeros((states, form.directions, batch, hidden))
    functions = form.functions()
    for number in range(form.directions):
        is_back = form.direction == "reverse" or number == 1
        cell = _Cell(form, values, number, functions[number * len(FUNCTIONS[form.op]) :])
        for sequence in range(batch):
            length = int(lengths[sequence])
            state = []
            for name in ("initial_h", "initial_c")[:states]:
                initial = values.get(name)
                state.append(np.zeros(hidden) if initial is None else steps_first(initial)[number, sequence])
            order: Sequence[int] = range(length)
            for step in reversed(order) if is_back else order:
                state = cell.step(x[step, sequence], *state)
                outputs[step, number, sequence] = state[0]
            if length:
                last[:, number, sequence] = state
    if batch_first:
        return [outputs.transpose(2, 0, 1, 3), *(state.swapaxes(0, 1) for state in last)]
    return [outputs, *last]


class _Cell:
    def __init__(
        self,
        form: Form,
        values: Mapping[str, Array],
        number: int,
        functions: Sequence[Callable[[Array], Array]],
    ) -> None:
        gates, hidden = GATES[form.op], values["R"].shape[2]
        self._form = form
        self._w = values["W"][number].reshape(gates, hidden, -1)
        self._r = values["R"][number].reshape(gates, hidden, hidden)
        bias = values.get("B")
        self._b = np.zeros((2, gates, hidden)) if bias is None else bias[number].reshape(2, gates, hidden)
        peepholes = values.get("P")
        self._p = np.zeros((3, hidden)) if peepholes is None else peepholes[number].reshape(3, hidden)
        self._functions = functions

    def _act(self, number: int, value: Array) -> Array:
        clip = self._form.clip
        return self._functions[number](value if clip is None else np.clip(value, -clip, clip))

    def step(self, x: Array, *state: Array) -> list[Array]:
        return {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[self._form.op](x, *state)

    def _sum(self, gate: int, x: Array, h: Array) -> Array:
        return self._w[gate] @ x + self._r[gate] @ h + self._b[0, gate] + self._b[1, gate]

    def _rnn(self, x: Array, h: Array) -> list[Array]:
        return [self._act(0, self._sum(0, x, h))]

    def _gru(self, x: Array, h: Array) -> list[Array]:
        z, r = self._act(0, self._sum(0, x, h)), self._act(0, self._sum(1, x, h))
        if self._form.linear_before_reset:
            new = self._w[2] @ x + r * (self._r[2] @ h + self._b[1, 2]) + self._b[0, 2]
        else:
            new = self._sum(2, x, r * h)
        return [(1 - z) * self._act(1, new) + z * h]

    def _lstm(self, x: Array, h: Array, c: Array) -> list[Array]:
        opened = self._act(0, self._sum(0, x, h) + self._p[0] * c)
        kept = 1 - opened if self._form.input_forget else self._act(0, self._sum(2, x, h) + self._p[2] * c)
        memory = kept * c + opened * self._act(1, self._sum(3, x, h))
        shown = self._act(0, self._sum(1, x, h) + self._p[1] * memory)
        return [shown * self._functions[2](memory), memory]
