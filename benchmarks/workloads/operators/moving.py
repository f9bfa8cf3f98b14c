"""Operators that move elements: reshapes, slices, pads, gathers and scatters."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.operators.model import NUMPY_TYPES, OpModel


def move(m: OpModel) -> None:
    """Adds operators that move elements to places that do not depend on data."""
    x = m.input(3, 5, 37)
    m.check("Transpose", x, perm=[2, 0, 1])
    m.check("Transpose", x, perm=[0, 2, 1])
    m.check("Reshape", x, m.ints(5, -1, 3))
    m.check("Flatten", x, axis=2)
    m.check("Unsqueeze", x, m.ints(1, 3))
    m.check("Squeeze", m.input(3, 1, 37), m.ints(1))
    m.check("Expand", m.input(3, 1, 37), m.ints(2, 3, 5, 37))
    m.check("Tile", x, m.ints(2, 1, 3))
    m.check("Split", x, m.ints(8, 29), results=2, axis=2)
    m.check("Concat", x, m.input(3, 5, 6), x, axis=-1)
    m.check("Concat", x, m.input(2, 5, 37), axis=0)
    m.check("Slice", x, m.ints(1, 3), m.ints(3, 36), m.ints(0, 2), m.ints(1, 4))
    m.check("Slice", x, m.ints(-1, 30), m.ints(-100, 2), m.ints(1, 2), m.ints(-1, -3))
    m.check("Trilu", x, m.number(1, "i64"), upper=1)
    m.check("Trilu", x, m.number(-1, "i64"), upper=0)
    m.check("CenterCropPad", x, m.ints(2, 41), axes=[0, 2])
    m.check("Shape", x)
    m.check("Size", x)
    m.check("EyeLike", m.input(5, 7), k=1)
    image = m.input(2, 8, 3, 5)
    for mode in ("DCR", "CRD"):
        m.check("DepthToSpace", image, blocksize=2, mode=mode)
    m.check("SpaceToDepth", m.input(2, 3, 4, 6), blocksize=2)
    m.check("ReverseSequence", x, m.ints(5, 1, 2), time_axis=1, batch_axis=0)
    _pad(m)


def _pad(m: OpModel) -> None:
    if not m.takes("Pad"):
        return
    image = m.input(2, 3, 7, 9)
    m.check("Pad", image, m.ints(0, 1, 2, 3, 1, 0, 4, 2), m.number(1))
    m.check("Pad", image, m.ints(0, 0, -1, 3, 0, 0, 2, -2), m.number(0))
    for mode in ("reflect", "edge", "wrap"):
        m.check("Pad", image, m.ints(0, 0, 2, 3, 0, 0, 4, 2), mode=mode)


def index(m: OpModel) -> None:
    """Adds operators that move elements to places given by data."""
    # Integers of inputs are within ±4, and indices count from the end if they are negative.
    x, rows = m.input(5, 7, 9), m.input(2, 3, dtype="i64", name="i")
    m.check("Gather", x, rows, axis=1)
    m.check("Gather", x, m.input(4, dtype="i32", name="i"), axis=0)
    m.check("GatherElements", x, m.input(5, 3, 9, dtype="i64", name="i"), axis=1)
    m.check("GatherND", x, m.input(3, 2, dtype="i64", name="i"))
    _scatter(m, x)
    if m.takes("OneHot"):
        m.check(
            "OneHot", m.input(4, dtype="i64", name="i"), m.number(6, "i64"), m.constant(_off_on(m)), axis=0
        )
    m.check("NonZero", m.input(3, 7))
    if m.takes("NonMaxSuppression"):
        corners = m.constant(
            np.array([[[0, 0, 2, 2], [0, 0, 2, 1.5], [3, 3, 4, 4], [3, 1, 5, 2]]], np.float32)
        )
        limits = (m.ints(3), m.constant(np.array([0.5], np.float32)), m.constant(np.array([-1], np.float32)))
        m.check("NonMaxSuppression", corners, m.input(1, 2, 4), *limits)
    m.check("Unique", x, results=1, axis=0)
    m.check("Compress", x, m.constant(np.array([True, False, True, True, False])), axis=0)


def _off_on(m: OpModel) -> np.ndarray:
    return np.array([0, 1], NUMPY_TYPES[m.dtype])


def _scatter(m: OpModel, x: str) -> None:
    reductions = ("none",) if m.dtype == "bool" else ("none", "add", "mul", "max", "min")
    # Without a reduction, no two updates may meet.
    apart = np.stack([np.roll(np.arange(7), shift)[:3] for shift in range(5)])[:, :, None].repeat(9, axis=2)
    points = np.array([[0, 6], [4, 1], [2, 2]])
    for reduction in reductions:
        meeting = reduction != "none"
        places = m.input(5, 3, 9, dtype="i64", name="i") if meeting else m.constant(apart)
        m.check("ScatterElements", x, places, m.numbers(5, 3, 9), axis=1, reduction=reduction)
        places = m.input(3, 2, dtype="i64", name="i") if meeting else m.constant(points)
        m.check("ScatterND", x, places, m.numbers(3, 9), reduction=reduction)
