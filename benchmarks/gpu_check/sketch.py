"""Sketches a result in 8 KB, which is enough to estimate how far another result is from it.

Elements get random signs and are added up in 1024 buckets. The difference of two sketches is the sketch of the
difference, and the sum of its squares estimates ‖y − y64‖² without bias, within a few percent (a count sketch). So
float64 results of any size fit in a bundle with their kernels, and the machine that runs those needs no reference
implementation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.peers import Array

_BUCKETS = 1024
_SEED = 20


def sketch(array: Array) -> list[float]:
    """Returns the sketch of an array of any shape and numeric type."""
    flat = np.ascontiguousarray(array).astype(np.float64).ravel()
    bits = np.frombuffer(np.random.default_rng(_SEED).bytes((flat.size + 7) // 8), np.uint8)
    signed = np.where(np.unpackbits(bits, count=flat.size).astype(bool), flat, -flat)
    padded = np.zeros(-(-max(flat.size, 1) // _BUCKETS) * _BUCKETS)
    padded[: flat.size] = signed
    sums: list[float] = padded.reshape(-1, _BUCKETS).sum(axis=0).tolist()
    return sums


def norm(array: Array) -> float:
    """Returns the exact ‖array‖, which a sketch only estimates."""
    return float(np.linalg.norm(np.asarray(array).astype(np.float64)))


def relative_error(result: Array, expected: Sequence[float], expected_norm: float) -> float:
    """Returns ‖y − y64‖ / ‖y64‖ of a result, with y64 given by sketch and norm; infinity if y has a nan or an
    infinity."""
    error = float(np.linalg.norm(np.subtract(sketch(result), expected)))
    error = error / expected_norm if expected_norm > 0 else error
    return error if math.isfinite(error) else math.inf
