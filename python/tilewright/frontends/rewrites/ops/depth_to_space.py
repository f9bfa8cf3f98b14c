"""DepthToSpace and SpaceToDepth with the channel outermost, as reshapes and a transposition."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _spread_channels(operation: Operation) -> bool:
    """Splits the channels, with the channel outermost and then the two dims of a block, and merges each of these with
    a dim of the image."""
    if operation.attribute("mode", b"DCR") != b"CRD":
        return False
    side = operation.attribute("blocksize")
    batch, channels, rows, columns = operation.shape_of_sample(0)
    left = channels // side**2
    parted = operation.reshape(operation.inputs[0], [batch, left, side, side, rows, columns])
    turned = operation.make("Transpose", parted, perm=[0, 1, 4, 2, 5, 3])
    operation.finish("Identity", operation.reshape(turned, [batch, left, rows * side, columns * side]))
    return True


def _gather_channels(operation: Operation) -> bool:
    """Does the inverse of `_spread_channels`."""
    if operation.attribute("mode", b"DCR") != b"CRD":
        return False
    side = operation.attribute("blocksize")
    batch, channels, rows, columns = operation.shape_of_sample(0)
    rows, columns = rows // side, columns // side
    parted = operation.reshape(operation.inputs[0], [batch, channels, rows, side, columns, side])
    turned = operation.make("Transpose", parted, perm=[0, 1, 3, 5, 2, 4])
    operation.finish("Identity", operation.reshape(turned, [batch, channels * side**2, rows, columns]))
    return True


RULES = (
    Rule("DepthToSpace", _spread_channels, "IREE splits channels as if they were blocks", forms="mode CRD"),
    Rule("SpaceToDepth", _gather_channels, "IREE splits channels as if they were blocks", forms="mode CRD"),
)
