"""Conv with one window along a dim, and elements behind it that it does not read; and of volumes by single channels.

The latter becomes the sum of convolutions of planes, one for each tap of the depth.
"""

from __future__ import annotations

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule, UnknownType
from tilewright.frontends.rewrites.windows import end_with_window, windows_of

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _spell_out(operation: Operation) -> bool:
    return _add_planes(operation) or end_with_window(operation, weights=1)


def _add_planes(operation: Operation) -> bool:
    """Convolves planes, in f32 if the type is narrower, because the sums would be rounded for each tap."""
    group = operation.attribute("group", 1)
    try:
        weights = operation.static_shape(1) if group > 1 else []
    except UnknownType:
        return False
    if len(weights) != 5 or weights[:2] != [group, 1]:
        return False
    kind = operation.kind(0)
    windows = windows_of(operation, kernel=weights[2:])
    if 1 in windows.counts[1:] and operation.shape(0)[0] < 0:
        return False  # planes of an open batch would have one window along a dim, which IREE displaces
    x, filters, *bias = operation.inputs
    pads = operation.ints(0, 0, windows.before[0], 0, 0, 0, 0, windows.after[0], 0, 0)
    padded = operation.make("Pad", x, pads) if windows.before[0] or windows.after[0] else x
    planes = operation.transpose(padded, [0, 2, 1, 3, 4])
    if kind in _NARROW:
        planes, filters, *bias = (
            operation.cast(each, TensorProto.FLOAT) if each else "" for each in (planes, filters, *bias)
        )
    total = ""
    for tap in range(weights[2]):
        begin, step = tap * windows.dilations[0], windows.strides[0]
        part = operation.slice(planes, 1, begin, begin + (windows.counts[0] - 1) * step + 1, step)
        convolved = operation.make(
            "Conv",
            operation.reshape(part, [-1, group, *windows.image[1:]]),
            operation.reshape(operation.slice(filters, 2, tap, tap + 1), [group, 1, *weights[3:]]),
            *(bias if tap == 0 else []),
            group=group,
            strides=windows.strides[1:],
            dilations=windows.dilations[1:],
            pads=[*windows.before[1:], *windows.after[1:]],
        )
        total = operation.make("Add", total, convolved) if total else convolved
    total = operation.reshape(total, [-1, windows.counts[0], group, *windows.counts[1:]])
    if kind in _NARROW:
        total = operation.cast(total, kind)
    return operation.finish("Transpose", total, perm=[0, 2, 1, 3, 4])


RULES = (
    Rule(
        "Conv",
        _spell_out,
        "IREE displaces such a window, and lacks such volumes",
        forms="open batches with one window along a dim; depthwise in volumes",
    ),
)
