"""ATen's elementwise ops that IREE's importer computes wrongly for some numbers, or has no op for.

- Its maximum, minimum, clamp and hardtanh return the other operand for NaN, where PyTorch returns NaN.
- It says that NaN is finite, and that it equals itself.
- It negates integers as f32, and divides 64-bit integers as f64, so large ones are rounded.
- Its exponential minus one in elu is inexact near zero.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import torch

_aten = torch.ops.aten

_HALVES = (torch.float16, torch.bfloat16)


def decompositions() -> dict[Any, Any]:
    """Returns the ops to spell out, with functions that do so."""
    return {
        _aten.maximum.default: _maximum,
        _aten.minimum.default: _minimum,
        _aten.fmax.default: functools.partial(_known_one, operator.gt, torch.maximum),
        _aten.fmin.default: functools.partial(_known_one, operator.lt, torch.minimum),
        _aten.clamp.default: _clamp,
        _aten.hardtanh.default: _hardtanh,
        _aten.eq.Tensor: _equal,
        _aten.isfinite.default: _is_finite,
        _aten.neg.default: lambda x: NotImplemented if x.is_floating_point() or x.is_complex() else x * -1,
        _aten.elu.default: _elu,
        _aten.hypot.default: _hypot,
        _aten.signbit.default: _is_negative,
        _aten.copysign.Tensor: _copy_sign,
        _aten.copysign.Scalar: lambda x, y: _copy_sign(x, torch.full([], y, dtype=torch.result_type(x, y))),
        _aten.angle.default: _angle,
        _aten.fmod.Scalar: _fmod,
        _aten.fmod.Tensor: _fmod,
        _aten.floor_divide.default: _floor_quotient,
        _aten.floor_divide.Scalar: _floor_quotient,
        _aten.div.Tensor_mode: _quotient,
        _aten.div.Scalar_mode: _quotient,
        _aten.erfc.default: _complementary_error,
        _aten.special_erfc.default: _complementary_error,
        _aten.erfinv.default: _inverse_error,
        _aten.polar.default: _polar,
    }


def _polar(length: Any, angle: Any) -> Any:
    """IREE's importer takes tensors of one shape only."""
    if length.shape == angle.shape:
        return NotImplemented
    return _aten.polar(*torch.broadcast_tensors(length, angle))  # type: ignore[no-untyped-call]


def _maximum(x: Any, y: Any) -> Any:
    if not _are_floats(x, y):
        return NotImplemented
    return torch.where((x > y) | x.isnan(), x, y)


def _minimum(x: Any, y: Any) -> Any:
    if not _are_floats(x, y):
        return NotImplemented
    return torch.where((x < y) | x.isnan(), x, y)


def _known_one(wins: Any, or_else: Any, x: Any, y: Any) -> Any:
    """Returns the number that wins, or the one that is not NaN. IREE's importer does not return with some that are
    broadcast."""
    kind = torch.result_type(x, y)
    x, y = x.to(kind), y.to(kind)
    return torch.where(wins(x, y) | y.isnan(), x, y) if kind.is_floating_point else or_else(x, y)


def _are_floats(x: Any, y: Any) -> bool:
    return bool(x.is_floating_point() and x.dtype == y.dtype)


def _clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    # No comparison with NaN holds, so it stays.
    raised = x if low is None else torch.where(x < low, low, x)
    return raised if high is None else torch.where(raised > high, high, raised)


def _hardtanh(x: Any, low: Any = -1.0, high: Any = 1.0) -> Any:
    return _clamp(x, low, high)


def _equal(x: Any, y: Any) -> Any:
    """A tensor compared with itself, which may have been copied, would be folded to true."""
    is_folded = x.is_floating_point() and y.is_floating_point() and x.shape == y.shape
    return (x <= y) & (x >= y) if is_folded else NotImplemented


def _is_finite(x: Any) -> Any:
    return x.abs() < math.inf if x.is_floating_point() else NotImplemented


def _elu(x: Any, alpha: Any = 1.0, scale: Any = 1.0, input_scale: Any = 1.0) -> Any:
    return torch.where(x > 0, x * scale, torch.expm1(x * input_scale) * (alpha * scale))


def _hypot(x: Any, y: Any) -> Any:
    """Scales by the larger one, so that squares do not overflow. Infinity wins over NaN."""
    x, y = x.abs(), y.abs()
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    ratio = torch.where(large == small, torch.where(large == 0, 0.0, 1.0).to(x.dtype), small / large)
    length = large * torch.sqrt(1 + ratio * ratio)
    return torch.where(x.isinf() | y.isinf(), float("inf"), length)


