"""ATen's logarithm of the gamma function, and its derivative, by other ops: IREE's importer has no op for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

_aten = torch.ops.aten

_STIRLING_FROM = 8.5
"""Numbers from which eight terms of Stirling's series are exact to a unit of f64."""
# Bernoulli numbers B(2k) over 2k(2k-1).
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
_ORDERS = torch.arange(2, 28, dtype=torch.float64)
_ZETAS = torch.special.zeta(_ORDERS, torch.full_like(_ORDERS, 2.0)).tolist()
"""zeta(k) - 1 for the terms of the Taylor series at 2 that count in f64 up to half a unit from 2: the k-th is below
4^-k."""
_TAYLOR = tuple((-1) ** order * zeta / order for order, zeta in enumerate(_ZETAS, 2))

_SINE = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(12))
"""Terms of the Taylor series of the sine that count in f64 up to half a pi."""

_COSINE = tuple((-1) ** k / math.factorial(2 * k) for k in range(13))
"""The same for the cosine."""


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {_aten.lgamma.default: _log_gamma, _aten.digamma.default: _digamma}


def _log_gamma(x: Any) -> Any:
    """Computes in f64, because the function has zeros whose neighbours would lose their digits in f32."""
    result_type = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    x = x.to(torch.float64)
    magnitude = _of_positive(torch.where(x < 0, 1 - x, x))
    angle = math.pi * (x - torch.round(x))
    sine = (angle * _polynomial(_SINE, angle * angle)).abs()  # IREE has none for f64
    reflected = math.log(math.pi) - torch.log(sine) - magnitude
    result = torch.where(x < 0, reflected, magnitude)
    return torch.where(x.isinf(), float("inf"), result).to(result_type)


def _digamma(x: Any) -> Any:
    """Moves numbers by whole steps to those of Stirling's series. The result is NaN at whole numbers below 0, which are
    poles, and infinite with the other sign at 0."""
    result_type = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    x = x.to(torch.float64)
    y = torch.where(x < 0, 1 - x, x)
    steps: Any = torch.zeros_like(y)
    rest = y
    for _ in range(math.ceil(_STIRLING_FROM)):
        is_low = rest < _STIRLING_FROM
        steps = torch.where(is_low, steps + 1 / rest, steps)
        rest = torch.where(is_low, rest + 1, rest)
    square = 1 / (rest * rest)
    terms = [-(2 * k + 1) * term for k, term in enumerate(_STIRLING)]
    positive = torch.log(rest) - 0.5 / rest + square * _polynomial(terms, square) - steps
    angle = math.pi * (x - torch.round(x))
    cotangent = _polynomial(_COSINE, angle * angle) / (angle * _polynomial(_SINE, angle * angle))
    result = torch.where(x < 0, positive - math.pi * cotangent, positive)
    result = torch.where((x < 0) & (x == torch.round(x)), math.nan, torch.where(x == 0, -1 / x, result))
    return torch.where(x == math.inf, x, result).to(result_type)


def _of_positive(y: Any) -> Any:
    """Moves numbers below `_STIRLING_FROM` to 1.5 to 2.5 by the logarithm of the product of the factors between."""
    factor, rest = torch.ones_like(y), y
    for step in range(1, math.ceil(_STIRLING_FROM - 2.5) + 1):
        lower = y - step
        is_above = lower >= 1.5
        factor, rest = torch.where(is_above, factor * lower, factor), torch.where(is_above, lower, rest)
    is_low, is_lowest = y < 1.5, y < 0.5
    factor = torch.where(is_lowest, y * (y + 1), torch.where(is_low, y, factor))
    factor = torch.where(y >= _STIRLING_FROM, y, factor)
    # The distance from 2, without rounding next to the zeros at 1 and 2.
    distance = torch.where(is_lowest, y, torch.where(is_low, y - 1, rest - 2))
    logarithm = torch.log(factor)
    near = _taylor(distance) + torch.where(is_low, -logarithm, logarithm)
    inverse = 1 / y
    series = inverse * _polynomial(_STIRLING, inverse * inverse)
    far = (y - 0.5) * (logarithm - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + series
    return torch.where(y >= _STIRLING_FROM, far, near)


def _taylor(distance: Any) -> Any:
    """Returns the logarithm of gamma(2 + distance)."""
    euler = 0.5772156649015329
    return distance * ((1 - euler) + distance * _polynomial(_TAYLOR, distance))


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    value = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value
