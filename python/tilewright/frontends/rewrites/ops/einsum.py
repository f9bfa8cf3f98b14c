"""Einsum without an explicit result: its labels are those that occur once, in alphabetical order."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


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
        "Einsum", _name_result, "IREE takes a missing result as a number", forms="without a result after ->"
    ),
)
