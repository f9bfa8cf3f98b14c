"""Judges outputs of a program of an ONNX model: which differ from float64 by more than rounding explains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from tilewright.reference.oracle import (
    Array,
    float64_reference,
    model_tolerance,
    ort_reference,
    relative_error,
)
from tilewright.reference.rounded import rounded_reference

MORE_THAN_ROUNDING = 4.0
"""A result may have this many times the error of one rounding per operator."""

_RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)


@dataclass(frozen=True)
class Difference:
    """An output that is wrong: its largest error, and the element that is farthest from the reference."""

    output: str
    error: float
    """The larger of the errors of the whole output (by norms) and of one element beside the largest; infinity if
    shapes, NaN or infinities differ."""
    allowed: float
    detail: str

    def __str__(self) -> str:
        return f"output '{self.output}' is off by {self.error:.2g} where {self.allowed:.2g} is allowed ({self.detail})"


def refuse_random(model: ModelProto) -> str | None:
    """Returns why results of a model cannot be compared; None if they can."""
    found = next((node for node in model.graph.node if node.op_type in _RANDOM), None)
    return f"{found.op_type} '{found.name}' draws random numbers" if found else None


class Judge:
    """The references of a model on some inputs, each computed when it is needed."""

    def __init__(self, model: ModelProto, inputs: Sequence[Array]) -> None:
        self.model, self.inputs = model, list(inputs)

    @cached_property
    def expected(self) -> list[Array]:
        """The outputs in float64; integers and booleans keep their types."""
        return float64_reference(self.model, self.inputs)

    def differences(self, outputs: Sequence[Array]) -> list[Difference]:
        """Returns the outputs that are wrong.

        An output is right if its error is within the tolerance of the narrowest type of the model, within a small
        multiple of the error that one rounding per op causes, or if it agrees so with ONNX Runtime, whose rounding may
        send a comparison or a quantisation another way than float64 does.
        """
        found = []
        for index, (value, y) in enumerate(zip(self.model.graph.output, outputs, strict=True)):
            error = _error(y, self.expected[index])
            if error <= self._tolerance:
                continue
            allowed = max(self._tolerance, MORE_THAN_ROUNDING * self._error_of(self._rounded, index))
            if error <= allowed or self._agrees_with_peer(y, index):
                continue
            found.append(Difference(value.name, error, allowed, _detail(y, self.expected[index])))
        return found

    @cached_property
    def _tolerance(self) -> float:
        return model_tolerance(self.model)

    @cached_property
    def _rounded(self) -> list[Array] | None:
        return _attempt(lambda: rounded_reference(self.model, self.inputs))

    @cached_property
    def _peer(self) -> list[Array] | None:
        return _attempt(lambda: ort_reference(self.model, self.inputs))

    def _error_of(self, outputs: list[Array] | None, index: int) -> float:
        return 0.0 if outputs is None else _error(outputs[index], self.expected[index])

    def _agrees_with_peer(self, y: Array, index: int) -> bool:
        if self._peer is None:
            return False
        return _error(y, self._peer[index].astype(np.float64)) <= self._tolerance


def _attempt(compute: Callable[[], list[Array]]) -> list[Array] | None:
    """Returns a reference that only widens what is allowed; None if its evaluator fails, whose errors are many."""
    try:
        return compute()
    except Exception:
        return None


def _error(y: Array, y64: Array) -> float:
    """Returns the error of an output: that of the whole by norms, or of one element beside the largest."""
    whole = relative_error(y, y64)
    if not np.isfinite(whole) or not y.size:
        return whole
    wide, exact = y.astype(np.float64), y64.astype(np.float64)
    finite = np.isfinite(exact)
    worst = float(np.abs(wide[finite] - exact[finite]).max(initial=0.0))
    largest = float(np.abs(exact[finite]).max(initial=0.0))
    return max(whole, worst / largest if largest else worst)


def _detail(y: Array, y64: Array) -> str:
    if y.shape != y64.shape:
        return f"its shape is {list(y.shape)} instead of {list(y64.shape)}"
    wide, exact = y.astype(np.float64), y64.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.abs(wide - exact)
    same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
    distance = np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
    at = tuple(int(i) for i in np.unravel_index(int(distance.argmax()), y.shape))
    return f"at {list(at)}: {wide[at]:.7g} instead of {exact[at]:.7g}"


def onnx_model(model: Any) -> ModelProto | None:
    """Returns a model as ONNX, with its external data; None if it is of another kind."""
    if isinstance(model, ModelProto):
        return model
    if str(model).endswith(".onnx") and not isinstance(model, bytes):
        return onnx.load(str(model))
    return None
