"""Pads of convolutions of bytes as an op of their own, where they differ between the sides of an image."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation
from tilewright.frontends.rewrites.windows import windows_of


def pad_first(operation: Operation, *, weights: int, zero: int) -> bool:
    """Pads the image of a convolution with its zero point, and convolves without pads, if the pads before and behind
    the image differ. `weights` and `zero` are the inputs with the weights and with the zero point of the image."""
    dims = operation.rank(0) - 2
    pads = operation.attribute("pads") or [0] * 2 * dims
    is_automatic = operation.attribute("auto_pad", b"NOTSET").startswith(b"SAME")
    if not is_automatic and pads[:dims] == pads[dims:]:
        return False
    if is_automatic:
        windows = windows_of(operation, kernel=operation.static_shape(weights)[2:])
        pads = [*windows.before, *windows.after]
    image, *others = operation.inputs
    sides = operation.ints(0, 0, *pads[:dims], 0, 0, *pads[dims:])
    value = operation.reshape(operation.inputs[zero], []) if operation.has(zero) else None
    padded = operation.make("Pad", image, sides, *([value] if value else []))
    operation.same(padded, *others, pads=[0] * 2 * dims, auto_pad=None)
    return True
