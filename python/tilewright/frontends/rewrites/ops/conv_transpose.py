"""ConvTranspose with padding that differs between sides or follows from the result, cut out of the whole result.

IREE's compiler folds a Pad with zeros in front of it into the step that sets elements `stride` apart, and forgets the
stride. Zeros of the other sign are not folded, and sums that begin with zero are the same.

The whole result, without padding, has (n - 1) · stride + (k - 1) · dilation + 1 elements along a dim. Padding takes
elements off both ends, and `output_padding` adds some, which only the bias reaches, at the end.
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from tilewright.frontends.rewrites.rule import Operation, Rule


def _spell_out(operation: Operation) -> bool:
    image = _with_other_zeros(operation)
    if _cut_out(operation, image):
        return True
    if image == operation.inputs[0]:
        return False
    operation.same(image, *operation.inputs[1:])
    return True


def _with_other_zeros(operation: Operation) -> str:
    """Returns the image, or one padded with zeros of the other sign if the compiler would displace it."""
    pad = operation.maker(0)
    if pad is None or pad.op_type != "Pad" or max(operation.attribute("strides", [1]), default=1) == 1:
        return operation.inputs[0]
    mode = next((helper.get_attribute_value(one) for one in pad.attribute if one.name == "mode"), b"constant")
    if mode != b"constant":
        return operation.inputs[0]
    if len(pad.input) > 2 and pad.input[2] and not _is_zero(operation, pad.input[2]):
        return operation.inputs[0]
    zero = operation.number(-0.0, operation.dtype(0))
    return operation.make("Pad", *pad.input[:2], zero, *pad.input[3:])


def _is_zero(operation: Operation, name: str) -> bool:
    if (value := operation.value_of(name)) is not None:
        return not value.any()
    maker = operation.maker_of(name)
    if maker is None or maker.op_type != "Constant":
        return False
    return [one.f for one in maker.attribute if one.name == "value_float"] == [0.0]


def _cut_out(operation: Operation, image: str) -> bool:
    dims = operation.rank(0) - 2
    pads = operation.attribute("pads", [0] * 2 * dims)
    auto = operation.attribute("auto_pad", b"NOTSET").decode()
    declared = operation.attribute("output_shape")
    group = operation.attribute("group", 1)
    is_even = pads[:dims] == pads[dims:] and min(pads, default=0) >= 0
    if is_even and auto in ("NOTSET", "VALID") and declared is None and group == 1:
        return False
    strides = operation.attribute("strides", [1] * dims)
    dilations = operation.attribute("dilations", [1] * dims)
    extra = operation.attribute("output_padding", [0] * dims)
    sizes, kernel = operation.shape_of_sample(0)[2:], operation.static_shape(1)[2:]
    whole = [
        (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(sizes, strides, kernel, dilations, strict=True)
    ]
    if declared is not None or auto.startswith("SAME"):
        wanted = (
            declared[-dims:] if declared is not None else [n * s for n, s in zip(sizes, strides, strict=True)]
        )
        totals = [w + e - o for w, e, o in zip(whole, extra, wanted, strict=True)]
        halves = [total // 2 for total in totals]
        others = [total - half for total, half in zip(totals, halves, strict=True)]
        pads = [*halves, *others] if auto == "SAME_UPPER" else [*others, *halves]
    if group > 1:
        convolved = _convolve_groups(operation, strides, dilations, group)
    else:
        convolved = operation.make(
            "ConvTranspose", image, operation.inputs[1], strides=strides, dilations=dilations
        )
    sides = [-pad for pad in pads[:dims]], [e - pad for e, pad in zip(extra, pads[dims:], strict=True)]
    added = [[max(0, side) for side in part] for part in sides]
    if any(added[0]) or any(added[1]):
        around = operation.ints(0, 0, *added[0], 0, 0, *added[1])
        convolved = operation.make("Pad", convolved, around, operation.number(-0.0, operation.dtype(0)))
    begins = [-min(0, side) for side in sides[0]]
    ends = [
        before + size + min(0, side)
        for before, size, side in zip(
            added[0],
            [size + max(0, after) for size, after in zip(whole, sides[1], strict=True)],
            sides[1],
            strict=True,
        )
    ]
    axes = operation.ints(*range(2, 2 + dims))
    result = operation.make("Slice", convolved, operation.ints(*begins), operation.ints(*ends), axes)
    if operation.has(2):
        return operation.finish("Add", result, operation.reshape(operation.inputs[2], [1, -1] + [1] * dims))
    return operation.give(result)


def _convolve_groups(operation: Operation, strides: list[int], dilations: list[int], group: int) -> str:
    """Makes the whole result as a convolution, by reversed filters, of the image with zeros between its elements."""
    batch, channels, *image = operation.shape_of_sample(0)
    _, results, *kernel = operation.static_shape(1)
    dims = len(image)
    spread = operation.inputs[0]
    if any(stride > 1 for stride in strides):
        apart = [length for size in image for length in (size, 1)]
        spread = operation.reshape(spread, [batch, channels, *apart])
        after = [length for stride in strides for length in (0, stride - 1)]
        spread = operation.make("Pad", spread, operation.ints(*[0] * (4 + 2 * dims), *after))
        wide = [size * stride for size, stride in zip(image, strides, strict=True)]
        spread = operation.reshape(spread, [batch, channels, *wide])
        ends = [size - stride + 1 for size, stride in zip(wide, strides, strict=True)]
        spread = operation.make(
            "Slice",
            spread,
            operation.ints(*[0] * dims),
            operation.ints(*ends),
            operation.ints(*range(2, 2 + dims)),
        )
    filters = operation.reshape(operation.inputs[1], [group, channels // group, results, *kernel])
    filters = operation.transpose(filters, [0, 2, 1, *range(3, 3 + dims)])
    filters = operation.reshape(filters, [group * results, channels // group, *kernel])
    for axis, size in enumerate(kernel, start=2):
        if size > 1:
            backwards = operation.constant(np.arange(size - 1, -1, -1))
            filters = operation.make("Gather", filters, backwards, axis=axis)
    around = [dilation * (size - 1) for dilation, size in zip(dilations, kernel, strict=True)]
    return operation.make("Conv", spread, filters, group=group, dilations=dilations, pads=around * 2)


RULES = (
    Rule(
        "ConvTranspose",
        _spell_out,
        "IREE's importer supports one group, and the same padding at both ends, only; its compiler displaces an image "
        "behind a Pad with zeros",
        forms="groups, auto_pad SAME, output_shape, pads that differ between sides, and strides behind a Pad",
    ),
)
