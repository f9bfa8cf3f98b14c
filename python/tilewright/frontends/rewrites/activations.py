"""Activation functions of RNN, GRU and LSTM (opsets 7 to 22): attributes `activations`, `activation_alpha` and
`activation_beta`.

ONNX names eleven functions. The lists of alphas and betas hold a number for each function that has one, in the order of
the functions, as in ONNX Runtime. A function without a number has the default of the ONNX operator of this name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.frontends.rewrites.rule import Operation


class Maker(Protocol):
    """What makes nodes: of the graph, or of a body."""

    def make(self, op: str, *inputs: str, **attributes: float) -> str:
        """Makes an op and returns the name of its result."""

    def number(self, value: float) -> str:
        """Makes a constant of rank 0, of the type in which the recurrence is computed."""


@dataclass(frozen=True)
class Activation:
    """A function with its numbers."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0

    def apply(self, maker: Maker, x: str) -> str:
        return _FUNCTIONS[self.name](maker, x, self)


_ALPHAS: Mapping[str, float | None] = {
    "affine": None,
    "elu": 1.0,
    "hardsigmoid": 0.2,
    "leakyrelu": 0.01,
    "scaledtanh": None,
    "thresholdedrelu": 1.0,
}
"""Functions with an alpha, and its default; ONNX has no default for some."""
_BETAS: Mapping[str, float | None] = {"affine": None, "hardsigmoid": 0.5, "scaledtanh": None}


def activations_of(operation: Operation, defaults: Sequence[str], directions: int) -> list[Activation]:
    """Returns the functions of all directions, those of one direction after those of the other. Raises `ModelError`
    for unknown functions, and for a list of the wrong length."""
    given = [name.decode().lower() for name in operation.attribute("activations", [])]
    names = given or [name.lower() for name in defaults] * directions
    if len(names) != len(defaults) * directions:
        operation.refuse(f"has {len(names)} activations instead of {len(defaults) * directions}")
    alphas = list(operation.attribute("activation_alpha", []))
    betas = list(operation.attribute("activation_beta", []))
    functions = []
    for name in names:
        if name not in _FUNCTIONS:
            operation.refuse(f"the activation '{name}' is not one of ONNX's: {', '.join(_FUNCTIONS)}")
        numbers = []
        for kind, defaults_of, left in (("alpha", _ALPHAS, alphas), ("beta", _BETAS, betas)):
            number = defaults_of.get(name, 0.0)
            if name in defaults_of and left:
                number = left.pop(0)
            if number is None:
                operation.refuse(
                    f"the activation '{name}' has no activation_{kind}, for which there is no default"
                )
            numbers.append(float(number))
        functions.append(Activation(name, *numbers))
    return functions


def _elu(maker: Maker, x: str, f: Activation) -> str:
    """x above zero, alpha (e^x - 1) below. The exponential of the smaller of x and zero does not overflow."""
    zero = maker.number(0)
    below = maker.make("Sub", maker.make("Exp", maker.make("Min", x, zero)), maker.number(1))
    scaled = maker.make("Mul", below, maker.number(f.alpha))
    return maker.make("Where", maker.make("Less", x, zero), scaled, x)


def _line(maker: Maker, x: str, f: Activation) -> str:
    return maker.make("Add", maker.make("Mul", x, maker.number(f.alpha)), maker.number(f.beta))


def _hard_sigmoid(maker: Maker, x: str, f: Activation) -> str:
    return maker.make("Clip", _line(maker, x, f), maker.number(0), maker.number(1))


def _leaky_relu(maker: Maker, x: str, f: Activation) -> str:
    scaled = maker.make("Mul", x, maker.number(f.alpha))
    return maker.make("Where", maker.make("Less", x, maker.number(0)), scaled, x)


def _thresholded_relu(maker: Maker, x: str, f: Activation) -> str:
    return maker.make("Where", maker.make("Less", x, maker.number(f.alpha)), maker.number(0), x)


def _scaled_tanh(maker: Maker, x: str, f: Activation) -> str:
    tanh = maker.make("Tanh", maker.make("Mul", x, maker.number(f.beta)))
    return maker.make("Mul", tanh, maker.number(f.alpha))


def _softplus(maker: Maker, x: str, f: Activation) -> str:
    """log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which does not overflow."""
    power = maker.make("Exp", maker.make("Neg", maker.make("Abs", x)))
    logarithm = maker.make("Log", maker.make("Add", power, maker.number(1)))
    return maker.make("Add", maker.make("Max", x, maker.number(0)), logarithm)


def _softsign(maker: Maker, x: str, f: Activation) -> str:
    return maker.make("Div", x, maker.make("Add", maker.make("Abs", x), maker.number(1)))


_FUNCTIONS: Mapping[str, Callable[[Maker, str, Activation], str]] = {
    "affine": _line,
    "elu": _elu,
    "hardsigmoid": _hard_sigmoid,
    "leakyrelu": _leaky_relu,
    "relu": lambda maker, x, f: maker.make("Relu", x),
    "scaledtanh": _scaled_tanh,
    "sigmoid": lambda maker, x, f: maker.make("Sigmoid", x),
    "softplus": _softplus,
    "softsign": _softsign,
    "tanh": lambda maker, x, f: maker.make("Tanh", x),
    "thresholdedrelu": _thresholded_relu,
}
