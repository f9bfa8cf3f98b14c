"""NonMaxSuppression of several batches or classes, one after another, because IREE's importer takes one of each."""

from __future__ import annotations

import numpy as np

from tilewright.frontends.rewrites.rule import Operation, Rule

_MOST_PARTS = 64
"""Most pairs of batch and class, each of which is a loop of its own."""


def _suppress_each(operation: Operation) -> bool:
    batches, classes, _ = operation.static_shape(1)
    if batches * classes == 1:
        return False
    if batches * classes > _MOST_PARTS:
        operation.refuse(
            f"{batches} batches of {classes} classes are not supported; at most {_MOST_PARTS} pairs are"
        )
    found = []
    for batch in range(batches):
        boxes = operation.slice(operation.inputs[0], 0, batch, batch + 1)
        for number in range(classes):
            scores = operation.slice(operation.inputs[1], 0, batch, batch + 1)
            scores = operation.slice(scores, 1, number, number + 1)
            name = f"{operation.outputs[0]}.of_{batch}_{number}"
            operation.same(boxes, scores, *operation.inputs[2:], outputs=[name])
            found.append(operation.make("Add", name, operation.constant(np.array([[batch, number, 0]]))))
    return operation.give_declared(operation.make("Concat", *found, axis=0))


RULES = (
    Rule(
        "NonMaxSuppression",
        _suppress_each,
        "IREE fails on several batches or classes",
        forms="several batches or classes",
    ),
)
