"""MatMul of a vector and a tensor of more than two dims, by a matrix of one row or column."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _multiply_matrices(operation: Operation) -> bool:
    left, right = operation.rank(0), operation.rank(1)
    if min(left, right) != 1 or max(left, right) <= 2:
        return False
    axis = operation.ints(-2 if left == 1 else -1)
    operands = [
        operation.make("Unsqueeze", value, operation.ints(0 if index == 0 else 1)) if rank == 1 else value
        for index, (value, rank) in enumerate(zip(operation.inputs, (left, right), strict=True))
    ]
    return operation.finish("Squeeze", operation.make("MatMul", *operands), axis)


RULES = (
    Rule(
        "MatMul",
        _multiply_matrices,
        "IREE's importer does not support it",
        forms="a vector and a tensor of more than two dims",
    ),
)
