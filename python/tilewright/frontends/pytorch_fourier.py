"""PyTorch's Fourier transforms as products with matrices of cosines and sines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tilewright.errors import ModelError
from tilewright.frontends.pytorch_pairs import Complex
from tilewright.records.signature import Array

_MOST_LENGTH = 4096
"""Longest transform. Its matrices are weights of the program: two of 64 MiB in f32."""
_BY_ROOT, _BY_LENGTH = 1, 2
"""Codes of normalisations by which PyTorch divides the result."""


def waves_from_real(
    x: Any,
    dims: Sequence[int],
    normalization: int,
    is_onesided: bool,  # noqa: FBT001 - the op's own signature
    *,
    where: str,
) -> list[torch.Tensor]:
    """Returns the matrices for `from_real`: for each dim, cosines and sines of [length, results]."""
    *others, last = (_length(x.shape[dim], where) for dim in dims)
    shapes = [*((length, length) for length in others), (last, last // 2 + 1 if is_onesided else last)]
    return [wave for n, results in shapes for wave in _waves(x, n, n, results, -1, normalization)]


def waves_between_complex(
    x: Any,
    dims: Sequence[int],
    normalization: int,
    is_forward: bool,  # noqa: FBT001
    *,
    where: str,
) -> list[torch.Tensor]:
    """Returns the matrices for `between_complex`."""
    sign = -1 if is_forward else 1
    lengths = [_length(x.shape[dim], where) for dim in dims]
    return [wave for n in lengths for wave in _waves(x, n, n, n, sign, normalization)]


def waves_to_real(
    x: Any, dims: Sequence[int], normalization: int, last: int, *, where: str
) -> list[torch.Tensor]:
    """Returns the matrices for `to_real`, whose result has `last` elements along the last dim."""
    lengths = [_length(x.shape[dim], where) for dim in dims[:-1]]
    found = [wave for n in lengths for wave in _waves(x, n, n, n, 1, normalization)]
    last = _length(last, where)
    taken = last // 2 + 1
    # Each element but the first and the middle one stands for itself and its conjugate.
    weights = np.full((taken, 1), 2.0)
    weights[0] = 1
    if last % 2 == 0:
        weights[-1] = 1
    return found + _waves(x, last, taken, last, 1, normalization, weights)


def _length(length: Any, where: str) -> int:
    if not isinstance(length, int) or length > _MOST_LENGTH:
        raise ModelError(
            f"a Fourier transform of {length} elements is not supported",
            where=where,
            hint=f"fix the length, to at most {_MOST_LENGTH}",
        )
    return length


def _waves(
    x: Any, length: int, taken: int, results: int, sign: int, normalization: int, weights: Any = 1.0
) -> list[torch.Tensor]:
    """Returns cosines and sines of [taken, results], in the real type of x."""
    phase = np.outer(np.arange(taken), np.arange(results)) % length * (sign * 2 * np.pi / length)
    divisor = {_BY_ROOT: length**0.5, _BY_LENGTH: length}.get(normalization, 1)
    kind = x.dtype.to_real()
    return [torch.from_numpy(weights * _exact(f(phase)) / divisor).to(kind) for f in (np.cos, np.sin)]


def _exact(wave: Array) -> Array:
    """Returns a wave with zeros in place of rounding errors, from which angles of real results would come."""
    return np.where(np.abs(wave) < 1 / (4 * _MOST_LENGTH), 0, wave)


def from_real(x: Any, dims: Sequence[int], _normalization: Any, _is_onesided: Any, *waves: Any) -> Complex:
    """Computes `aten._fft_r2c`, whose last dim may hold half of the results only."""
    moved = x.movedim(dims[-1], -1)
    cosines, sines = waves[-2:]
    result = Complex(*((moved @ wave).movedim(-1, dims[-1]) for wave in (cosines, sines)))
    return between_complex(result, dims[:-1], 0, True, *waves[:-2])


def between_complex(
    x: Complex, dims: Sequence[int], _normalization: Any, _is_forward: Any, *waves: Any
) -> Complex:
    """Computes `aten._fft_c2c`."""
    for dim, cosines, sines in zip(dims, waves[::2], waves[1::2], strict=True):
        real, imag = (part.movedim(dim, -1) for part in x)
        x = Complex(
            (real @ cosines - imag @ sines).movedim(-1, dim), (real @ sines + imag @ cosines).movedim(-1, dim)
        )
    return x


def to_real(x: Complex, dims: Sequence[int], _normalization: Any, _last: int, *waves: Any) -> Any:
    """Computes `aten._fft_c2r`."""
    real, imag = (part.movedim(dims[-1], -1) for part in between_complex(x, dims[:-1], 0, False, *waves[:-2]))
    cosines, sines = waves[-2:]
    return (real @ cosines - imag @ sines).movedim(-1, dims[-1])
