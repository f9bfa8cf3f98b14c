"""Steps of random graphs with quantisation. `elementwise` says what a step is.

All scales are powers of two, and only exact values are quantised, so that all roundings are those that ONNX defines:
results are exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz.builder import Array, Shape
from fuzz.pool import MAX_ELEMENTS, Pool, Value, result
from fuzz.windows import window_of

_CODES: dict[np.dtype[Any], tuple[int, int]] = {np.dtype(np.uint8): (0, 255), np.dtype(np.int8): (-128, 127)}


def _code(pool: Pool) -> np.dtype[Any]:
    return pool.pick(list(_CODES))


def _scale(pool: Pool) -> float:
    return pool.pick((0.25, 0.0625, 0.03125))


def _zero(pool: Pool, code: np.dtype[Any]) -> Array:
    low, high = _CODES[code]
    return np.array(pool.pick((low, (low + high + 1) // 2, high - 100)), dtype=code)


def _quantized(pool: Pool, x: Value) -> tuple[str, str, str]:
    """Quantises a value; returns it with its scale and zero point."""
    scale = pool.m.constant(np.array(_scale(pool), np.float32))
    zero = pool.m.constant(_zero(pool, _code(pool)))
    return pool.m.op("QuantizeLinear", x.name, scale, zero), scale, zero


def _weights(pool: Pool, shape: Shape) -> tuple[str, str, str]:
    """Returns constant codes with a scale and zero point."""
    code = _code(pool)
    low, high = _CODES[code]
    codes = pool.rng.integers(low, high + 1, shape).astype(code)
    scale = pool.m.constant(np.array(2.0**-8, np.float32))
    return pool.m.constant(codes), scale, pool.m.constant(_zero(pool, code))


def _dequantized(pool: Pool, name: str, scale: str, zero: str, shape: Shape) -> Value:
    y = pool.m.op("DequantizeLinear", name, scale, zero)
    return result(y, shape, "f32", 64.0, exact=True)


def _scaled(pool: Pool, sums: str, shape: Shape, terms: int) -> Value:
    """Returns sums of that many products of codes as small floats; f32 represents integers below 2^24 exactly."""
    small = pool.m.op("Mul", pool.m.op("Cast", sums, to=1), pool.m.scalar(2.0**-20, "f32"))
    return result(small, shape, "f32", 32.0, exact=terms * 255 * 255 < 2**24)


def rounded(pool: Pool, x: Value, op: str) -> Value | None:
    """Quantises and dequantises, with one scale or one for every channel."""
    if x.dtype != "f32" or not x.exact or math.prod(x.shape) == 0:
        return None
    pool.use(x)
    if pool.chance(0.5):
        return _dequantized(pool, *_quantized(pool, x), x.shape)
    axis = int(pool.rng.integers(len(x.shape)))
    code = _code(pool)
    scales = pool.m.constant(np.array([_scale(pool) for _ in range(x.shape[axis])], np.float32))
    zeros = pool.m.constant(np.array([_zero(pool, code) for _ in range(x.shape[axis])], code))
    codes = pool.m.op("QuantizeLinear", x.name, scales, zeros, axis=axis)
    y = pool.m.op("DequantizeLinear", codes, scales, zeros, axis=axis)
    return result(y, x.shape, "f32", 64.0, exact=True)


def matmul(pool: Pool, x: Value, op: str) -> Value | None:
    """Multiplies quantised matrices, to codes or to i32."""
    if x.dtype != "f32" or not x.exact or len(x.shape) < 2:
        return None
    columns = pool.pick((1, 3, 8))
    a, scale, zero = _quantized(pool, x)
    b, b_scale, b_zero = _weights(pool, (x.shape[-1], columns))
    shape = (*x.shape[:-1], columns)
    pool.use(x)
    if op == "MatMulInteger":
        return _scaled(pool, pool.m.op(op, a, b, zero, b_zero), shape, x.shape[-1])
    y_scale = pool.m.constant(np.array(0.25, np.float32))
    y_zero = pool.m.constant(_zero(pool, _code(pool)))
    codes = pool.m.op(op, a, scale, zero, b, b_scale, b_zero, y_scale, y_zero)
    return _dequantized(pool, codes, y_scale, y_zero, shape)


def convolution(pool: Pool, x: Value, op: str) -> Value | None:
    """Convolves quantised images, to codes or to i32."""
    if x.dtype != "f32" or not x.exact:
        return None
    window = window_of(pool, x, is_padded=True)
    if window is None:
        return None
    features = pool.pick((1, 2, 3))
    shape = (x.shape[0], features, *window.sizes)
    if math.prod(shape) > MAX_ELEMENTS:
        return None
    a, scale, zero = _quantized(pool, x)
    w, w_scale, w_zero = _weights(pool, (features, x.shape[1], *window.kernel))
    attributes = {"dilations": window.dilations, **window.attributes}
    pool.use(x)
    if op == "ConvInteger":
        sums = pool.m.op(op, a, w, zero, w_zero, **attributes)
        return _scaled(pool, sums, shape, x.shape[1] * math.prod(window.kernel))
    y_scale = pool.m.constant(np.array(0.25, np.float32))
    y_zero = pool.m.constant(_zero(pool, _code(pool)))
    codes = pool.m.op(op, a, scale, zero, w, w_scale, w_zero, y_scale, y_zero, **attributes)
    return _dequantized(pool, codes, y_scale, y_zero, shape)
