"""Einsum without an explicit result: its labels are those that occur once, in alphabetical order; and products of
operands with several open dims, which IREE merges wrongly, as sums of elementwise products, which IREE makes one
kernel of."""

from __future__ import annotations

import string
from dataclasses import dataclass

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import NARROW_FLOATS, Operation, Rule, UnknownType


def _spell_out(operation: Operation) -> bool:
    equation = _equation(operation)
    explicit = equation if "->" in equation else f"{equation}->{_implicit_result(equation)}"
    if _sum_products(operation, explicit):
        return True
    if explicit == equation:
        return False
    operation.same(*operation.inputs, equation=explicit)
    return True


def _implicit_result(equation: str) -> str:
    labels = equation.replace("...", "").replace(",", "")
    once = sorted(label for label in set(labels) if labels.count(label) == 1)
    return ("..." if "..." in equation else "") + "".join(once)


def _equation(operation: Operation) -> str:
    return str(operation.attribute("equation").decode()).replace(" ", "")


@dataclass(frozen=True)
class _Factor:
    """A tensor, and the labels of its dims."""

    value: str
    labels: str


def _sum_products(operation: Operation, equation: str) -> bool:
    operands, _, result = equation.partition("->")
    terms = operands.split(",")
    try:
        shapes = [operation.shape(index) for index in range(len(terms))]
    except UnknownType:
        return False
    if len(terms) == 1 or max(shape.count(-1) for shape in shapes) <= 1:
        return False
    *terms, result = _without_ellipses([*terms, result], [len(shape) for shape in shapes])
    product, *others = (
        _own_sums(operation, value, term, {*result}.union(*terms[:index], *terms[index + 1 :]))
        for index, (value, term) in enumerate(zip(operation.inputs, terms, strict=True))
    )
    while others:
        factor, *others = others
        needed = {*result}.union(*(other.labels for other in others))
        product = _summed_product(operation, product, factor, needed)
    turned = operation.transpose(product.value, [product.labels.index(label) for label in result])
    return operation.finish("Cast", turned, to=operation.kind(0))


def _without_ellipses(terms: list[str], ranks: list[int]) -> list[str]:
    """Gives the dims of ellipses labels, counted from the last dim; the last term is the result, which has all."""
    counts = [rank - len(term.replace("...", "")) for rank, term in zip(ranks, terms, strict=False)]
    labels = "".join(sorted(set(string.ascii_letters).difference(*terms)))[: max(counts)]
    return [
        term.replace("...", labels[len(labels) - count :])
        for term, count in zip(terms, [*counts, len(labels)], strict=True)
    ]


def _own_sums(operation: Operation, value: str, term: str, needed: set[str]) -> _Factor:
    """Takes the diagonals of an operand, and sums along the labels that it has alone; narrow floats become f32."""
    if operation.kind(0) in NARROW_FLOATS:
        value = operation.cast(value, TensorProto.FLOAT)
    kept = "".join(label for label in dict.fromkeys(term) if label in needed)
    return _Factor(
        value if kept == term else operation.make("Einsum", value, equation=f"{term}->{kept}"), kept
    )


def _summed_product(operation: Operation, left: _Factor, right: _Factor, needed: set[str]) -> _Factor:
    labels = "".join(dict.fromkeys(left.labels + right.labels))
    product = operation.make("Mul", *(_aligned(operation, factor, labels) for factor in (left, right)))
    summed = [axis for axis, label in enumerate(labels) if label not in needed]
    if summed:
        product = operation.reduce("Sum", product, summed, keepdims=False)
    return _Factor(product, "".join(label for label in labels if label in needed))


def _aligned(operation: Operation, factor: _Factor, labels: str) -> str:
    """Puts the dims of a factor in the order of the labels, with dims of one element for those that it lacks."""
    own = [label for label in labels if label in factor.labels]
    turned = operation.transpose(factor.value, [factor.labels.index(label) for label in own])
    lacking = [axis for axis, label in enumerate(labels) if label not in own]
    return operation.make("Unsqueeze", turned, operation.ints(*lacking)) if lacking else turned


RULES = (
    Rule(
        "Einsum",
        _spell_out,
        "IREE takes a missing result as a number, and merges open dims wrongly",
        forms="without ->, products of open dims",
    ),
)
