"""RNN, GRU and LSTM for onnx's ReferenceEvaluator, in the type of their inputs.

onnx's own ignore sequence lengths, clips and activations, and ONNX Runtime has no float64 kernels of most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Array = np.ndarray[Any, Any]
_Activate = Callable[..., Array]
"""A function of the number of an activation and its argument, which it clips unless `clip` is None."""
_Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]
"""Maps a projection of an input and the state to the next state, whose first array is the output."""


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


ACTIVATIONS: dict[str, tuple[Callable[..., Array], tuple[float, ...]]] = {
    "relu": (lambda x: np.maximum(x, 0.0), ()),
    "tanh": (np.tanh, ()),
    "sigmoid": (_sigmoid, ()),
    "softsign": (lambda x: x / (1.0 + np.abs(x)), ()),
    "softplus": (lambda x: np.logaddexp(x, 0.0), ()),
    "affine": (lambda x, a, b: a * x + b, (1.0, 0.0)),
    "leakyrelu": (lambda x, a: np.where(x >= 0, x, a * x), (0.01,)),
    "thresholdedrelu": (lambda x, a: np.where(x >= a, x, 0.0), (1.0,)),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), (1.0, 1.0)),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0.0, 1.0), (0.2, 0.5)),
    "elu": (lambda x, a: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0.0))), (1.0,)),
}
"""Each activation by its name in lower case, with the defaults of those of alpha and beta that it takes."""


class _Recurrent(OpRun):
    """What the three ops have in common: directions, sequence lengths, layout, clips and activations."""

    op_domain = ""
    defaults: Sequence[str] = ()
    """Activations of one direction, if the model gives none."""

    def compute(
        self,
        x: Array,
        lengths: Array | None,
        states: Sequence[Array | None],
        step_of: Callable[[int, _Activate], _Step],
    ) -> tuple[Array, ...]:
        """Returns Y and the last states; `step_of` returns the step of a direction, given its activations."""
        batch_first = bool(self.layout)  # type: ignore[attr-defined]
        if batch_first:
            x = x.swapaxes(0, 1)
            states = [None if state is None else state.swapaxes(0, 1) for state in states]
        steps, batch = x.shape[:2]
        lengths = np.full(batch, steps) if lengths is None else lengths
        direction = self.direction or "forward"  # type: ignore[attr-defined]
        count = 2 if direction == "bidirectional" else 1
        hidden = int(self.hidden_size)  # type: ignore[attr-defined]
        given = [np.zeros((count, batch, hidden), x.dtype) if s is None else s for s in states]
        y = np.zeros((steps, count, batch, hidden), x.dtype)
        last = [state.copy() for state in given]
        for at in range(count):
            step = step_of(at, self._activation(at))
            backward = direction == "reverse" or at == 1
            for b in range(batch):
                state = tuple(each[at, b : b + 1] for each in given)
                for t in _times(int(lengths[b]), backward=backward):
                    state = step(x[t, b : b + 1], state)
                    y[t, at, b] = state[0][0]
                for each, value in zip(last, state, strict=True):
                    # ONNX does not define the last state of an empty sequence; ONNX Runtime returns zero.
                    each[at, b] = value[0] if lengths[b] else 0.0
        if batch_first:
            return y.transpose(2, 0, 1, 3), *(each.swapaxes(0, 1) for each in last)
        return y, *last

    def _activation(self, direction: int) -> _Activate:
        """Returns a function of the number of an activation and its argument."""
        names = [str(name) for name in self.activations or ()]  # type: ignore[attr-defined]
        names = names or list(self.defaults) * 2
        alphas = iter(self.activation_alpha or ())  # type: ignore[attr-defined]
        betas = iter(self.activation_beta or ())  # type: ignore[attr-defined]
        functions = []
        for name in names:
            function, defaults = ACTIVATIONS[name.lower()]
            given = [float(next(values, d)) for values, d in zip((alphas, betas), defaults, strict=False)]
            functions.append((function, given))
        own = functions[direction * len(self.defaults) :][: len(self.defaults)]
        threshold = self.clip or None  # type: ignore[attr-defined]

        def activate(number: int, x: Array, *, clip: float | None = threshold) -> Array:
            function, given = own[number]
            return function(np.clip(x, -clip, clip) if clip else x, *given)

        return activate


def _times(length: int, *, backward: bool) -> Iterator[int]:
    return reversed(range(length)) if backward else iter(range(length))


def _biases(bias: Array | None, weights: Array) -> Array:
    """Returns the biases of the input and of the recurrence, [2, directions, rows]."""
    count, rows = weights.shape[:2]
    if bias is None:
        return np.zeros((2, count, rows), weights.dtype)
    return bias.reshape(count, 2, rows).swapaxes(0, 1)


class RNN(_Recurrent):
    """The op RNN."""

    defaults = ("Tanh",)

    def _run(self, X, W, R, B=None, sequence_lens=None, initial_h=None, **_):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        biases = _biases(B, W)

        def step_of(at: int, activate: _Activate) -> _Step:
            bias = biases[0, at] + biases[1, at]
            return lambda x, state: (activate(0, x @ W[at].T + state[0] @ R[at].T + bias),)

        return self.compute(X, sequence_lens, [initial_h], step_of)


class GRU(_Recurrent):
    """The op GRU."""

    defaults = ("Sigmoid", "Tanh")

    def _run(self, X, W, R, B=None, sequence_lens=None, initial_h=None, **_):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        biases = _biases(B, W)
        linear = bool(self.linear_before_reset)  # type: ignore[attr-defined]

        def step_of(at: int, activate: _Activate) -> _Step:
            _, _, recurrent = np.split(R[at], 3)
            _, _, bias = np.split(biases[1, at], 3)

            def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
                (h,) = state
                xz, xr, xh = np.split(x @ W[at].T + biases[0, at], 3, axis=-1)
                hz, hr, hh = np.split(h @ R[at].T + biases[1, at], 3, axis=-1)
                z, r = activate(0, xz + hz), activate(0, xr + hr)
                n = activate(1, xh + (r * hh if linear else (r * h) @ recurrent.T + bias))
                return ((1.0 - z) * n + z * h,)

            return step

        return self.compute(X, sequence_lens, [initial_h], step_of)


class LSTM(_Recurrent):
    """The op LSTM."""

    defaults = ("Sigmoid", "Tanh", "Tanh")

    def _run(self, X, W, R, B=None, sequence_lens=None, initial_h=None, initial_c=None, P=None, **_):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        biases = _biases(B, W)
        peepholes = np.zeros((W.shape[0], 3 * R.shape[2]), X.dtype) if P is None else P
        coupled = bool(self.input_forget)  # type: ignore[attr-defined]

        def step_of(at: int, activate: _Activate) -> _Step:
            bias = biases[0, at] + biases[1, at]
            pi, po, pf = np.split(peepholes[at], 3)

            def step(x: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
                h, c = state
                i, o, f, g = np.split(x @ W[at].T + h @ R[at].T + bias, 4, axis=-1)
                entering = activate(0, i + pi * c)
                forget = 1.0 - entering if coupled else activate(0, f + pf * c)
                cell = forget * c + entering * activate(1, g)
                # The clip is for sums with weights, as in ONNX Runtime, and not for the cell.
                return activate(0, o + po * cell) * activate(2, cell, clip=None), cell

            return step

        return self.compute(X, sequence_lens, [initial_h, initial_c], step_of)
