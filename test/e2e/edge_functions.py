"""Elementwise functions of ONNX in float64, for the table in docs/reference/numerics-edges.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LEAK, _SLOPE, _SIXTH = (float(np.float32(value)) for value in (0.01, 0.2, 1 / 6))
_ALPHA, _GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
"""The constants of ONNX's LeakyRelu, HardSigmoid, HardSwish and Selu."""

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(x, 0))


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Relu": lambda x: np.maximum(x, 0),
    "LeakyRelu": lambda x: np.where(x < 0, _LEAK * x, x),
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0),
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "Celu": lambda x: np.where(x < 0, np.expm1(x), x),
    "Selu": lambda x: np.where(x < 0, _ALPHA * _GAMMA * np.expm1(x), _GAMMA * x),
    "Mish": lambda x: x * np.tanh(_softplus(x)),
    "Gelu": lambda x: x * (0.5 * (1 + _erf(x / math.sqrt(2)))),
    "Softplus": _softplus,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "HardSigmoid": lambda x: np.clip(_SLOPE * x + 0.5, 0, 1),
    "HardSwish": lambda x: x * np.clip(_SIXTH * x + 0.5, 0, 1),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Erf": _erf,
    "Exp": np.exp,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Reciprocal": lambda x: 1 / x,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.round,
    "Sign": np.sign,
}
