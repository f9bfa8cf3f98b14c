"""Resize in all modes along dims of known length, as gathers along one dim after another.

An element of the result is a sum of a few elements of its row, with weights that depend on its position alone: both are
constants. Positions and weights are those of ONNX's reference, in f64; but where the model gives scales, which are f32,
the nearest element is found in f32, as ONNX Runtime does: 3 / 0.6 is 5 there, and 4.9999998 in f64.
IREE's importer takes the forms that exporters write most, and its kernels for these stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.frontends.rewrites.rule import FLOATS, Operation, Rule

Array = np.ndarray[Any, np.dtype[Any]]
_MOST_GATHERS = 4
"""Most elements of a sum that are gathered one by one: those of the cubic kernel. Only antialiasing makes longer sums,
as long as the image is reduced, and those are products with a matrix."""


@dataclass(frozen=True)
class _Dim:
    """How a dim is resized."""

    axis: int
    length: int
    result: int
    scale: float
    region: tuple[float, float]


def _resize(operation: Operation) -> bool:
    mode = operation.attribute("mode", b"nearest").decode()
    if mode != "nearest" and operation.kind(0) not in FLOATS:
        operation.refuse(f"mode {mode} of integers is not supported", "put Casts to float around it")
    dims = _dims(operation)
    if mode == "nearest" and dims and _repeats(operation, dims):
        return operation.give(_repeat(operation, dims))
    if _is_of_iree(operation, mode, dims):
        return False
    if dims is None:
        operation.refuse(
            "its lengths, scales or sizes are not known, in a mode that needs them",
            "make scales and sizes initializers, and declare the lengths of its dims",
        )
    result = operation.inputs[0]
    is_beyond: list[str] = []
    for dim in dims:
        positions = _positions(operation, dim)
        if operation.attribute("coordinate_transformation_mode", b"half_pixel") == b"tf_crop_and_resize":
            outside = (positions < 0) | (positions > dim.length - 1)
            if outside.any():
                shape = [-1] + [1] * (operation.rank(0) - 1 - dim.axis)
                is_beyond.append(operation.constant(outside.reshape(shape)))
        indices, weights = _taps(operation, mode, positions, dim)
        result = _gather(operation, result, dim, indices, weights)
    if not is_beyond:
        return operation.give(result)
    beyond = is_beyond[0]
    for other in is_beyond[1:]:
        beyond = operation.make("Or", beyond, other)
    value = operation.number(operation.attribute("extrapolation_value", 0.0), operation.dtype(0))
    return operation.finish("Where", beyond, value, result)


def _dims(operation: Operation) -> list[_Dim] | None:
    """Returns the dims that are resized; None if a length or a scale is not known, which IREE may support."""
    shape, rank = operation.shape(0), operation.rank(0)
    axes = operation.attribute("axes")
    axes = list(range(rank)) if axes is None else [axis % rank for axis in axes]
    scales, sizes = operation.value(2), operation.value(3)
    if scales is None and sizes is None:
        return None
    if sizes is not None:
        if any(shape[axis] < 0 for axis in axes):
            return None
        results = [int(size) for size in sizes]
        factors = [size / shape[axis] for size, axis in zip(results, axes, strict=True)]
        policy = operation.attribute("keep_aspect_ratio_policy", b"stretch").decode()
        if policy != "stretch":
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors = [factor] * len(axes)
            results = [int(np.floor(factor * shape[axis] + 0.5)) for axis in axes]
    else:
        assert scales is not None
        factors = [float(scale) for scale in scales]
        results = [int(np.floor(shape[axis] * factor)) for axis, factor in zip(axes, factors, strict=True)]
    region = operation.value(1)
    begins, ends = np.split(region, 2) if region is not None and region.size else (None, None)
    dims = []
    for index, axis in enumerate(axes):
        part = (0.0, 1.0) if begins is None or ends is None else (float(begins[index]), float(ends[index]))
        if factors[index] == 1.0 and (shape[axis] < 0 or (results[index] == shape[axis] and part == (0, 1))):
            continue
        if shape[axis] < 0:
            return None
        dims.append(_Dim(axis, shape[axis], results[index], factors[index], part))
    return dims


def _repeats(operation: Operation, dims: list[_Dim]) -> bool:
    """Returns True if each element of a tensor of known shape is repeated by a whole factor along each of the dims."""
    if operation.attribute(
        "coordinate_transformation_mode"
    ) == b"tf_crop_and_resize" or -1 in operation.shape(0):
        return False
    return all(
        dim.result % dim.length == 0
        and np.array_equal(
            _taps(operation, "nearest", _positions(operation, dim), dim)[0][:, 0],
            np.arange(dim.result) // (dim.result // dim.length),
        )
        for dim in dims
        if dim.length
    )


def _repeat(operation: Operation, dims: list[_Dim]) -> str:
    """Repeats elements by a broadcast, which kernels read in place."""
    factors = {dim.axis: dim.result // dim.length for dim in dims if dim.length}
    spread, repeated, result = [], [], []
    for axis, length in enumerate(operation.shape(0)):
        factor = factors.get(axis, 1)
        spread += [length, 1] if axis in factors else [length]
        repeated += [length, factor] if axis in factors else [length]
        result.append(length * factor)
    apart = operation.reshape(operation.inputs[0], spread)
    return operation.reshape(operation.make("Expand", apart, operation.ints(*repeated)), result)


def _is_of_iree(operation: Operation, mode: str, dims: list[_Dim] | None) -> bool:
    """Returns True for the forms in which IREE's importer agrees with ONNX's reference; `dims` may be unknown."""
    is_of_images = operation.rank(0) == 4 and {dim.axis for dim in dims or []} <= {2, 3} and dims != []
    if not is_of_images or operation.attribute("antialias", 0) or operation.attribute("exclude_outside", 0):
        return False
    if operation.attribute("axes") is not None:
        return False
    where = operation.attribute("coordinate_transformation_mode", b"half_pixel").decode()
    if any(dim.scale != int(dim.scale) for dim in dims or []):
        return False
    if mode == "nearest":
        is_floor = operation.attribute("nearest_mode", b"round_prefer_floor") == b"floor"
        return bool(where == "asymmetric" and is_floor)
    return bool(mode == "linear" and where == "half_pixel")


def _positions(operation: Operation, dim: _Dim) -> Any:
    """Returns the position in the source of each element of the result."""
    is_single = operation.attribute("mode", b"nearest") == b"nearest" and operation.value(3) is None
    real = np.float32 if is_single else np.float64
    x: Array = np.arange(dim.result, dtype=real)
    scale: Any = real(dim.scale)
    width, last = scale * dim.length, dim.length - 1
    match operation.attribute("coordinate_transformation_mode", b"half_pixel").decode():
        case "align_corners":
            return 0 * x if width == 1 else x * last / (width - 1)
        case "asymmetric":
            return x / scale
        case "tf_crop_and_resize":
            begin, end = dim.region
            inner = 0 * x + (end - begin) * last / 2 if width == 1 else x * (end - begin) * last / (width - 1)
            return inner + begin * last
        case "pytorch_half_pixel" if width == 1:
            return 0 * x - 0.5
        case "half_pixel_symmetric":
            offset = dim.length / 2 * (1 - dim.result / width)
            return offset + (x + 0.5) / scale - 0.5
        case "half_pixel" | "pytorch_half_pixel":
            return (x + 0.5) / scale - 0.5
        case unknown:
            return operation.refuse(f"the coordinate transformation {unknown} is not ONNX's")


def _taps(operation: Operation, mode: str, positions: Array, dim: _Dim) -> tuple[Array, Array | None]:
    """Returns the elements that each element of the result is a sum of, and their weights: [results, taps]."""
    last = dim.length - 1
    if mode == "nearest":
        rounded = _nearest(operation, positions)
        return np.clip(rounded, 0, last).astype(np.int64)[:, None], None
    # ONNX's reference prefers the element to the left of a position, also of one that is exactly an element.
    base = np.ceil(positions) - 1
    ratio = positions - base
    scale = min(dim.scale, 1.0) if operation.attribute("antialias", 0) else 1.0
    reach = 1 if mode == "linear" else 2
    first = int(np.floor(-reach / scale) + 1)
    offsets = np.arange(first, 2 - first if scale < 1 else reach + 1)
    distance = np.abs(offsets[None, :] - ratio[:, None]) * scale
    if mode == "linear":
        weights = np.clip(1 - distance, 0, 1)
    else:
        weights = _cubic(distance, operation.attribute("cubic_coeff_a", -0.75))
    indices = base[:, None] + offsets[None, :]
    if operation.attribute("exclude_outside", 0):
        weights = np.where((indices < 0) | (indices > last), 0, weights)
    if scale < 1 or operation.attribute("exclude_outside", 0):
        weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(indices, 0, last).astype(np.int64), weights


def _nearest(operation: Operation, positions: Array) -> Array:
    match operation.attribute("nearest_mode", b"round_prefer_floor").decode():
        case "round_prefer_floor":
            return np.asarray(np.ceil(positions - 0.5))
        case "round_prefer_ceil":
            return np.asarray(np.floor(positions + 0.5))
        case "floor":
            return np.asarray(np.floor(positions))
        case _:
            return np.asarray(np.ceil(positions))


def _cubic(x: Array, a: float) -> Array:
    """Returns the cubic convolution kernel of Keys at distances x."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _gather(operation: Operation, value: str, dim: _Dim, indices: Array, weights: Array | None) -> str:
    """Makes the sums along one dim."""
    if weights is None:
        return operation.make("Gather", value, operation.constant(indices[:, 0]), axis=dim.axis)
    after = operation.rank(0) - 1 - dim.axis
    dtype = operation.dtype(0)
    if indices.shape[1] > _MOST_GATHERS:
        matrix = np.zeros((dim.result, dim.length))
        np.add.at(matrix, (np.arange(dim.result)[:, None], indices), weights)
        perm = [axis for axis in range(operation.rank(0)) if axis != dim.axis] + [dim.axis]
        turned = operation.transpose(value, perm)
        product = operation.make("MatMul", turned, operation.constant(matrix.T.astype(dtype)))
        return operation.transpose(product, [perm.index(axis) for axis in range(operation.rank(0))])
    total = ""
    for tap in range(indices.shape[1]):
        picked = operation.make("Gather", value, operation.constant(indices[:, tap]), axis=dim.axis)
        factor = operation.constant(weights[:, tap].astype(dtype).reshape([-1] + [1] * after))
        term = operation.make("Mul", picked, factor)
        total = operation.make("Add", total, term) if total else term
    return total


RULES = (
    Rule(
        "Resize",
        _resize,
        "IREE's importer refuses many modes and computes some otherwise",
        forms="all but linear with half_pixel, and nearest with asymmetric and floor and open lengths, of images by "
        "whole factors",
    ),
)
