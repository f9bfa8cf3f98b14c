"""A workload several times in one program, each repetition depending on the whole of the last one.

The time of n repetitions is `call + n * kernel`, so its slope is what a workload costs inside a model, without the
fixed cost of a call. That holds only where a system really runs all n, one after another:

- *Dropped or hoisted?* Every repetition reads what the last one wrote, in full, so none has the same inputs as another.
  Outputs that are not read by the next repetition are outputs of the program.
- *Merged?* A compiler may fuse gelu(gelu(x)), or two softmaxes of a row, into one kernel that reads x once, which is no
  longer n times the workload. So an Identity called `BARRIER...` stands between repetitions, and the adapters of
  compilers turn it into something that nothing is fused across (see `peers`). Others drop it, as every Identity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

COUNTS = (1, 4, 16)
"""Numbers of repetitions in the timed programs; a slope is fitted over several of them."""

BARRIER = "barrier_"
"""Prefix of the names of the Identity nodes between repetitions."""

# This factor makes any output of a workload vanish beside the input that it is added to, but no compiler may assume so.
_NEGLIGIBLE = 1e-30
# An input is small if the largest input or weight has at least this many times its elements.
_TIMES_LINK = 16


class NotRepeatableError(ValueError):
    """No output of the workload fits an input, and no input is small enough to be the link."""


def is_barrier(node: NodeProto) -> bool:
    """True if this node stands between two repetitions."""
    return node.op_type == "Identity" and node.name.startswith(BARRIER)


def repeat(model: ModelProto, count: int) -> ModelProto:
    """Returns the model `count` times in a row.

    Outputs become the inputs of the next repetition where shape and dtype agree. If none does, the smallest input is
    the link, provided that an addition to it costs little beside the other inputs and weights: the next repetition gets
    it plus a negligible multiple of one element of the previous one's first output.
    """
    if count == 1:
        return model
    fed = feedback(model)
    link = None if fed else _link(model)
    if not fed and link is None:
        raise NotRepeatableError("cannot be repeated: no output fits an input, and no input is small")
    chain = _Chain(model)
    for index in range(count):
        results = chain.append(index)
        is_last = index == count - 1
        chain.outputs += [results[o.name] for o in model.graph.output if is_last or o.name not in fed]
        if not is_last and fed:
            chain.feed({source: chain.barrier(results[output]) for output, source in fed.items()})
        elif not is_last:
            assert link is not None
            chain.feed({link: chain.linked(link, chain.barrier(results[model.graph.output[0].name]))})
    return chain.build()


def feedback(model: ModelProto) -> dict[str, str]:
    """Maps outputs to the inputs that they become: the first unused one of the same shape and dtype."""
    free = graph_inputs(model)
    fed: dict[str, str] = {}
    for output in model.graph.output:
        match = next((value for value in free if value.type == output.type), None)
        if match is not None:
            fed[output.name] = match.name
            free.remove(match)
    return fed


def _link(model: ModelProto) -> str | None:
    sizes = {value.name: _elements(value) for value in graph_inputs(model)}
    smallest = min(sizes, key=lambda name: sizes[name])
    weights = [math.prod(tensor.dims) for tensor in model.graph.initializer]
    return smallest if sizes[smallest] * _TIMES_LINK <= max([*sizes.values(), *weights]) else None


def _elements(value: ValueInfoProto) -> int:
    return math.prod(dim.dim_value for dim in value.type.tensor_type.shape.dim)


def graph_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Returns the inputs that a caller gives."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialized]


class _Chain:
    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._shared = {t.name for t in model.graph.initializer}
        self._types = {value.name: value.type for value in (*model.graph.input, *model.graph.output)}
        self._current = {value.name: value.name for value in graph_inputs(model)}
        self._nodes: list[NodeProto] = []
        self._constants = list(model.graph.initializer)
        self._count = 0
        self.outputs: list[str] = []

    def append(self, index: int) -> dict[str, str]:
        """Adds one repetition; returns the new names of its values."""
        names = dict(self._current)
        for node in self._model.graph.node:
            copy = NodeProto()
            copy.CopyFrom(node)
            names |= {output: f"{output}.{index}" for output in node.output if output}
            copy.input[:] = [name if name in self._shared else names.get(name, name) for name in node.input]
            copy.output[:] = [names.get(name, name) for name in node.output]
            copy.name = self._fresh(f"{node.op_type.lower()}_")
            self._nodes.append(copy)
        return names

    def feed(self, values: dict[str, str]) -> None:
        self._current |= values

    def barrier(self, value: str) -> str:
        name = self._fresh(BARRIER)
        self._nodes.append(helper.make_node("Identity", [value], [name], name=name))
        return name

    def linked(self, name: str, value: str) -> str:
        """Returns the input `name` plus a negligible multiple of an element of `value`."""
        element_type = self._types[name].tensor_type.elem_type
        factor = np.array([_NEGLIGIBLE], dtype=helper.tensor_dtype_to_np_dtype(element_type))
        flat = self._op("Reshape", value, self._constant(np.array([-1])))
        ends = [self._constant(np.array([end])) for end in (0, 1)]
        element = self._op("Cast", self._op("Slice", flat, *ends), to=element_type)
        return self._op("Add", name, self._op("Mul", element, self._constant(factor)))

    def _op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = self._fresh("link_")
        self._nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    def _constant(self, array: np.ndarray[Any, Any]) -> str:
        name = self._fresh("link_constant_")
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def build(self) -> ModelProto:
        outputs = [self._output(name) for name in self.outputs]
        source = self._model
        graph = helper.make_graph(
            self._nodes, source.graph.name, graph_inputs(source), outputs, self._constants
        )
        opsets: Sequence[onnx.OperatorSetIdProto] = list(source.opset_import)
        return helper.make_model(graph, opset_imports=opsets, ir_version=source.ir_version)

    def _output(self, name: str) -> ValueInfoProto:
        value = ValueInfoProto(name=name)
        value.type.CopyFrom(self._types[name.rpartition(".")[0]])
        return value
