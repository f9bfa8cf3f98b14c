"""Computes a program's outputs in float64, and the errors of a system's outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, ValueInfoProto, helper
from tilewright.reference.oracle import float64_reference, relative_error

from benchmarks.arrays import Array
from benchmarks.repetition import feedback, graph_inputs


@dataclass(frozen=True)
class Expected:
    """An output in float64, with the scale of its error."""

    values: Array
    least_scale: float = 0.0
    """Smallest scale that the error is relative to; ‖values‖ if that is larger."""


def expected_outputs(model: ModelProto, inputs: Sequence[Array]) -> list[Expected]:
    """Returns the expected outputs of the workload itself."""
    return [Expected(values) for values in float64_reference(model, inputs)]


def expected_repetitions(
    model: ModelProto, inputs: Sequence[Array], counts: Sequence[int]
) -> dict[int, list[Expected]]:
    """Returns the expected outputs of `repeat(model, count)` for each count, except where a type would overflow.

    Errors are relative to at least the magnitude that an output has in the first repetition. The mean of a value that
    was normalised before is zero except for rounding, and if a workload adds 1 to a value that shrinks from one
    repetition to the next, the value is soon rounded away.
    """
    fed = feedback(model)
    names = [output.name for output in model.graph.output]
    current = dict(zip([value.name for value in graph_inputs(model)], inputs, strict=True))
    expected: dict[int, list[Expected]] = {count: [] for count in counts}
    values: list[Array] = []
    scales: list[float] = []
    is_settled = False
    for index in range(max(counts)):
        if not is_settled:
            last, values = values, float64_reference(model, list(current.values()))
            # This also holds without feedback: all repetitions then have the same inputs except for a negligible
            # addition.
            is_settled = not fed or (bool(last) and all(map(np.array_equal, last, values)))
            scales = scales or [float(np.linalg.norm(value.astype(np.float64))) for value in values]
            current |= {source: values[names.index(output)] for output, source in fed.items()}
        if not all(map(_is_held, values, model.graph.output)):
            return {count: outputs for count, outputs in expected.items() if count <= index}
        for count in counts:
            if index < count:
                is_last = index == count - 1
                expected[count] += [
                    Expected(value, scale)
                    for name, value, scale in zip(names, values, scales, strict=True)
                    if is_last or name not in fed
                ]
    return expected


def _is_held(values: Array, output: ValueInfoProto) -> bool:
    """True if the output's type can represent the values and their squares."""
    dtype = helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
    largest = float(np.abs(values).max(initial=0)) if np.issubdtype(values.dtype, np.floating) else 0.0
    if largest == 0.0:
        return True
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(limits.tiny) <= largest**2 <= float(limits.max)


def largest_error(outputs: Sequence[Array], expected: Sequence[Expected]) -> float:
    """Returns the largest `relative_error` of any output; infinity if their number is wrong."""
    if len(outputs) != len(expected):
        return math.inf
    return max(
        relative_error(y, one.values, least_scale=one.least_scale)
        for y, one in zip(outputs, expected, strict=True)
    )


def no_numbers(outputs: Sequence[Array], expected: Sequence[Expected]) -> str:
    """Returns the reason for an infinite error; "" if the error is finite."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, not {len(expected)}"
    for index, (y, one) in enumerate(zip(outputs, expected, strict=True)):
        if y.shape != one.values.shape:
            return f"output {index} has the shape {y.shape}, not {one.values.shape}"
        if math.isinf(relative_error(y, one.values)):
            return f"output {index} has NaN or infinities in other places than the result"
    return ""
