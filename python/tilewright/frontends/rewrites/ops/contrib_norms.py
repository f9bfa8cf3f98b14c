"""The normalisations of ONNX Runtime: SkipLayerNormalization, SimplifiedLayerNormalization, EmbedLayerNormalization,
GroupNorm and SkipGroupNorm. All are computed in f32, as there, or in f64."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import CONTRIB_DOMAIN, OWN_DOMAIN, UNSUPPORTED, Operation, Rule


def _widened(operation: Operation, value: str) -> str:
    return value if operation.kind(0) == TensorProto.DOUBLE else operation.cast(value, TensorProto.FLOAT)


def _narrowed(operation: Operation, value: str) -> str:
    return value if operation.kind(0) == TensorProto.DOUBLE else operation.cast(value, operation.kind(0))


def _inverse_root(operation: Operation, variance: str, epsilon: float) -> str:
    dtype = np.dtype(np.float64 if operation.kind(0) == TensorProto.DOUBLE else np.float32)
    shifted = operation.make("Add", variance, operation.number(epsilon, dtype))
    return operation.make("Reciprocal", operation.make("Sqrt", shifted))


def _normalise(
    operation: Operation,
    x: str,
    axes: list[int],
    *,
    scale: str,
    shift: str = "",
    is_centred: bool = True,
    statistics: tuple[int, int] = (-1, -1),
) -> str:
    """Makes (x - mean) / √(variance + ε) · scale + shift along axes, or without the mean.

    `statistics` are the outputs of the node that get the mean and the inverse deviation.
    """
    default = 1e-5 if operation.op == "SimplifiedLayerNormalization" else 1e-12
    epsilon = operation.attribute("epsilon", default)
    wide = _widened(operation, x)
    if is_centred:
        mean = operation.reduce("Mean", wide, axes)
        wide = operation.make("Sub", wide, mean)
        if operation.wants(statistics[0]):
            operation.give(mean, statistics[0])
    variance = operation.reduce("Mean", operation.make("Mul", wide, wide), axes)
    inverse = _inverse_root(operation, variance, epsilon)
    if operation.wants(statistics[1]):
        operation.give(inverse, statistics[1])
    result = operation.make("Mul", operation.make("Mul", wide, inverse), _widened(operation, scale))
    if shift:
        result = operation.make("Add", result, _widened(operation, shift))
    return _narrowed(operation, result)


def _sum(operation: Operation, *indices: int) -> str:
    """Makes the sum of those inputs that are present."""
    terms = [operation.inputs[index] for index in indices if operation.has(index)]
    total = terms[0]
    for term in terms[1:]:
        total = operation.make("Add", total, term)
    return total


def _normalise_sum(operation: Operation) -> bool:
    """The result and the optional sum are of input + skip + bias."""
    is_centred = operation.op == "SkipLayerNormalization"
    total = _sum(operation, 0, 1, 4 if is_centred else 3)
    result = _normalise(
        operation,
        total,
        [operation.rank(0) - 1],
        scale=operation.inputs[2],
        shift=operation.inputs[3] if is_centred and operation.has(3) else "",
        is_centred=is_centred,
        statistics=(1, 2),
    )
    if operation.wants(3):
        operation.give(total, 3)
    return operation.give(result)


def _normalise_by_root_mean_square(operation: Operation) -> bool:
    rank = operation.rank(0)
    axes = list(range(operation.attribute("axis", -1) % rank, rank))
    result = _normalise(
        operation,
        operation.inputs[0],
        axes,
        scale=operation.inputs[1],
        is_centred=False,
        statistics=(-1, 1),
    )
    return operation.give(result)


def _embed(operation: Operation) -> bool:
    """Sums the embeddings of words, positions and segments, and normalises them."""
    words, positions = operation.inputs[2], operation.inputs[3]
    total = operation.make("Gather", words, operation.inputs[0], axis=0)
    if operation.has(8):
        placed = operation.make("Gather", positions, operation.inputs[8], axis=0)
    else:
        length = operation.make("Shape", operation.inputs[0], start=1, end=2)
        placed = operation.make("Slice", positions, operation.ints(0), length, operation.ints(0))
    total = operation.make("Add", total, placed)
    if operation.has(1) and operation.has(4):
        segments = operation.make("Gather", operation.inputs[4], operation.inputs[1], axis=0)
        total = operation.make("Add", total, segments)
    kind = operation.kind_of(words)
    wide = operation.cast(total, TensorProto.FLOAT)
    mean = operation.reduce("Mean", wide, [2])
    centred = operation.make("Sub", wide, mean)
    variance = operation.reduce("Mean", operation.make("Mul", centred, centred), [2])
    epsilon = operation.number(operation.attribute("epsilon", 1e-12), np.dtype(np.float32))
    root = operation.make("Sqrt", operation.make("Add", variance, epsilon))
    gamma, beta = (operation.cast(operation.inputs[index], TensorProto.FLOAT) for index in (5, 6))
    scaled = operation.make("Mul", operation.make("Div", centred, root), gamma)
    operation.give(operation.cast(operation.make("Add", scaled, beta), kind))
    if operation.wants(1):
        operation.give(_count_ones(operation), 1)
    if operation.wants(2):
        operation.give(total, 2)
    return True


def _count_ones(operation: Operation) -> str:
    """Makes the number of ones in each row of the mask, or zeros without one."""
    if operation.has(7):
        mask = operation.cast(operation.inputs[7], TensorProto.INT32)
        is_one = operation.make("Equal", mask, operation.constant(np.int32(1)))
        return operation.reduce("Sum", operation.cast(is_one, TensorProto.INT32), [1], keepdims=False)
    ids = operation.cast(operation.inputs[0], TensorProto.INT32)
    zeros = operation.make("Mul", ids, operation.constant(np.int32(0)))
    return operation.reduce("Sum", zeros, [1], keepdims=False)


def _normalise_groups(operation: Operation) -> bool:
    """Normalises groups of channels, of an image with channels last by default; an activation of 1 is SiLU."""
    x = operation.inputs[0]
    if operation.op == "SkipGroupNorm":
        skip = operation.inputs[3]
        if operation.rank(3) == 2:
            last = operation.attribute("channels_last", 1)
            skip = operation.make("Unsqueeze", skip, operation.ints(1, 2) if last else operation.ints(2, 3))
        x = operation.make("Add", x, skip)
        if operation.has(4):
            bias = operation.inputs[4]
            if not operation.attribute("channels_last", 1):
                bias = operation.reshape(bias, [1, -1, 1, 1])
            x = operation.make("Add", x, bias)
        if operation.wants(1):
            operation.give(x, 1)
    shape, groups = operation.shape_of_sample(0), operation.attribute("groups")
    is_last = operation.attribute("channels_last", 1)
    channels = shape[-1] if is_last else shape[1]
    wide = operation.cast(x, TensorProto.FLOAT)
    if is_last:
        parted = operation.reshape(wide, [shape[0], -1, groups, channels // groups])
        axes, along = [1, 3], [channels]
    else:
        parted = operation.reshape(wide, [shape[0], groups, -1])
        axes, along = [2], [channels, 1, 1]
    mean = operation.reduce("Mean", parted, axes)
    centred = operation.make("Sub", parted, mean)
    variance = operation.reduce("Mean", operation.make("Mul", centred, centred), axes)
    inverse = _inverse_root(operation, variance, operation.attribute("epsilon", 1e-5))
    normal = operation.reshape(operation.make("Mul", centred, inverse), shape)
    gamma, beta = (
        operation.reshape(operation.cast(operation.inputs[index], TensorProto.FLOAT), along)
        for index in (1, 2)
    )
    result = operation.make("Add", operation.make("Mul", normal, gamma), beta)
    if operation.attribute("activation"):
        result = operation.make("Mul", result, operation.make("Sigmoid", result))
    return operation.finish("Cast", result, to=operation.kind(0))


RULES = (
    Rule("EmbedLayerNormalization", _embed, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("GroupNorm", _normalise_groups, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("SimplifiedLayerNormalization", _normalise_by_root_mean_square, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("SimplifiedLayerNormalization", _normalise_by_root_mean_square, UNSUPPORTED, domain=OWN_DOMAIN),
    Rule("SkipGroupNorm", _normalise_groups, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("SkipLayerNormalization", _normalise_sum, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("SkipSimplifiedLayerNormalization", _normalise_sum, UNSUPPORTED, domain=CONTRIB_DOMAIN),
)
