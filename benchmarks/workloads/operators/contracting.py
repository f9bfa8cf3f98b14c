"""Contractions, windows and resampling of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads.operators.model import NUMPY_TYPES, OpModel

_EINSUMS = ("ij->ji", "ij->i", "ij,jk->ik", "ij,kj->ki", "ij,ij->", "ij,jk")


def multiply(m: OpModel) -> None:
    """Adds products of matrices."""
    x = m.input(7, 33)
    m.check("MatMul", x, m.input(33, 65))
    m.check("MatMul", m.input(1, 70), m.input(70, 129))
    m.check("MatMul", m.input(67, 63), m.input(63, 1))
    m.check("MatMul", m.input(3, 5, 19), m.input(3, 19, 11))
    m.check("MatMul", m.input(2, 3, 9, 21), m.input(21, 13))
    m.check("MatMul", m.input(31), m.input(31, 6))
    m.check("MatMul", m.input(6, 31), m.input(31))
    m.check("Gemm", x, m.input(33, 65), m.input(65))
    if m.is_float:
        attributes: dict[str, Any] = {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}
        m.check("Gemm", m.input(37, 66), m.input(29, 37), m.input(66, 1), **attributes)
        m.check("MatMul", x, m.weights(33, 65))
    for equation in _EINSUMS:
        operands = [m.input(9, 9), m.input(9, 9, name="y")][: equation.partition("->")[0].count(",") + 1]
        m.check("Einsum", *operands, equation=equation)
    m.check("Einsum", m.input(2, 3, 5, 7), m.input(2, 3, 11, 7), equation="bhid,bhjd->bhij")
    m.check("Det", m.input(3, 4, 4))


def convolve(m: OpModel) -> None:
    """Adds convolutions and pools."""
    image, around = m.input(1, 8, 9, 11), [1, 1, 1, 1]
    for weights, attributes in (
        ((17, 8, 1, 1), {}),
        ((17, 8, 1, 1), {"strides": [2, 2]}),
        ((5, 8, 3, 3), {"pads": around}),
        ((5, 8, 3, 3), {"pads": [0, 1, 2, 1], "strides": [2, 1]}),
        ((5, 8, 3, 3), {"dilations": [2, 2]}),
        ((8, 1, 3, 3), {"group": 8, "pads": around}),
        ((12, 4, 3, 3), {"group": 2, "auto_pad": "SAME_UPPER"}),
    ):
        m.check("Conv", image, m.weights(*weights), **attributes)
    m.check("Conv", m.input(2, 6, 27), m.weights(10, 6, 3), m.weights(10), strides=[2])
    m.check("Conv", m.input(1, 4, 5, 7, 9), m.weights(6, 4, 3, 3, 3))
    m.check("ConvTranspose", image, m.weights(8, 5, 3, 3), strides=[2, 2], pads=around)
    m.check("ConvTranspose", image, m.weights(8, 2, 3, 3), group=4, strides=[2, 1], output_padding=[1, 0])
    _deform(m, image)
    _pool(m, image)


def _deform(m: OpModel, image: str) -> None:
    if m.takes("DeformConv"):
        offsets = m.op("Mul", m.op("Tanh", m.input(1, 18, 7, 9)), m.number(0.75))
        m.check("DeformConv", image, m.weights(5, 8, 3, 3), offsets, kernel_shape=[3, 3])


def _pool(m: OpModel, image: str) -> None:
    windows: tuple[dict[str, Any], ...] = (
        {"kernel_shape": [3, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
    )
    for attributes in windows:
        m.check("MaxPool", image, **attributes)
        m.check("AveragePool", image, **attributes)
    m.check("AveragePool", image, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    m.check("MaxPool", image, results=2, kernel_shape=[2, 3], strides=[2, 3])
    m.check("LpPool", image, kernel_shape=[3, 2], p=2)
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        m.check(op, image)
    m.check("MaxRoiPool", image, m.constant(_regions(m)), pooled_shape=[2, 2])
    if m.takes("MaxUnpool"):
        places = np.array([[[[1, 3], [8, 14]]]], np.int64)
        m.check("MaxUnpool", m.input(1, 1, 2, 2), m.constant(places), kernel_shape=[2, 2], strides=[2, 2])


def _regions(m: OpModel) -> np.ndarray:
    return np.array([[0, 0, 0, 5, 7], [0, 2, 1, 9, 8]], NUMPY_TYPES[m.dtype])


def resample(m: OpModel) -> None:
    """Adds operators that read images between their pixels."""
    image = m.input(1, 2, 5, 7)
    if m.takes("Resize"):
        _resize(m, image)
    if m.takes("GridSample"):
        # Positions are powers of two, of which no rounding takes one to another pixel.
        floats = m.dtype if m.is_float else "f32"
        grid = m.op("Mul", m.op("Sign", m.input(1, 3, 4, 2, dtype=floats)), m.number(0.5, floats))
        for mode in ("linear", "nearest", "cubic") if m.is_float else ("nearest",):
            for padding in ("zeros", "border", "reflection"):
                m.check("GridSample", image, grid, mode=mode, padding_mode=padding)
        m.check("GridSample", image, grid, mode="nearest", align_corners=1)
    if m.takes("RoiAlign"):
        boxes = m.constant(np.array([[0, 0, 4, 3], [1, 1, 6, 4]], NUMPY_TYPES[m.dtype]))
        m.check("RoiAlign", image, boxes, m.ints(0, 0), output_height=2, output_width=3, sampling_ratio=2)
    m.check("AffineGrid", m.input(1, 2, 3), m.ints(1, 2, 3, 5))
    if m.takes("Col2Im"):
        m.check("Col2Im", m.input(1, 8, 12), m.ints(4, 5), m.ints(2, 2))


def _resize(m: OpModel, image: str) -> None:
    scales = m.constant(np.array([1, 1, 2, 2], np.float32))
    for places in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        for mode in ("linear", "cubic") if m.is_float else ():
            m.check("Resize", image, "", scales, mode=mode, coordinate_transformation_mode=places)
    for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"):
        m.check(
            *("Resize", image, "", scales),
            mode="nearest",
            nearest_mode=rounding,
            coordinate_transformation_mode="asymmetric",
        )
    m.check("Resize", image, "", "", m.ints(1, 2, 10, 14), mode="linear" if m.is_float else "nearest")
