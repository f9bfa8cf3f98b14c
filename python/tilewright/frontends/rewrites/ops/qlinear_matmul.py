"""QLinearMatMul of more than two dims, as a product of differences."""

from __future__ import annotations

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule


def _multiply_batches(operation: Operation) -> bool:
    """Multiplies operands of more than two dims: the product of the differences, which is exact below 2^24, times the
    scales."""
    if max(len(operation.shape(0)), len(operation.shape(3))) <= 2:
        return False
    left, _, _, right, right_scale, right_zero, scale, zero = operation.inputs

    def rows(index: int) -> str:
        value = operation.inputs[index]
        return operation.reshape(value, [-1, 1]) if len(operation.shape(index)) == 1 else value

    sums = operation.make(
        "MatMul",
        operation.cast(operation.difference(left, rows(2)), TensorProto.FLOAT),
        operation.cast(operation.difference(right, right_zero), TensorProto.FLOAT),
    )
    for factor in (rows(1), right_scale):
        sums = operation.make("Mul", sums, operation.cast(factor, TensorProto.FLOAT))
    step = operation.cast(operation.reshape(scale, []), TensorProto.FLOAT)
    operation.finish("QuantizeLinear", sums, step, operation.reshape(zero, []))
    return True


RULES = (
    Rule(
        "QLinearMatMul", _multiply_batches, "IREE supports no more than two dims", forms="more than two dims"
    ),
)
