"""Softsign, which IREE's importer knows from opset 22 on only."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule


def _divide(operation: Operation) -> bool:
    x = operation.inputs[0]
    size = operation.make("Add", operation.make("Abs", x), operation.number(1, operation.dtype(0)))
    return operation.finish("Div", x, size)


RULES = (Rule("Softsign", _divide, "IREE's importer knows it from opset 22 on only"),)
