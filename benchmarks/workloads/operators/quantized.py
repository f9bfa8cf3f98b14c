"""Operators on codes of eight bits. All scales are powers of two, so that every rounding is one that ONNX defines."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.operators.model import NUMPY_TYPES, OpModel


def quantize(m: OpModel) -> None:
    """Adds quantisation of floats, to every type of codes, with one scale and one for every channel."""
    x = m.input(5, 19)
    for code in ("u8", "i8"):
        zero = np.array(3, NUMPY_TYPES[code])
        one, many = m.number(0.03125), m.constant(_scales(m, 5))
        m.check("QuantizeLinear", x, one, m.constant(zero))
        m.check("QuantizeLinear", x, many, m.constant(np.full(5, zero)), axis=0)
    m.check("DynamicQuantizeLinear", x, results=3)


def _scales(m: OpModel, count: int) -> np.ndarray:
    return (2.0 ** -(np.arange(count) % 3 + 3)).astype(NUMPY_TYPES[m.dtype])


def codes(m: OpModel) -> None:
    """Adds operators whose data are codes."""
    x = m.input(5, 19)
    small, zero = m.constant(np.array(0.25, np.float32)), m.number(1)
    m.check("DequantizeLinear", x, small, zero)
    scales = (2.0 ** -np.arange(5.0)).astype(np.float32)
    m.check(
        "DequantizeLinear", x, m.constant(scales), m.constant(np.full(5, 2, NUMPY_TYPES[m.dtype])), axis=0
    )
    _multiply(m, x)
    _convolve(m)


def _multiply(m: OpModel, x: str) -> None:
    weights, zero, small = m.numbers(19, 7), m.number(1), m.constant(np.array(0.25, np.float32))
    m.check("MatMulInteger", x, weights, zero, zero)
    m.check("MatMulInteger", m.input(2, 5, 19), weights)
    m.check(
        "QLinearMatMul", x, small, zero, weights, small, zero, m.constant(np.array(0.5, np.float32)), zero
    )


def _convolve(m: OpModel) -> None:
    image, weights, zero = m.input(1, 3, 7, 9), m.numbers(4, 3, 3, 3), m.number(1)
    small, large = m.constant(np.array(0.25, np.float32)), m.constant(np.array(0.5, np.float32))
    m.check("ConvInteger", image, weights, zero, m.number(0), pads=[1, 1, 1, 1])
    m.check("QLinearConv", image, small, zero, weights, small, m.number(0), large, zero, strides=[2, 2])
