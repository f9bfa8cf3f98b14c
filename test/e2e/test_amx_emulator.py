"""The emulator of AMX computes what Intel's manual says, and refuses what the processor refuses."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amx_cases import AMX, HAS_AMX, bf16, bytes
from amx_emulator import build, emulated

Array = np.ndarray[Any, Any]


_INSTRUCTIONS = Path(__file__).with_name("amx_instructions.c")


_FLAGS = tuple(f"-m{feature}" for feature in AMX)


@pytest.fixture(scope="module")
def _instructions() -> Iterator[ctypes.CDLL]:
    yield build(_INSTRUCTIONS, *_FLAGS)


def _product(library: ctypes.CDLL, name: str, sums: Array, a: Array, b: Array) -> None:
    """Runs one instruction: `a` is [M, K]; `b` is [K / group, N, group]."""
    getattr(library, name)(
        sums.ctypes.data_as(ctypes.c_void_p),
        a.ctypes.data_as(ctypes.c_void_p),
        b.ctypes.data_as(ctypes.c_void_p),
        a.shape[0],
        b.shape[0],
        b.shape[1],
    )


def test_emulated_pairs(_instructions: ctypes.CDLL) -> None:
    """Even and odd elements along K have separate accumulators, and each product is fused with its sum; subnormal
    numbers count as zero."""
    rng = np.random.default_rng(11)
    a, b = bf16(rng, 3, 10), bf16(rng, 5, 7, 2)
    a[0, 0], b[0, 0, 0] = 1e-39, 1e38  # subnormal: the product would not be
    sums = rng.standard_normal((3, 7)).astype(np.float32)
    sums[1, 1] = 1e-40
    expected = np.where(np.abs(sums) < 2.0**-126, 0, sums)
    flushed = np.where(np.abs(a.astype(np.float64)) < 2.0**-126, 0, a.astype(np.float64))
    parts = np.zeros((2, 3, 7), np.float32)
    for group in range(5):
        for odd in (0, 1):
            # The product is exact in f64, so it is rounded once.
            products = flushed[:, None, 2 * group + odd] * b[group, None, :, odd].astype(np.float64)
            parts[odd] = (parts[odd] + products).astype(np.float32)
    expected = expected.astype(np.float32) + (parts[0] + parts[1])
    with emulated() as emulation:
        _product(_instructions, "pairs", sums, a, b)
    assert not emulation.error
    np.testing.assert_allclose(sums, expected, rtol=2.0**-23)


@pytest.mark.parametrize("left", [np.int8, np.uint8])
@pytest.mark.parametrize("right", [np.int8, np.uint8])
def test_emulated_quads(_instructions: ctypes.CDLL, left: type, right: type) -> None:
    rng = np.random.default_rng(12)
    a, b = bytes(rng, left, 3, 20), bytes(rng, right, 5, 7, 4)
    sums = rng.integers(-100, 100, (3, 7)).astype(np.int32)
    terms = b.astype(np.int64).transpose(0, 2, 1).reshape(20, 7)
    expected = sums + a.astype(np.int64) @ terms
    signs = "".join("s" if np.issubdtype(kind, np.signedinteger) else "u" for kind in (left, right))
    with emulated() as emulation:
        _product(_instructions, f"quads_{signs}", sums, a, b)
    assert not emulation.error
    np.testing.assert_array_equal(sums, expected)


@pytest.mark.skipif(HAS_AMX, reason="this machine has instructions of its own")
@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("tiles_that_do_not_fit", "do not fit together"),
        ("tile_without_a_shape", "not configured"),
        ("impossible_shape", "no possible shape"),
    ],
)
def test_what_the_processor_refuses_is_an_error(
    _instructions: ctypes.CDLL, function: str, message: str
) -> None:
    with emulated() as emulation:
        getattr(_instructions, function)()
    assert message in emulation.error
