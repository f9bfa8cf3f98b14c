"""Einsum without an explicit result: its labels are those that occur once, in alphabetical order; and products of all
rows of a tensor with open dims by a matrix, for which IREE takes the first of these dims to be one element."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule, UnknownType


def _spell_out(operation: Operation) -> bool:
    return _name_result(operation) or _multiply_rows(operation)


def _multiply_rows(operation: Operation) -> bool:
    terms, _, result = operation.attribute("equation").decode().replace(" ", "").partition("->")
    rows, _, matrix = terms.partition(",")
    is_plain = rows.isalpha() and matrix.isalpha() and len(set(rows)) == len(rows) and len(matrix) == 2
    if not is_plain or rows[-1] not in matrix or len(operation.inputs) != 2:
        return False
    kept = matrix.replace(rows[-1], "")
    try:
        is_open = operation.shape(0).count(-1) > 1
    except UnknownType:
        return False
    if not is_open or len(kept) != 1 or kept in rows or result != rows[:-1] + kept:
        return False
    weights = operation.inputs[1] if matrix[1] == kept else operation.transpose(operation.inputs[1], [1, 0])
    return operation.finish("MatMul", operation.inputs[0], weights)


def _name_result(operation: Operation) -> bool:
    equation = operation.attribute("equation").decode().replace(" ", "")
    if "->" in equation:
        return False
    labels = equation.replace("...", "").replace(",", "")
    once = sorted(label for label in set(labels) if labels.count(label) == 1)
    result = ("..." if "..." in equation else "") + "".join(once)
    operation.same(*operation.inputs, equation=f"{equation}->{result}")
    return True


RULES = (
    Rule(
        "Einsum",
        _spell_out,
        "IREE takes a missing result as a number, an open dim as one element",
        forms="without ->, open rows by a matrix",
    ),
)
