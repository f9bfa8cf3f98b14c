"""Quantised products as ONNX specifies them, for onnx's evaluator, whose own add the zero point before they round."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv import Conv

Array = np.ndarray[Any, Any]


def _quantized(values: Array, scale: Array, zero_point: Array) -> Array:
    """Returns bytes: rounded to the nearest, ties to even, then moved and clamped."""
    bounds = np.iinfo(zero_point.dtype)
    moved = np.rint(values / scale) + zero_point.astype(np.float64)
    clamped: Array = np.clip(moved, bounds.min, bounds.max)
    return clamped.astype(zero_point.dtype)


def _from_zero(values: Array, zero_point: Array | None) -> Array:
    return values.astype(np.float64) - (0 if zero_point is None else zero_point.astype(np.float64))


def _of_rows(values: Array) -> Array:
    """Returns numbers for each row of a matrix as a column, and a single number as it is."""
    return values.reshape(-1, 1) if values.ndim == 1 and values.size > 1 else values


class QLinearMatMul(OpRun):
    """The op QLinearMatMul."""

    op_domain = ""

    def _run(
        self, a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array, *y: Array
    ) -> tuple[Array]:
        product = np.matmul(_from_zero(a, _of_rows(a_zero)), _from_zero(b, b_zero))
        scales = [_of_rows(value) for value in y]
        return (_quantized(product * (_of_rows(a_scale) * b_scale), *scales),)


class QLinearConv(Conv):
    """The op QLinearConv; scales and zero points of the weights may differ between output channels."""

    op_domain = ""

    def _run(  # type: ignore[no-untyped-def,override]
        self,
        x: Array,
        x_scale: Array,
        x_zero: Array,
        w: Array,
        w_scale: Array,
        w_zero: Array,
        y_scale: Array,
        y_zero: Array,
        bias: Array | None = None,
        **_,  # noqa: ANN003
    ) -> tuple[Array]:
        product = _convolved(self, x, x_zero, w, w_zero, bias)
        scale = x_scale * np.reshape(w_scale, [-1] + [1] * (w.ndim - 2))
        return (_quantized(product * scale, y_scale, y_zero),)


class ConvInteger(Conv):
    """The op ConvInteger; zero points of the weights may differ between output channels."""

    op_domain = ""

    def _run(  # type: ignore[no-untyped-def,override]
        self,
        x: Array,
        w: Array,
        x_zero: Array | None = None,
        w_zero: Array | None = None,
        **_,  # noqa: ANN003
    ) -> tuple[Array]:
        return (np.rint(_convolved(self, x, x_zero, w, w_zero, bias=None)).astype(np.int32),)


def _convolved(
    op: Conv, x: Array, x_zero: Array | None, w: Array, w_zero: Array | None, bias: Array | None
) -> Array:
    """Returns the convolution of what x and w stand for, with the op's attributes, in float64."""
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    of_filters = None if w_zero is None else np.reshape(w_zero, [-1] + [1] * (w.ndim - 1))
    weights = _from_zero(w, of_filters)
    wide = None if bias is None else bias.astype(np.float64)
    settings = [getattr(op, name) for name in names]
    (product,) = Conv._run(op, _from_zero(x, x_zero), weights, wide, *settings)  # type: ignore[no-untyped-call]
    return np.asarray(product)
