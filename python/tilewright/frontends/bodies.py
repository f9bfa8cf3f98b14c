"""Import of the graphs that ops carry, and of the values that enter and leave them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.extras import onnx_importer
from onnx import GraphProto, NodeProto, ValueInfoProto, numpy_helper

from tilewright.errors import ModelError
from tilewright.frontends import scf as pieces
from tilewright.frontends.scf import Value


class NestedGraph(onnx_importer.GraphInfo):  # type: ignore[misc]
    """A body or branch, which also sees the values of the graphs around it."""

    def __init__(self, outer: Any, graph: GraphProto) -> None:
        super().__init__(outer.model_info, graph, is_subgraph=True)
        self.outer = outer

    def find_type_proto_for_name(self, name: str) -> Any:
        return super().find_type_proto_for_name(name) or self.outer.find_type_proto_for_name(name)


class Bodies:
    """The part of the importer that imports the nodes of a nested graph in place."""

    # Members of IREE's importer that this part uses.
    _gi: Any
    _b: Any
    _cc: Any
    _nv_map: dict[str, Value]
    _kept: list[Value]
    """Tensors that must not be overwritten until the end of the graph."""
    import_node: Callable[[NodeProto], None]
    import_initializer: Callable[..., Value]

    @contextmanager
    def _inside(self, graph: GraphProto, block: Any) -> Iterator[None]:
        """Imports into a block of a nested graph, until the end of the `with`."""
        saved = self._gi, self._b, self._nv_map, self._kept
        self._gi, self._b, self._nv_map = NestedGraph(self._gi, graph), block, dict(self._nv_map)
        self._kept = []
        try:
            with ir.InsertionPoint(block):
                yield
        finally:
            self._gi, self._b, self._nv_map, self._kept = saved

    def _import_body(self, graph: GraphProto) -> list[Value]:
        """Imports the nodes of a nested graph; returns its results."""
        for tensor in graph.initializer:
            self.import_initializer(tensor)
        for node in graph.node:
            for name in filter(None, node.output):
                self._check_rank(self._gi.find_type_proto_for_name(name), name, f"'{node.name}'")
            self.import_node(node)
        results = [self._nv_map[value.name] for value in graph.output]
        self.release_kept()
        return results

    def release_kept(self) -> None:
        """Ends the time for which tensors are kept."""
        for value in self._kept:
            pieces.keep(value)
        self._kept = []

    def _body_input(self, value: ValueInfoProto, given: Value, where: str) -> Value:
        """Returns a builtin tensor as the input of a body."""
        torch_type = self._torch_type(value.type, value.name, where)
        kind = pieces.builtin_type(torch_type, where=where)
        return pieces.from_builtin(
            pieces.as_type(given, kind, what=f"'{value.name}'", where=where), torch_type
        )

    def _single(self, value: ValueInfoProto, number: Value, where: str) -> Value:
        torch_type = self._torch_type(value.type, value.name, where)
        return pieces.from_builtin(
            pieces.single(number, pieces.builtin_type(torch_type, where=where)), torch_type
        )

    def _read(self, name: str, where: str) -> Value:
        """Returns the only element of a tensor, such as a condition."""
        return pieces.scalar(pieces.to_builtin(self._nv_map[name], where=where))

    def _define(self, node: NodeProto, results: Sequence[Value], alike: Sequence[ValueInfoProto]) -> None:
        """Makes builtin tensors the results of a node; `alike` has results of a body of the same element types."""
        where = f"'{node.name}'"
        for name, result, inner in zip(node.output, results, alike, strict=True):
            if not name:
                continue
            declared = self._gi.find_type_proto_for_name(name)
            if declared and declared.tensor_type.HasField("shape"):
                torch_type = self._cc.type_proto_to_type(declared)
                kind = pieces.builtin_type(torch_type, where=where)
                result = pieces.as_type(result, kind, what=f"'{name}'", where=where)
            else:
                element = self._cc.tensor_element_type(inner.type.tensor_type.elem_type)
                dims = tuple(dim if dim >= 0 else None for dim in pieces.shape_of(result.type))
                torch_type = self._cc.get_vtensor_type(dims, element)
            self._nv_map[name] = pieces.from_builtin(result, torch_type)

    def _builtin_type(self, name: str, graph: Any, where: str) -> Any:
        return pieces.builtin_type(
            self._torch_type(graph.find_type_proto_for_name(name), name, where), where=where
        )

    def _torch_type(self, kind: Any, name: str, where: str) -> Any:
        self._check_rank(kind, name, where)
        return self._cc.type_proto_to_type(kind)

    def _check_rank(self, kind: Any, name: str, where: str) -> None:
        """Refuses a tensor of unknown rank, which IREE's importer would take as a single number."""
        is_tensor = not kind or kind.HasField("tensor_type")
        if is_tensor and not (kind and kind.tensor_type.HasField("shape")):
            raise ModelError(
                f"the rank of '{name}', in a loop or branch, is not known",
                where=where,
                hint="declare its shape in the value_info of the body, or infer shapes when exporting",
            )

    def _constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """Returns the value of a constant with a single element, of this graph or one around it."""
        graph = self._gi
        while graph is not None:
            tensor = graph.initializer_map.get(name)
            if tensor is not None:
                is_single = math.prod(tensor.dims) == 1
                return np.asarray(numpy_helper.to_array(tensor)) if is_single else None
            if name in graph.declared_input_map:
                return None
            graph = getattr(graph, "outer", None)
        return None
