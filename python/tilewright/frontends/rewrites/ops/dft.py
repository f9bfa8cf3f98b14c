"""DFT as products with matrices of cosines and sines."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule

_MOST_LENGTH = 4096
"""Longest transform. Its matrices are constants of the program: two of 64 MiB in f32, for which numpy takes 0.6 GB on
the way. Spectrograms have 2048 elements by default (librosa's `n_fft`), and seldom more than 4096."""


def _multiply_by_waves(operation: Operation) -> bool:
    rank = operation.rank(0)
    axis = operation.attribute("axis", 1)
    if operation.opset >= 20:
        given = operation.integers(2)
        axis = -2 if given is None else given[0]
    axis %= rank
    held, parts_of_number = operation.lengths(0, axis, rank - 1)
    is_inverse, is_onesided = (bool(operation.attribute(name, 0)) for name in ("inverse", "onesided"))
    is_complex = parts_of_number == 2
    declared = operation.integers(1)
    is_to_real = is_inverse and is_onesided
    length = declared[0] if declared else 2 * (held - 1) if is_to_real else held
    if not 0 < length <= _MOST_LENGTH:
        operation.refuse(f"a transform of {length} elements is not supported; at most {_MOST_LENGTH} are")
    taken = min(held, length // 2 + 1 if is_to_real else length)
    results = length // 2 + 1 if is_onesided and not is_inverse else length
    phase = np.outer(np.arange(taken), np.arange(results)) % length * (2 * np.pi / length)
    weights = np.full((taken, 1), 1 / length if is_inverse else 1.0)
    if is_to_real:  # each element but the first and the middle one stands for itself and its conjugate
        weights[1 : (length + 1) // 2] *= 2
    dtype = operation.dtype(0)
    cosine, sine = (
        operation.constant((weights * f(phase)).astype(dtype))
        for f in (np.cos, np.sin if is_inverse else _minus_sin)
    )
    x = operation.slice(operation.inputs[0], axis, 0, taken) if taken < held else operation.inputs[0]
    perm = [a for a in range(rank) if a not in (axis, rank - 1)] + [rank - 1, axis]
    x = operation.transpose(x, perm)  # [..., parts, elements]
    real = operation.slice(x, rank - 2, 0, 1) if is_complex else x
    real_part = operation.make("MatMul", real, cosine)
    parts = [real_part]
    if not is_to_real:
        parts.append(operation.make("MatMul", real, sine))
    if is_complex:
        imaginary = operation.slice(x, rank - 2, 1, 2)
        parts[0] = operation.make("Sub", parts[0], operation.make("MatMul", imaginary, sine))
        if not is_to_real:
            parts[1] = operation.make("Add", parts[1], operation.make("MatMul", imaginary, cosine))
    result = parts[0] if is_to_real else operation.make("Concat", *parts, axis=rank - 2)
    return operation.give(operation.transpose(result, [perm.index(a) for a in range(rank)]))


def _minus_sin(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray(-np.sin(x))


RULES = (Rule("DFT", _multiply_by_waves, "IREE's importer supports some forms only"),)
