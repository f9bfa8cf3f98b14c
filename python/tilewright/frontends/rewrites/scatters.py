"""Normal form of scatters of whole rows, such as appending to a key/value cache, which can then store in place.

IREE's importer splits a scatter of ONNX into single elements: seven kernels for a row of a cache. A scatter of rows of
a matrix, by row number, remains one small kernel, which writes into its operand if nothing else reads that. So
ScatterND, TensorScatter, and a ScatterElements whose indices are expanded positions become

    rows = ScatterND(Reshape(data, [all rows, row]), numbers of rows, Reshape(updates, [updated rows, row]))

if the sizes are known; all other scatters stay unchanged. A position outside the data, which ONNX forbids, is moved to
the nearest one inside, so that no store is out of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

_SCATTERS = ("ScatterND", "ScatterElements", "TensorScatter")
_MOST = (1 << 63) - 1
_FIRST_OPSET = 13  # the first with the axes of ReduceSum as an input
_FIRST_IR_VERSION = 4  # the first in which a constant need not be an input, too

ROWS_IN_BOUNDS = "tilewright: rows whose numbers are in bounds"
"""The doc string of a ScatterND that was made here; `frontends.onnx_importer` handles no other ScatterND."""

Shape = tuple[int, ...]


def flatten_scatters(model: onnx.ModelProto) -> None:
    """Rewrites all scatters of whole rows in the model's graph."""
    opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    if opset < _FIRST_OPSET or model.ir_version < _FIRST_IR_VERSION:
        return
    if not any(_is_scatter(node) for node in model.graph.node):
        return
    try:
        shapes = dict(_shapes(model))
    except (onnx.shape_inference.InferenceError, ValueError):
        return  # The checker, which runs later, reports what is wrong with the model.
    makers = {output: node for node in model.graph.node for output in node.output}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        rewritten = _Rewritten(name=node.output[0] if node.output else "")
        if _is_scatter(node) and _rewrite(node, rewritten, shapes, makers):
            model.graph.initializer.extend(rewritten.constants)
            model.graph.node.extend(rewritten.nodes)
        else:
            model.graph.node.append(node)


def _is_scatter(node: onnx.NodeProto) -> bool:
    if node.op_type not in _SCATTERS or node.domain not in ("", "ai.onnx"):
        return False
    operands = 2 if node.op_type == "TensorScatter" else 3
    whole = len(node.input) >= operands and len(node.output) == 1
    return whole and _attribute(node, "reduction", b"none") == b"none"


