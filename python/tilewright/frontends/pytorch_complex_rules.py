"""Rules that compute PyTorch's ops on complex tensors by ops on their real and imaginary parts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from tilewright.frontends import pytorch_fourier
from tilewright.frontends.pytorch_pairs import Complex

_aten = torch.ops.aten


def find_rule(op: Any) -> Callable[..., Any] | None:
    """Returns the function that computes an op, given `Complex` in place of complex tensors; None if there is none."""
    rule = _RULES.get(op)
    if rule is not None:
        return rule
    return _on_each_part(op) if getattr(op, "overloadpacket", None) in _ON_EACH_PART else None


_ON_EACH_PART = frozenset(
    getattr(_aten, name)
    for name in (
        *("alias", "as_strided", "cat", "clone", "detach", "diagonal", "expand", "flip", "gather", "index"),
        *("index_select", "lift_fresh_copy", "mean", "neg", "permute", "repeat", "reshape", "roll", "select"),
        *("slice", "split", "split_with_sizes", "squeeze", "stack", "sum", "t", "transpose", "unfold"),
        *("unsqueeze", "view", "_unsafe_view"),
    )
)
"""Ops that move or add numbers, so that each part of the result depends on the same parts of the operands."""


def _on_each_part(op: Any) -> Callable[..., Any]:
    def compute(*arguments: Any, **named: Any) -> Any:
        named.pop("memory_format", None)
        named.pop("dtype", None)

        def of(part: str) -> Any:
            def pick(leaf: Any) -> Any:
                return getattr(leaf, part) if isinstance(leaf, Complex) else leaf

            return _pytree.tree_map(pick, arguments, is_leaf=lambda leaf: isinstance(leaf, Complex))

        real, imag = op(*of("real"), **named), op(*of("imag"), **named)
        if isinstance(real, list | tuple):
            return [Complex(*parts) for parts in zip(real, imag, strict=True)]
        return Complex(real, imag)

    return compute


def _parts(x: Any) -> Complex:
    """Returns the parts of an operand that may be real."""
    if isinstance(x, Complex):
        return x
    return Complex(x.real, x.imag) if isinstance(x, complex) else Complex(x, 0.0)


def _paired(real: Any, imag: Any) -> Complex:
    """Returns a tensor of two parts, one of which may lack dims or be a number."""
    real, imag = (part if isinstance(part, torch.Tensor) else torch.tensor(part) for part in (real, imag))
    return Complex(*torch.broadcast_tensors(real, imag))  # type: ignore[no-untyped-call]


def _add(x: Any, y: Any, *, alpha: Any = 1) -> Complex:
    (a, b), (c, d) = _parts(x), _parts(y)
    if alpha != 1:
        c, d = c * alpha, d * alpha
    return _like(a + c, b + d)


def _sub(x: Any, y: Any, *, alpha: Any = 1) -> Complex:
    return _add(x, y, alpha=-alpha)


def _like(real: Any, imag: Any) -> Complex:
    """Gives an imaginary part the type and shape of the real one, which it may lack."""
    return Complex(
        real, imag.to(real.dtype) if isinstance(imag, torch.Tensor) else torch.full_like(real, imag)
    )


def _multiply(product: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Complex]:
    """Returns the complex form of a product, which is linear in both operands."""

    def compute(x: Any, y: Any) -> Complex:
        if not isinstance(x, Complex | complex):
            return Complex(product(x, y.real), product(x, y.imag))
        if not isinstance(y, Complex | complex):
            return Complex(product(x.real, y), product(x.imag, y))
        return Complex(
            product(x.real, y.real) - product(x.imag, y.imag),
            product(x.real, y.imag) + product(x.imag, y.real),
        )

    return compute


_mul = _multiply(operator.mul)


def _div(x: Any, y: Any) -> Complex:
    if not isinstance(y, Complex | complex):
        return Complex(x.real / y, x.imag / y)
    return _mul(x, _reciprocal(_parts(y)))


def _reciprocal(x: Complex) -> Complex:
    """Scales by the larger part, so that squares neither overflow nor vanish."""
    real, imag = (part if isinstance(part, torch.Tensor) else torch.tensor(part) for part in x)
    scale = torch.maximum(real.abs(), imag.abs())
    a, b = real / scale, imag / scale
    size = (a * a + b * b) * scale
    return Complex(a / size, -b / size)


def _pow(x: Complex, exponent: Any) -> Any:
    if not isinstance(exponent, int) or not 1 <= exponent <= _MOST_POWER:
        raise NotImplementedError(f"a complex power of {exponent}")
    result = x
    for _ in range(exponent - 1):
        result = _mul(result, x)
    return result


_MOST_POWER = 4
"""Highest power that is computed by products."""


def _exp(x: Complex) -> Complex:
    return _polar(torch.exp(x.real), x.imag)


def _polar(length: Any, angle: Any) -> Complex:
    return Complex(length * torch.cos(angle), length * torch.sin(angle))


def _angle(x: Complex) -> Any:
    return torch.atan2(x.imag, x.real)


def _abs(x: Complex) -> Any:
    return torch.hypot(x.real, x.imag)


def _conj(x: Complex) -> Complex:
    return Complex(x.real, -x.imag)


def _to_copy(x: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if dtype is not None and not dtype.is_complex:
        return x.real.to(dtype)
    real, imag = _parts(x)
    return _like(*(real, imag) if dtype is None else (real.to(dtype.to_real()), imag))


def _full(shape: Sequence[int], value: Any, *, dtype: torch.dtype, **_: Any) -> Complex:
    return Complex(*(torch.full(shape, float(part), dtype=dtype.to_real()) for part in _parts(value)))


def _full_like(x: Any, value: Any, **_: Any) -> Complex:
    return Complex(*(torch.full_like(x.real, float(part)) for part in _parts(value)))


def _pad(x: Complex, pad: Sequence[int], value: Any = 0) -> Complex:
    fill = _parts(value)
    return Complex(*(_aten.constant_pad_nd.default(part, pad, f) for part, f in zip(x, fill, strict=True)))


def _where(condition: Any, x: Any, y: Any) -> Complex:
    return Complex(*(torch.where(condition, a, b) for a, b in zip(_parts(x), _parts(y), strict=True)))


def _view_as_real(x: Complex) -> Any:
    return torch.stack(list(x), -1)


def _view_as_complex(x: Any) -> Complex:
    return Complex(x.select(-1, 0), x.select(-1, 1))


_RULES: dict[Any, Callable[..., Any]] = {
    operator.getitem: operator.getitem,
    _aten.add.Tensor: _add,
    _aten.sub.Tensor: _sub,
    _aten.mul.Tensor: _mul,
    _aten.div.Tensor: _div,
    _aten.mm.default: _multiply(torch.mm),
    _aten.bmm.default: _multiply(torch.bmm),
    _aten.reciprocal.default: _reciprocal,
    _aten.pow.Tensor_Scalar: _pow,
    _aten.exp.default: _exp,
    _aten.polar.default: _polar,
    _aten.angle.default: _angle,
    _aten.abs.default: _abs,
    _aten._conj.default: _conj,
    _aten.conj_physical.default: _conj,
    _aten._to_copy.default: _to_copy,
    _aten.full.default: _full,
    _aten.full_like.default: _full_like,
    _aten.constant_pad_nd.default: _pad,
    _aten.where.self: _where,
    _aten.complex.default: _paired,
    _aten.view_as_real.default: _view_as_real,
    _aten.view_as_complex.default: _view_as_complex,
    _aten._fft_r2c.default: pytorch_fourier.from_real,
    _aten._fft_c2c.default: pytorch_fourier.between_complex,
    _aten._fft_c2r.default: pytorch_fourier.to_real,
}

CONSTANTS: dict[Any, Callable[..., list[torch.Tensor]]] = {
    _aten._fft_r2c.default: pytorch_fourier.waves_from_real,
    _aten._fft_c2c.default: pytorch_fourier.waves_between_complex,
    _aten._fft_c2r.default: pytorch_fourier.waves_to_real,
}
"""Functions that make the tensors which some rules take in addition, given the arguments of the op."""
