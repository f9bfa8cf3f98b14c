"""ATen's powers of integers, which IREE's importer lacks, and of f64, where IREE is wrong for negative bases.

Integers wrap around as products do. The rewriting of ONNX's Pow is of the same kind (`frontends.rewrites.ops.pow`).
"""

from __future__ import annotations

import math
from typing import Any

import torch

_aten = torch.ops.aten

_MOST_FACTORS = 64
"""Largest whole exponent that f64 is multiplied for."""


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten.pow.Tensor_Scalar: _power_of_tensor,
        _aten.pow.Tensor_Tensor: _power,
        _aten.pow.Scalar: _power_of_number,
    }


def _power_of_number(x: float, exponent: Any) -> Any:
    return _power(torch.full([], x, dtype=torch.result_type(exponent, x)), exponent)


def _power_of_tensor(x: Any, exponent: float) -> Any:
    kind = torch.result_type(x, exponent)
    if kind.is_complex or (kind.is_floating_point and kind != torch.float64):
        return NotImplemented
    if float(exponent).is_integer() and abs(exponent) <= _MOST_FACTORS:
        power = _multiplied(x.to(kind), abs(int(exponent)))
        return power if exponent >= 0 else torch.reciprocal(power)
    return _power(x, torch.full([], exponent, dtype=kind))


def _multiplied(x: Any, exponent: int) -> Any:
    """Returns the product of so many factors."""
    result = None
    while exponent:
        if exponent & 1:
            result = x if result is None else result * x
        exponent >>= 1
        if exponent:
            x = x * x
    return torch.ones_like(x) if result is None else result


def _power(x: Any, exponent: Any) -> Any:
    kind = torch.result_type(x, exponent)
    if kind == torch.float64:
        return _of_magnitude(x.to(kind), exponent.to(kind))
    if kind.is_floating_point or kind.is_complex:
        return NotImplemented
    return _by_bits(x.to(kind), exponent.to(kind))


def _by_bits(x: Any, exponent: Any) -> Any:
    """Multiplies a factor for each bit of the exponent that is set. A negative exponent gives the fraction cut off."""
    result, factor, rest = torch.ones_like(x), x, exponent
    for _ in range(torch.iinfo(exponent.dtype).bits - 1):
        result = torch.where((rest & 1) == 1, result * factor, result)
        factor, rest = factor * factor, rest >> 1
    odd = (exponent & 1) == 1
    inverse = torch.where(x == 1, 1, torch.where(x == -1, torch.where(odd, -1, 1), 0)).to(x.dtype)
    return torch.where(exponent < 0, inverse, result)


def _of_magnitude(x: Any, exponent: Any) -> Any:
    """Returns a power of all special values as C defines them, from one of a positive number. Its relative error is
    that of the logarithm times the exponent."""
    magnitude = x.abs()
    is_zero = magnitude == 0
    of_zero = torch.where(exponent < 0, math.inf, torch.where(exponent > 0, 0.0, exponent))
    logarithm = torch.where(is_zero, 1.0, magnitude).log()
    power = torch.where(is_zero, of_zero, torch.exp(logarithm * exponent))
    half = exponent / 2
    is_whole = torch.floor(exponent) == exponent
    is_odd = is_whole & (torch.floor(half) != half)
    is_negative = torch.where(is_zero, torch.reciprocal(x), x) < 0
    signed = torch.where(is_negative & is_odd, -power, power)
    is_root = (x < 0) & (magnitude < math.inf) & ~is_whole
    is_unit = (magnitude == 1) & (exponent.abs() == math.inf)
    is_one = is_unit | (exponent == 0) | (x == 1)
    return torch.where(is_one, 1.0, torch.where(is_root, math.nan, signed))
