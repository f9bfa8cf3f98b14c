"""Windows of an ONNX model: some of its ops as a model of their own, whose inputs are values of the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.reference.oracle import Array, ort_reference

_MOST_CONSTANT_ELEMENTS = 64
"""Most elements of an integer that a window holds as a constant: shapes and axes have fewer, and must be known when a
model is compiled."""


def values_of(model: ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Returns every tensor that a model computes, by name, in its own type.

    ONNX Runtime computes them, or onnx's evaluator for a model that it does not take. Raises their errors.
    """
    named = [name for node in model.graph.node for name in node.output if name]
    probe = ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in named)
    order = [value.name for value in model.graph.input if value.name in inputs]
    try:
        results: Any = dict(zip(named, ort_reference(probe, [inputs[name] for name in order]), strict=True))
    except Exception:  # of many kinds
        results = ReferenceEvaluator(model).run(None, dict(inputs), intermediate=True)
    arrays = {name: value for name, value in results.items() if isinstance(value, np.ndarray)}
    return {**arrays, **inputs}


class Windows:
    """Makes windows of a model with the values that it computes for some inputs."""

    def __init__(self, model: ModelProto, values: Mapping[str, Array], inputs: Sequence[str]) -> None:
        self._model, self._values = model, values
        self._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        self._inputs = {value.name: value for value in model.graph.input if value.name in inputs}
        self._constants = {
            node.output[0]: node
            for node in model.graph.node
            if node.op_type == "Constant" and not node.domain
        }
        self.nodes = [node for node in model.graph.node if node.output[0] not in self._constants]
        """The ops of the model, in order; constants belong to no window and to all."""
        self._producers = {name: i for i, node in enumerate(self.nodes) for name in node.output if name}

    def parents(self, index: int) -> list[int]:
        """Returns the ops whose results an op reads, in order."""
        reads = names_read(self.nodes[index])
        return sorted({self._producers[name] for name in reads if name in self._producers})

    def ancestors(self, index: int) -> list[int]:
        """Returns the ops that an op depends on and itself, in order."""
        found, left = {index}, [index]
        while left:
            fresh = set(self.parents(left.pop())) - found
            found |= fresh
            left += fresh
        return sorted(found)

    def producer(self, name: str) -> int | None:
        """Returns the op that produces a tensor; None for an input or a constant."""
        return self._producers.get(name)

    def window(self, indices: Sequence[int]) -> tuple[ModelProto, list[Array]]:
        """Returns some ops as a model whose outputs are the results of the last one, and the model's inputs.

        Inputs of the whole model keep their dims, also named ones; other values have the sizes that they had.
        """
        nodes = [self.nodes[index] for index in sorted(indices)]
        produced = {name for node in nodes for name in node.output if name}
        read = list(
            dict.fromkeys(name for node in nodes for name in names_read(node) if name not in produced)
        )
        graph = GraphProto(name="window")
        graph.node.extend(self._constants[name] for name in read if name in self._constants)
        graph.node.extend(nodes)
        inputs: list[Array] = []
        for name in read:
            if name in self._constants:
                continue
            if name in self._initializers and name not in self._inputs:
                graph.initializer.append(self._initializers[name])
            elif name in self._values:
                self._add_input(graph, inputs, name)
        graph.output.extend(self._described(name) for name in nodes[-1].output if name in self._values)
        graph.value_info.extend(
            self._described(name) for node in nodes[:-1] for name in node.output if name in self._values
        )
        model = ModelProto()
        model.CopyFrom(self._model)
        model.graph.CopyFrom(graph)
        return model, inputs

    def _add_input(self, graph: GraphProto, inputs: list[Array], name: str) -> None:
        value = self._values[name]
        if name in self._inputs:
            graph.input.append(self._inputs[name])
            inputs.append(value)
        elif value.dtype.kind in "iub" and value.size <= _MOST_CONSTANT_ELEMENTS:
            graph.initializer.append(numpy_helper.from_array(value, name))
        else:
            graph.input.append(self._described(name))
            inputs.append(value)

    def _described(self, name: str) -> onnx.ValueInfoProto:
        value = self._values[name]
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        return helper.make_tensor_value_info(name, kind, value.shape)


def names_read(node: NodeProto) -> list[str]:
    """Returns the tensors that an op reads, also those that its branches or bodies read from outside."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            own |= {name for inner in graph.node for name in inner.output}
            inside = [name for inner in graph.node for name in names_read(inner)]
            names += [name for name in [*inside, *(value.name for value in graph.output)] if name not in own]
    return names