def _is_negative(x: Any) -> Any:
    """The reciprocal tells -0 from 0. NaN is taken for positive."""
    if not x.is_floating_point():
        return x < 0
    return torch.where(x == 0, torch.reciprocal(x), x) < 0


def _copy_sign(x: Any, y: Any) -> Any:
    kind = torch.result_type(x, y)
    kind = kind if kind.is_floating_point else torch.get_default_dtype()
    size = x.to(kind).abs()
    return torch.where(_is_negative(y), -size, size)


def _angle(x: Any) -> Any:
    if x.is_complex():
        return NotImplemented
    angle = torch.where(x < 0, math.pi, 0.0).to(
        x.dtype if x.is_floating_point() else torch.get_default_dtype()
    )
    return torch.where(x.isnan(), x, angle) if x.is_floating_point() else angle


def _fmod(x: Any, y: Any) -> Any:
    """The remainder of a quotient that is cut off; it has the sign of x."""
    kind = torch.result_type(x, y)
    x, y = x.to(kind), y if isinstance(y, int | float) else y.to(kind)
    if not kind.is_floating_point:
        return x - torch.div(x, y, rounding_mode="trunc") * y
    rest = torch.remainder(x.abs(), abs(y))
    return torch.where((x == 0) & ~rest.isnan(), x, torch.where(x < 0, -rest, rest))


def _quotient(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    return _floor_quotient(x, y) if rounding_mode == "floor" else NotImplemented


def _floor_quotient(x: Any, y: Any) -> Any:
    """Python's quotient of whole numbers. The remainder makes it exact: a rounded quotient may be the next whole
    number. IREE has no remainder of f64."""
    kind = torch.result_type(x, y)
    if kind == torch.float64:
        return NotImplemented
    wide = torch.float32 if kind in _HALVES else kind
    x, y = x.to(wide), torch.full([], y, dtype=wide) if isinstance(y, int | float) else y.to(wide)
    if not wide.is_floating_point:
        cut = torch.div(x, y, rounding_mode="trunc")
        rest = x - cut * y
        return torch.where((rest != 0) & ((rest < 0) != (y < 0)), cut - 1, cut)
    rest = _fmod(x, y)
    quotient = (x - rest) / y
    quotient = torch.where((rest != 0) & ((rest < 0) != (y < 0)), quotient - 1, quotient)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    ratio = x / y
    signed = torch.where(quotient == 0, ratio * 0, whole)
    return torch.where(y == 0, ratio, signed).to(kind)


# The exponent of a rational approximation of erfc, by 1 / (1 + |x| / 2); its relative error is below 1.2e-7 (Press and
# others, Numerical Recipes, 6.2).
_ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
    0.17087277,
)  # fmt: skip
# Polynomials of erfinv(x) / x by w = -log(1 - x * x), below 5 by w - 2.5, then by the root of w less 3 (Giles,
# "Approximating the erfinv function", 2010); single precision.
_ERFINV_NEAR = (
    1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087, -4.39150654e-06, -3.5233877e-06,
    3.43273939e-07, 2.81022636e-08,
)  # fmt: skip
_ERFINV_FAR = (
    2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844, 0.00134934322, 0.000100950558,
    -0.000200214257,
)  # fmt: skip


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    return functools.reduce(lambda value, each: value * x + each, reversed(coefficients), torch.zeros_like(x))


def _complementary_error(x: Any) -> Any:
    if not x.is_floating_point() or x.dtype == torch.float64:
        return NotImplemented
    wide = x.to(torch.float64)  # rounding the square in f32 would show in its exponential
    size = wide.abs()
    t = 1 / (1 + size / 2)
    tail = t * torch.exp(_polynomial(t, _ERFC) - size * size)
    return torch.where(wide < 0, 2 - tail, tail).to(x.dtype)


def _inverse_error(x: Any) -> Any:
    if not x.is_floating_point() or x.dtype == torch.float64:
        return NotImplemented
    wide = x.to(torch.float64)
    w = -torch.log1p(-wide * wide)
    near, far = _polynomial(w - 2.5, _ERFINV_NEAR), _polynomial(w.sqrt() - 3, _ERFINV_FAR)
    value = torch.where(w < 5, near, far) * wide
    return torch.where(wide.abs() == 1, wide * math.inf, value).to(x.dtype)
