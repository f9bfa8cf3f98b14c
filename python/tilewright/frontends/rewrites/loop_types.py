"""Types in the bodies of Loop and Scan (all opsets), which ONNX's inference leaves open or takes from the exporter.

A state of a Loop may change its shape from one iteration to the next, so ONNX infers no shape for it, and IREE's
importer would take it as a single number. Here, a body is inferred with the types of the initial states; a dim whose
length the body then changes gets no length, until nothing changes. Types that a body declares count only where nothing
can be inferred, since some exporters declare wrong ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from tilewright.frontends.rewrites.ceil_windows import CeilWindows

Types = Mapping[str, TypeProto]
Constants = Mapping[str, TensorProto]
Array = np.ndarray[Any, Any]

_MOST_ELEMENTS = 16
"""Most elements of an outer constant that a body's inference is given, for shapes that it computes."""
_INVENTED = "unk__"
"""The beginning of names that ONNX's inference gives to dims of unknown length."""


def settle_loops(model: ModelProto) -> bool:
    """Sets the types in bodies, in place, of a model whose other types have been inferred. Returns True if the type of
    a loop's result was found, so that inferring the model again may find more."""
    return _Settler(model).settle(model.graph, {}, {})


def has_loops(graph: GraphProto) -> bool:
    """Returns True if there is a Loop or Scan in a graph or a graph in it."""
    return any(node.op_type in ("Loop", "Scan") or any(map(has_loops, _graphs(node))) for node in graph.node)


def has_unknown_lengths(graph: GraphProto, outer_constants: Constants | None = None) -> bool:
    """Returns True if a value in a graph, or in a graph in it, has a dim of unknown length, also as a result of a loop
    whose number of iterations is not known."""
    values = (*graph.input, *graph.value_info, *graph.output)
    if any(not dim.HasField("dim_value") for value in values for dim in value.type.tensor_type.shape.dim):
        return True
    constants = {**(outer_constants or {}), **_constants_in(graph)}
    for node in graph.node:
        if node.op_type == "Loop" and not (
            node.input[0] in constants
            and stays_true(next(_graphs(node)), lambda name: _value_of(name, constants))
        ):
            return True
        if any(has_unknown_lengths(inner, constants) for inner in _graphs(node)):
            return True
    return False


def stays_true(body: GraphProto, outer: Callable[[str], Array | None]) -> bool:
    """Returns True if the condition that a Loop's body computes is true whenever the one that it is given is. `outer`
    gives the values of constants around the body."""
    makers = {output: node for node in body.node for output in node.output}
    name = body.output[0].name
    while (maker := makers.get(name)) is not None and _keeps_truth(maker):
        name = maker.input[0]
    if name == body.input[1].name:
        return True
    own = name in makers or any(tensor.name == name for tensor in body.initializer)
    known = _value_of(name, _constants_in(body)) if own else outer(name)
    return known is not None and bool(known.all())


def _keeps_truth(node: NodeProto) -> bool:
    return node.op_type == "Identity" or (
        node.op_type == "Cast" and any(a.name == "to" and a.i == TensorProto.BOOL for a in node.attribute)
    )


def _value_of(name: str, constants: Constants) -> Array | None:
    return np.asarray(numpy_helper.to_array(constants[name])) if name in constants else None


class _Settler:
    def __init__(self, model: ModelProto) -> None:
        self._model = model

    def settle(self, graph: GraphProto, outer: Types, outer_constants: Constants) -> bool:
        """Settles the loops in a graph whose own types have been inferred."""
        is_changed = False
        constants = {**outer_constants, **_constants_in(graph)}
        for node in graph.node:
            bodies = list(_graphs(node))
            if not bodies:
                continue
            types = {**outer, **_types_in(graph)}
            if node.domain in ("", "ai.onnx") and node.op_type in ("Loop", "Scan"):
                loop = _Loop(node, types)
                self._settle_body(loop, types, constants)
                is_changed |= _declare(graph, node, loop.results(constants))
            else:
                for body in bodies:
                    is_changed |= self.settle(body, types, constants)
        return is_changed

    def _settle_body(self, loop: _Loop, types: Types, constants: Constants) -> None:
        declared = GraphProto()
        declared.CopyFrom(loop.body)
        _forget(loop.body)
        loop.begin()
        while True:
            fresh = GraphProto()
            fresh.CopyFrom(loop.body)
            self._infer(loop.body, types, constants)
            while self.settle(loop.body, types, constants):
                self._infer(loop.body, types, constants)
            _fall_back(loop.body, declared)
            widened = loop.widened()
            if widened is None:
                return
            loop.body.CopyFrom(fresh)
            for value, kind in zip(loop.states, widened, strict=True):
                value.type.CopyFrom(kind)

    def _infer(self, body: GraphProto, types: Types, constants: Constants) -> None:
        """Infers the types of a body with the values around it as inputs."""
        probe = ModelProto(ir_version=self._model.ir_version, opset_import=self._model.opset_import)
        probe.graph.CopyFrom(body)
        own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
        own |= {name for node in body.node for name in node.output}
        for name in sorted(set(_read_in(body)) - own):
            if name in constants:
                probe.graph.initializer.append(constants[name])
            if name in types:
                probe.graph.input.append(ValueInfoProto(name=name, type=types[name]))
        given = {dim.dim_param for value in probe.graph.input for dim in value.type.tensor_type.shape.dim}
        try:
            inferred = _inferred(probe)
        except (onnx.shape_inference.InferenceError, ValueError):
            return  # what could not be inferred is refused later, with its name
        _forget_invented(inferred, given)
        for field in ("node", "output", "value_info"):
            body.ClearField(field)
            getattr(body, field).extend(getattr(inferred, field))


