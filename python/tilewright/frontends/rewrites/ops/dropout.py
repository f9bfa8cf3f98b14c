"""Dropout of nothing: in inference, or with a ratio of zero."""

from __future__ import annotations

from onnx import TensorProto

from tilewright.frontends.rewrites.rule import Operation, Rule


def _keep_all(operation: Operation) -> bool:
    is_training, ratio = operation.value(2), operation.value(1)
    if operation.has(2) and (is_training is None or is_training.any()):
        is_zero = ratio is not None and not ratio.any()
        if not is_zero:
            operation.refuse("dropping random elements is not supported", "export the model for inference")
    if operation.wants(1):
        # True for every element, whatever the shape, which may be open.
        kept = operation.cast(operation.inputs[0], TensorProto.BOOL)
        operation.finish("Or", kept, operation.make("Not", kept), output=1)
    return operation.give(operation.inputs[0])


RULES = (Rule("Dropout", _keep_all, "IREE drops elements at random, or fails"),)
