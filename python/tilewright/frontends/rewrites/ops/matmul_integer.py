"""MatMulInteger with a zero point for each row, as a product of differences."""

from __future__ import annotations

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule


def _take_off_zero_points_of_rows(operation: Operation) -> bool:
    """Subtracts the zero points of both operands in i32, and multiplies them; the product wraps as ONNX's does."""
    if not operation.varies(2):
        return False
    left, right, rows, *others = operation.inputs
    if len(operation.shape(2)) == 1:
        rows = operation.reshape(rows, [-1, 1])
    left = operation.difference(left, rows)
    has_zero_point = bool(others and others[0])
    right = (
        operation.difference(right, others[0]) if has_zero_point else operation.cast(right, TensorProto.INT32)
    )
    operation.finish("MatMul", left, right)
    return True


RULES = (
    Rule(
        "MatMulInteger",
        _take_off_zero_points_of_rows,
        "IREE takes a zero point for each row as one for each column",
        forms="a zero point for each row",
    ),
)
