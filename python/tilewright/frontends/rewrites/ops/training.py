"""The optimisers of ONNX's preview of training: Adagrad, Adam and Momentum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import UNSUPPORTED, Operation, Rule

_DOMAIN = "ai.onnx.preview.training"


def _step_of(operation: Operation) -> str:
    """Makes the number of the step, in the type of the weights."""
    return operation.cast(operation.inputs[1], operation.kind(2))


class _Arithmetic:
    """Ops on values and numbers of the type of the weights."""

    def __init__(self, operation: Operation) -> None:
        self._operation, self._dtype = operation, operation.dtype(2)

    def number(self, value: float) -> str:
        return self._operation.number(value, self._dtype)

    def scale(self, value: str, factor: float) -> str:
        return self._operation.make("Mul", value, self.number(factor))

    def blend(self, old: str, factor: float, new: str, share: float) -> str:
        return self._operation.make("Add", self.scale(old, factor), self.scale(new, share))

    def regularised(self, gradient: str, weights: str) -> str:
        """Makes the gradient plus that of the squared norm of the weights."""
        norm = self._operation.attribute("norm_coefficient", 0.0)
        return self._operation.make("Add", self.scale(weights, norm), gradient) if norm else gradient


def _tensors(operation: Operation, kinds: int) -> Sequence[Sequence[str]]:
    """Returns the inputs of each weight: itself, its gradient and its states, `kinds` in all."""
    rest = operation.inputs[2:]
    count = len(rest) // kinds
    return [rest[index::count] for index in range(count)]


def _adagrad(operation: Operation) -> bool:
    make, ops = operation.make, _Arithmetic(operation)
    decay, one = operation.attribute("decay_factor", 0.0), ops.number(1)
    slowed = make("Add", one, ops.scale(_step_of(operation), decay))
    rate = make("Div", operation.cast(operation.inputs[0], operation.kind(2)), slowed)
    parts = _tensors(operation, 3)
    for index, (weights, gradient, squares) in enumerate(parts):
        regular = ops.regularised(gradient, weights)
        total = make("Add", squares, make("Mul", regular, regular))
        root = make("Add", make("Sqrt", total), ops.number(operation.attribute("epsilon", 1e-6)))
        change = make("Div", make("Mul", rate, regular), root)
        operation.finish("Sub", weights, change, output=index)
        operation.give(total, len(parts) + index)
    return True


def _adam(operation: Operation) -> bool:
    make, ops = operation.make, _Arithmetic(operation)
    alpha, beta = operation.attribute("alpha", 0.9), operation.attribute("beta", 0.999)
    rate, step = operation.cast(operation.inputs[0], operation.kind(2)), _step_of(operation)
    one, zero = ops.number(1), operation.constant(np.int64(0))
    corrected = [make("Sub", one, make("Pow", ops.number(number), step)) for number in (alpha, beta)]
    is_later = make("Greater", operation.cast(operation.inputs[1], TensorProto.INT64), zero)
    rate = make(
        "Where", is_later, make("Div", make("Mul", rate, make("Sqrt", corrected[1])), corrected[0]), rate
    )
    parts = _tensors(operation, 4)
    for index, (weights, gradient, mean, squares) in enumerate(parts):
        regular = ops.regularised(gradient, weights)
        mean = ops.blend(mean, alpha, regular, 1 - alpha)
        squares = ops.blend(squares, beta, make("Mul", regular, regular), 1 - beta)
        root = make("Add", make("Sqrt", squares), ops.number(operation.attribute("epsilon", 1e-6)))
        moved = make("Sub", weights, make("Div", make("Mul", rate, mean), root))
        after = operation.attribute("norm_coefficient_post", 0.0)
        operation.give(ops.scale(moved, 1 - after) if after else moved, index)
        operation.give(mean, len(parts) + index)
        operation.give(squares, 2 * len(parts) + index)
    return True


def _momentum(operation: Operation) -> bool:
    make, ops = operation.make, _Arithmetic(operation)
    alpha, beta = operation.attribute("alpha"), operation.attribute("beta")
    rate = operation.cast(operation.inputs[0], operation.kind(2))
    is_later = make(
        "Greater", operation.cast(operation.inputs[1], TensorProto.INT64), operation.constant(np.int64(0))
    )
    share = make("Where", is_later, ops.number(beta), ops.number(1))
    parts = _tensors(operation, 3)
    for index, (weights, gradient, momentum) in enumerate(parts):
        regular = ops.regularised(gradient, weights)
        velocity = make("Add", ops.scale(momentum, alpha), make("Mul", share, regular))
        change = velocity
        if operation.attribute("mode") == b"nesterov":
            change = make("Add", regular, ops.scale(velocity, alpha))
        operation.finish("Sub", weights, make("Mul", rate, change), output=index)
        operation.give(velocity, len(parts) + index)
    return True


RULES = (
    Rule("Adagrad", _adagrad, UNSUPPORTED, domain=_DOMAIN),
    Rule("Adam", _adam, UNSUPPORTED, domain=_DOMAIN),
    Rule("Momentum", _momentum, UNSUPPORTED, domain=_DOMAIN),
)
