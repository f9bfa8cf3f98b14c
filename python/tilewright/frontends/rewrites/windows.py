"""The geometry of windows: padding, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tilewright.frontends.rewrites.rule import Operation, UnknownType


@dataclass(frozen=True)
class Windows:
    """Where windows begin and how they reach, for each dim of an image."""

    image: list[int]
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    """Padding before the image."""
    after: list[int]
    """Padding behind the image; with `ceil_mode` also what the last window reaches beyond that."""
    counts: list[int]
    """Number of windows."""


def windows_of(operation: Operation, *, may_ceil: bool = True, kernel: list[int] | None = None) -> Windows:
    """Returns the windows of a pooling op, or of a convolution with this `kernel`.

    The image must have known lengths; batch and channels need not. `may_ceil` is False for the windows that there are
    without `ceil_mode`.
    """
    image = operation.shape(0)[2:]
    if -1 in image:
        operation.refuse(
            "the lengths of its image are not known",
            "fix the model's open dims with dims=, or declare them in the graph's value_info",
        )
    dims = len(image)
    kernel = kernel or operation.attribute("kernel_shape")
    strides = operation.attribute("strides") or [1] * dims
    dilations = operation.attribute("dilations") or [1] * dims
    pads = operation.attribute("pads") or [0] * 2 * dims
    auto = operation.attribute("auto_pad", b"NOTSET").decode()
    is_ceil = may_ceil and bool(operation.attribute("ceil_mode", 0)) and auto == "NOTSET"
    before, after, counts = [], [], []
    for i, size in enumerate(image):
        reach = dilations[i] * (kernel[i] - 1) + 1
        if auto.startswith("SAME"):
            count = -(-size // strides[i])
            total = max(0, (count - 1) * strides[i] + reach - size)
            front = total // 2 if auto == "SAME_UPPER" else total - total // 2
            back = total - front
        else:
            front, back = (0, 0) if auto == "VALID" else (pads[i], pads[i + dims])
            left = size + front + back - reach
            count = (-(-left // strides[i]) if is_ceil else left // strides[i]) + 1
            if is_ceil and (count - 1) * strides[i] >= size + front:
                count -= 1  # no window begins in the padding behind the image
            back = max(back, (count - 1) * strides[i] + reach - size - front)
        before.append(front)
        after.append(back)
        counts.append(count)
    return Windows(image, list(kernel), list(strides), list(dilations), before, after, counts)


class Padded(NamedTuple):
    """An image and its padding."""

    image: str
    before: list[int]
    after: list[int]

    @property
    def is_even(self) -> bool:
        return self.before == self.after


def padded_to_windows(operation: Operation, *, weights: int | None = None) -> Padded | None:
    """Returns the image of an open batch without what lies behind the only window along a dim.

    IREE's compiler displaces such a window. `weights` is the input with a convolution's weights. Returns None if the
    batch is not open, or if `ceil_mode` adds windows.
    """
    try:
        shape = operation.shape(0)
        kernel = None if weights is None else operation.static_shape(weights)[2:]
    except UnknownType:
        return None
    if -1 not in shape[:2] or -1 in shape[2:]:
        return None
    windows = windows_of(operation, kernel=kernel, may_ceil=False)
    if windows.counts != windows_of(operation, kernel=kernel).counts:
        return None
    image, before, after = operation.inputs[0], [], []
    for dim, size in enumerate(windows.image):
        front, back = windows.before[dim], windows.after[dim]
        if windows.counts[dim] == 1:
            reach = (windows.kernel[dim] - 1) * windows.dilations[dim] + 1
            front = min(front, reach)
            back = reach - size - front
            if back < 0:
                image = operation.slice(image, 2 + dim, 0, size + back)
        before.append(front)
        after.append(max(0, back))
    return Padded(image, before, after)


def end_with_window(operation: Operation, *, weights: int | None = None) -> bool:
    """Makes the op without what lies behind the only window along a dim (see above)."""
    padded = padded_to_windows(operation, weights=weights)
    return padded is not None and pad_to_windows(operation, padded)


def pad_to_windows(operation: Operation, padded: Padded) -> bool:
    """Makes the op with this image and padding; returns False if they are its own."""
    pads = [*padded.before, *padded.after]
    if padded.image == operation.inputs[0] and pads == operation.attribute("pads", [0] * len(pads)):
        return False
    operation.same(padded.image, *operation.inputs[1:], pads=pads, auto_pad=None, ceil_mode=None)
    return True


def drop_ceil_mode(operation: Operation, windows: Windows) -> bool:
    """Makes the op without `ceil_mode` if it has the same windows, as most models with `ceil_mode` do."""
    if windows_of(operation, may_ceil=False).counts != windows.counts:
        return False
    operation.same(*operation.inputs, ceil_mode=0)
    return True