def _shapes(model: onnx.ModelProto) -> Iterator[tuple[str, Shape]]:
    """Yields the name and shape of every tensor whose sizes are known, and are those of a tensor that can exist."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shape = tuple(dim.dim_value for dim in kind.shape.dim)
            if all(size >= 0 for size in shape) and math.prod(shape) <= _MOST:
                yield value.name, shape
    for tensor in graph.initializer:
        yield tensor.name, tuple(tensor.dims)


@dataclass
class _Rewritten:
    """The nodes that replace one node."""

    name: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def op(self, kind: str, *inputs: str, output: str | None = None) -> str:
        result = output or self._fresh()
        self.nodes.append(helper.make_node(kind, list(inputs), [result], name=self.name))
        return result

    def integers(self, values: object) -> str:
        name = self._fresh()
        self.constants.append(numpy_helper.from_array(np.asarray(values, np.int64), name))
        return name

    def _fresh(self) -> str:
        return f"{self.name}.scatter.{len(self.nodes) + len(self.constants)}"

    def clamped(self, index: str, sizes: Sequence[int]) -> str:
        """Converts indices that count from -size to indices from 0, clamped to the bounds."""
        size = self.integers(sizes)
        counted = self.op(
            "Where", self.op("Less", index, self.integers(0)), self.op("Add", index, size), index
        )
        last = self.integers([extent - 1 for extent in sizes])
        return self.op("Max", self.op("Min", counted, last), self.integers(0))

    def scatter(self, data: str, shape: Shape, *, rows: int, numbers: str, updates: str, result: str) -> None:
        """Makes a scatter of `rows` rows of `data`; a row spans the dims behind those that the row number covers."""
        row = self.integers([-1, rows]), self.integers([-1, 1])
        flat, new = self.op("Reshape", data, row[0]), self.op("Reshape", updates, row[0])
        scattered = self.op("ScatterND", flat, self.op("Reshape", numbers, row[1]), new)
        self.nodes[-1].doc_string = ROWS_IN_BOUNDS
        self.op("Reshape", scattered, self.integers(shape), output=result)


def _rewrite(
    node: onnx.NodeProto,
    rewritten: _Rewritten,
    shapes: Mapping[str, Shape],
    makers: Mapping[str, onnx.NodeProto],
) -> bool:
    data, updates = node.input[0], node.input[1 if node.op_type == "TensorScatter" else 2]
    if data not in shapes or updates not in shapes or 0 in (*shapes[data], *shapes[updates]):
        return False
    shape = shapes[data]
    if not shape:
        return False
    if node.op_type == "ScatterND":
        numbered = _number_tuples(rewritten, node.input[1], shape, shapes[updates], shapes)
    elif node.op_type == "ScatterElements":
        numbered = _number_positions(rewritten, node, shape, shapes, makers)
    else:
        numbered = _number_from_starts(rewritten, node, shape, shapes[updates])
    if numbered is None:
        return False
    numbers, dims = numbered
    rewritten.scatter(
        data,
        shape,
        rows=math.prod(shape[dims:]),
        numbers=numbers,
        updates=updates,
        result=node.output[0],
    )
    return True


def _number_tuples(
    rewritten: _Rewritten, indices: str, shape: Shape, updated: Shape, shapes: Mapping[str, Shape]
) -> tuple[str, int] | None:
    """Returns row numbers for a ScatterND, whose indices have, in their last dim, a position in the first dims of the
    data; and the number of these dims."""
    if not shapes.get(indices) or 0 in shapes[indices]:
        return None
    *points, dims = shapes[indices]
    if dims > len(shape) or updated != (*points, *shape[dims:]):
        return None
    places = rewritten.clamped(indices, shape[:dims])
    if dims == 1:
        return places, dims
    strides = [math.prod(shape[dim + 1 : dims]) for dim in range(dims)]
    weighted = rewritten.op("Mul", places, rewritten.integers(strides))
    return rewritten.op("ReduceSum", weighted, rewritten.integers([-1])), dims


def _number_positions(
    rewritten: _Rewritten,
    node: onnx.NodeProto,
    shape: Shape,
    shapes: Mapping[str, Shape],
    makers: Mapping[str, onnx.NodeProto],
) -> tuple[str, int] | None:
    """Returns row numbers for a ScatterElements with the same positions along the axis for all other dims, which are
    updated as a whole; and the number of dims that they cover."""
    axis = int(_attribute(node, "axis", 0)) % len(shape)
    expand = makers.get(node.input[1])
    if expand is None or expand.op_type != "Expand" or node.input[1] not in shapes:
        return None
    expanded, positions = shapes[node.input[1]], shapes.get(expand.input[0])
    if (
        positions is None
        or len(expanded) != len(shape)
        or any(
            own != full for dim, (own, full) in enumerate(zip(expanded, shape, strict=True)) if dim != axis
        )
    ):
        return None
    padded = (1,) * (len(shape) - len(positions)) + positions
    if math.prod(padded) != padded[axis] or padded[axis] != expanded[axis]:
        return None
    places = rewritten.clamped(expand.input[0], [shape[axis]])
    row = rewritten.op("Reshape", places, rewritten.integers([1, -1]))
    return rewritten.op("Add", _bases(rewritten, shape, axis), row), axis + 1


def _number_from_starts(
    rewritten: _Rewritten, node: onnx.NodeProto, shape: Shape, updated: Shape
) -> tuple[str, int] | None:
    """Returns row numbers for a TensorScatter: consecutive positions along the axis, from a start for each batch; and
    the number of dims that they cover."""
    axis = int(_attribute(node, "axis", -2)) % len(shape)
    if axis == 0:
        return None
    size, count = shape[axis], updated[axis]
    if len(node.input) > 2 and node.input[2]:
        starts = rewritten.op("Reshape", node.input[2], rewritten.integers([-1, 1]))
    else:
        starts = rewritten.integers(np.zeros((shape[0], 1)))
    places = rewritten.op("Add", starts, rewritten.integers(np.arange(count)[None, :]))
    if _attribute(node, "mode", b"linear") == b"circular":
        places = rewritten.op("Mod", places, rewritten.integers([size]))
    places = rewritten.clamped(places, [size])
    # The positions are [batch, 1, count], and the first row of each is [batch, dims between batch and axis, 1].
    bases = rewritten.op("Reshape", _bases(rewritten, shape, axis), rewritten.integers([shape[0], -1, 1]))
    return rewritten.op("Add", bases, rewritten.op("Unsqueeze", places, rewritten.integers([1]))), axis + 1


def _bases(rewritten: _Rewritten, shape: Shape, axis: int) -> str:
    """Makes an [n, 1] tensor: the number of the first row along the axis, for each index of the dims before it."""
    return rewritten.integers(np.arange(math.prod(shape[:axis]))[:, None] * shape[axis])


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """Returns an attribute, or the default if it is not given or of another type, which ONNX's checker refuses."""
    given = next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
    return given if isinstance(given, type(default)) else default