class _Loop:
    """A Loop or Scan with the types of the values that it is given."""

    def __init__(self, node: NodeProto, types: Types) -> None:
        self.body = next(_graphs(node))
        self._node = node
        self._is_scan = node.op_type == "Scan"
        attributes = {a.name: a for a in node.attribute}
        self._scanned = attributes["num_scan_inputs"].i if self._is_scan else 0
        self._axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else []
        self._out_axes = list(attributes["scan_output_axes"].ints) if "scan_output_axes" in attributes else []
        before = 0 if self._is_scan else 2
        names = list(node.input)[before : len(node.input) - self._scanned]
        self._initial = [types.get(name, TypeProto()) for name in names]
        self._sources = [
            types.get(name, TypeProto()) for name in list(node.input)[len(node.input) - self._scanned :]
        ]
        self._count = len(self._initial)

    @property
    def states(self) -> list[ValueInfoProto]:
        before = 0 if self._is_scan else 2
        return list(self.body.input)[before : before + self._count]

    @property
    def _next_states(self) -> list[ValueInfoProto]:
        before = 0 if self._is_scan else 1
        return list(self.body.output)[before : before + self._count]

    def begin(self) -> None:
        """Gives the body's inputs the types of the first iteration."""
        if not self._is_scan:
            for value in list(self.body.input)[:2]:  # the number of the iteration, and the condition
                if len(value.type.tensor_type.shape.dim) == 1:
                    value.type.tensor_type.shape.dim[0].dim_value = 1
                else:
                    value.type.tensor_type.shape.CopyFrom(onnx.TensorShapeProto())
        for value, kind in zip(self.states, self._initial, strict=True):
            value.type.CopyFrom(kind)
        for number, kind in enumerate(self._sources):
            value = self.body.input[self._count + number]
            value.type.CopyFrom(kind)
            if _has_shape(kind):
                rank = len(kind.tensor_type.shape.dim)
                axis = self._axes[number] if self._axes else 0
                del value.type.tensor_type.shape.dim[axis % rank]

    def widened(self) -> list[TypeProto] | None:
        """Returns types of the states that also hold what the body hands on; None if they do so already. The states of
        a Scan keep their shapes, as ONNX demands."""
        if self._is_scan:
            return None
        kinds = [
            _common(before.type, after.type)
            for before, after in zip(self.states, self._next_states, strict=True)
        ]
        is_same = all(kind == value.type for kind, value in zip(kinds, self.states, strict=True))
        return None if is_same else kinds

    def results(self, constants: Constants) -> list[TypeProto]:
        """Returns the types of the loop's results."""
        count = self._iterations(constants)
        first = self._count + (0 if self._is_scan else 1)
        stacked = []
        for number, value in enumerate(list(self.body.output)[first:]):
            kind = TypeProto()
            kind.CopyFrom(value.type)
            if _has_shape(kind):
                dims = list(kind.tensor_type.shape.dim)
                axis = self._out_axes[number] % (len(dims) + 1) if self._out_axes else 0
                dims.insert(axis, count)
                kind.tensor_type.shape.CopyFrom(onnx.TensorShapeProto(dim=dims))
            stacked.append(kind)
        return [*(value.type for value in self.states), *stacked]

    def _iterations(self, constants: Constants) -> onnx.TensorShapeProto.Dimension:
        """Returns the number of iterations as the length of a dim, which may be unknown."""
        unknown = onnx.TensorShapeProto.Dimension()
        if self._is_scan:
            dims = self._sources[0].tensor_type.shape.dim
            return dims[(self._axes[0] if self._axes else 0) % len(dims)] if dims else unknown
        limit = _value_of(self._node.input[0], constants)
        condition = (*self._node.input, "")[1]
        begins = _value_of(condition, constants) if condition else np.array(True)
        is_begun = begins is not None and bool(begins.all())
        if limit is None or not is_begun or not stays_true(self.body, lambda n: _value_of(n, constants)):
            return unknown
        return onnx.TensorShapeProto.Dimension(dim_value=max(0, int(limit.reshape(-1)[0])))


