"""Hardmax of opsets before 13, which ran over all dims from the axis on; ONNX's converter leaves it as it is."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _flatten(operation: Operation) -> bool:
    if operation.opset >= 13:
        return False
    x = operation.inputs[0]
    flat = operation.make("Flatten", x, axis=operation.attribute("axis", 1))
    chosen = operation.make("Hardmax", flat, axis=1)
    return operation.finish("Reshape", chosen, operation.make("Shape", x))


RULES = (
    Rule(
        "Hardmax",
        _flatten,
        "ONNX's converter does not raise its opset",
        forms="opsets before 13",
        needs_types=False,
    ),
)
