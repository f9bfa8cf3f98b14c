"""Pads of convolutions of bytes as an op of their own, where they differ between the sides of an image, and the only
window of an open batch without what lies behind it."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation
from tilewright.frontends.rewrites.windows import Padded, pad_to_windows, padded_to_windows, windows_of


def pad_first(operation: Operation, *, weights: int, zero: int) -> bool:
    """Pads the image of a convolution with its zero point, and convolves without pads, if the pads before and behind
    the image differ, once what lies behind the only window of an open batch is cut off. `weights` and `zero` are the
    inputs with the weights and with the zero point of the image."""
    if padded := padded_to_windows(operation, weights=weights):
        return pad_to_windows(operation, padded) if padded.is_even else _pad(operation, padded, zero=zero)
    dims = operation.rank(0) - 2
    pads = operation.attribute("pads") or [0] * 2 * dims
    is_automatic = operation.attribute("auto_pad", b"NOTSET").startswith(b"SAME")
    if not is_automatic and pads[:dims] == pads[dims:]:
        return False
    if is_automatic:
        windows = windows_of(operation, kernel=operation.static_shape(weights)[2:])
        pads = [*windows.before, *windows.after]
    return _pad(operation, Padded(operation.inputs[0], pads[:dims], pads[dims:]), zero=zero)


def _pad(operation: Operation, padded: Padded, *, zero: int) -> bool:
    image, before, after = padded
    sides = operation.ints(0, 0, *before, 0, 0, *after)
    value = operation.reshape(operation.inputs[zero], []) if operation.has(zero) else None
    image = operation.make("Pad", image, sides, *([value] if value else []))
    operation.same(image, *operation.inputs[1:], pads=None, auto_pad=None)
    return True
