"""Reference results of a model of single operators: each operator by itself, in float64 where that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from tilewright.reference.oracle import float64_reference, ort_reference

from benchmarks.workloads.operators.model import operands

Array = np.ndarray[Any, Any]


class NoReferenceError(RuntimeError):
    """No reference evaluates an operator."""


def references(model: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    """Returns the outputs of a model in order.

    An operator whose bits or definition tie it to its own type, such as BitCast, is computed in that type.
    """
    named = dict(zip((value.name for value in model.graph.input), inputs, strict=True))
    found: dict[str, Array] = {}
    for part in _parts(model):
        arrays = [named[value.name] for value in part.graph.input]
        names = [value.name for value in part.graph.output]
        found |= dict(zip(names, _computed(part, arrays), strict=True))
    return [found[value.name] for value in model.graph.output]


def _computed(part: ModelProto, inputs: Sequence[Array]) -> list[Array]:
    failures = []
    for evaluate in (float64_reference, ort_reference, _in_own_types):
        try:
            return [np.asarray(result) for result in evaluate(part, inputs)]
        except Exception as error:  # each evaluator lacks other operators, and says so with any error
            failures.append(f"{type(error).__name__}: {error}")
    raise NoReferenceError(f"{part.graph.output[0].name} has no reference: {'; '.join(failures)}")


def _in_own_types(part: ModelProto, inputs: Sequence[Array]) -> Any:
    feeds = dict(zip((value.name for value in part.graph.input), inputs, strict=True))
    return ReferenceEvaluator(part).run(None, feeds)


def _parts(model: ModelProto) -> Iterator[ModelProto]:
    """Yields a model for each operator that has outputs, with the nodes that prepare its operands."""
    outputs = {value.name: value for value in model.graph.output}
    for last in model.graph.node:
        if outputs.keys().isdisjoint(last.output):
            continue
        used = set(last.output)
        nodes: list[onnx.NodeProto] = []
        for node in reversed(model.graph.node):
            if used.intersection(node.output):
                nodes.insert(0, node)
                used.update(operands(node))
        part = onnx.ModelProto()
        part.CopyFrom(model)
        graph = onnx.helper.make_graph(
            nodes,
            last.name,
            [value for value in model.graph.input if value.name in used],
            [outputs[name] for name in last.output if name in outputs],
            [tensor for tensor in model.graph.initializer if tensor.name in used],
        )
        part.graph.CopyFrom(graph)
        yield part
