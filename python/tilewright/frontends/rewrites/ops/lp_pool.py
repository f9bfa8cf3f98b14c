"""LpPool with padding that follows from the image, or with dilations, as a convolution of powers with ones; and without
what lies behind the only window of an open batch."""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule
from tilewright.frontends.rewrites.windows import end_with_window, windows_of


def _convolve_powers(operation: Operation) -> bool:
    is_plain = operation.attribute("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")
    dilations = operation.attribute("dilations") or [1]
    is_plain = is_plain and set(dilations) == {1} and not operation.attribute("ceil_mode", 0)
    if is_plain and operation.opset >= 18:
        return end_with_window(operation)
    channels = operation.shape_of_sample(0)[1]
    windows, dtype, p = windows_of(operation), operation.dtype(0), operation.attribute("p", 2)
    x = operation.reshape(operation.inputs[0], [-1, 1, *windows.image])
    powers = operation.make("Pow", operation.make("Abs", x), operation.number(p, dtype))
    sums = operation.make(
        "Conv",
        powers,
        operation.constant(np.ones((1, 1, *windows.kernel), dtype)),
        strides=windows.strides,
        dilations=windows.dilations,
        pads=[*windows.before, *windows.after],
    )
    ends = operation.ints(*windows.counts)
    dims = len(windows.image)
    sums = operation.make(
        "Slice", sums, operation.ints(*[0] * dims), ends, operation.ints(*range(2, 2 + dims))
    )
    roots = operation.make("Pow", sums, operation.number(1 / p, dtype))
    return operation.give(operation.reshape(roots, [-1, channels, *windows.counts]))


RULES = (
    Rule(
        "LpPool",
        _convolve_powers,
        "IREE does not import it, or displaces the window",
        forms="opsets before 18, auto_pad SAME, dilations, ceil_mode, open batches of one window",
    ),
)