def _common(before: TypeProto, after: TypeProto) -> TypeProto:
    """Returns the type of a state before the first iteration, without the lengths that later ones may not have."""
    kind = TypeProto()
    kind.CopyFrom(before)
    if not _has_shape(before):
        return kind
    dims, others = kind.tensor_type.shape.dim, after.tensor_type.shape.dim
    if not _has_shape(after) or len(dims) != len(others):
        kind.tensor_type.ClearField("shape")
        return kind
    for dim, other in zip(dims, others, strict=True):
        is_known = dim.HasField("dim_value") or dim.dim_param
        if is_known and (dim.dim_value, dim.dim_param) != (other.dim_value, other.dim_param):
            dim.Clear()
    return kind


def _inferred(model: ModelProto) -> GraphProto:
    """Infers the types of a model, in place; returns its graph."""
    windows = CeilWindows(model)
    while True:
        model.CopyFrom(onnx.shape_inference.infer_shapes(model, data_prop=True))
        if not windows.declare():
            return model.graph


def _declare(graph: GraphProto, node: NodeProto, kinds: Sequence[TypeProto]) -> bool:
    """Adds the shapes and lengths of a node's results that are not declared; returns True if it added one."""
    known = {value.name: value for value in (*graph.value_info, *graph.output)}
    is_changed = False
    for name, kind in zip(node.output, kinds, strict=True):
        if not name or not _has_shape(kind):
            continue
        value = known.get(name) or graph.value_info.add(name=name)
        if not _has_shape(value.type):
            value.type.CopyFrom(kind)
            is_changed = True
            continue
        dims, found = value.type.tensor_type.shape.dim, kind.tensor_type.shape.dim
        for dim, other in zip(dims, found, strict=False) if len(dims) == len(found) else ():
            if not dim.HasField("dim_value") and other.HasField("dim_value"):
                dim.dim_value = other.dim_value
                is_changed = True
    return is_changed


def _forget(graph: GraphProto) -> None:
    """Removes the types of values in a graph, other than those of its inputs, and the shapes of its results. Types
    behind ops of other domains stay, because ONNX cannot infer these."""
    foreign = {name for node in graph.node if node.domain not in ("", "ai.onnx") for name in node.output}
    kept = [value for value in graph.value_info if value.name in foreign]
    graph.ClearField("value_info")
    graph.value_info.extend(kept)
    for value in graph.output:
        if value.type.HasField("tensor_type") and value.name not in foreign:
            value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for inner in _graphs(node):
            _forget(inner)


def _fall_back(graph: GraphProto, declared: GraphProto) -> None:
    """Restores the declared lengths of results where none was inferred. They are checked when the program runs."""
    for value, other in zip(graph.output, declared.output, strict=True):
        if not _has_shape(other.type):
            continue
        if not _has_shape(value.type):
            value.type.CopyFrom(other.type)
        dims, stated = value.type.tensor_type.shape.dim, other.type.tensor_type.shape.dim
        for dim, known in zip(dims, stated, strict=False) if len(dims) == len(stated) else ():
            if not dim.HasField("dim_value") and known.HasField("dim_value"):
                dim.dim_value = known.dim_value


def _forget_invented(graph: GraphProto, given: set[str]) -> None:
    """Removes names of dims that inference invented: another body may have the same ones."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.startswith(_INVENTED) and dim.dim_param not in given:
                dim.ClearField("dim_param")
    for node in graph.node:
        for inner in _graphs(node):
            _forget_invented(inner, given)


def _has_shape(kind: TypeProto) -> bool:
    return bool(kind.tensor_type.HasField("shape"))


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g


def _types_in(graph: GraphProto) -> dict[str, TypeProto]:
    types = {t.name: helper.make_tensor_type_proto(t.data_type, t.dims) for t in graph.initializer}
    return types | {v.name: v.type for v in (*graph.input, *graph.value_info, *graph.output)}


def _constants_in(graph: GraphProto) -> dict[str, TensorProto]:
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            tensors[node.output[0]] = TensorProto()
            tensors[node.output[0]].CopyFrom(node.attribute[0].t)
            tensors[node.output[0]].name = node.output[0]
    return {name: t for name, t in tensors.items() if math.prod(t.dims) <= _MOST_ELEMENTS}


def _read_in(graph: GraphProto) -> Iterator[str]:
    """Yields the names that a graph and the graphs in it read."""
    for node in graph.node:
        yield from filter(None, node.input)
        for inner in _graphs(node):
            yield from _read_in(inner)
    yield from (value.name for value in graph.output)
