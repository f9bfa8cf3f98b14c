"""Check of the geometry of convolutions and pools: attributes, groups, and windows that do not fit their image.

ONNX's checker does not look at it, and its shape inference gives up without naming the op. IREE's importer dies of a
group of 0, and makes nothing of an image that is smaller than its window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import onnx
from onnx import helper

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.rule import subgraphs

_WEIGHT = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "ConvTranspose": 1}
"""The operand with the weights of each kind of convolution."""
_POOLS = frozenset(("AveragePool", "MaxPool", "LpPool"))

_Shapes = Mapping[str, Sequence[int]]


def check_geometry(graph: onnx.GraphProto, outer: _Shapes | None = None) -> None:
    """Raises `ModelError` with op and numbers for the first convolution or pool whose numbers do not fit together.

    What depends on a shape is checked if the shape is known, so the check may be made before types are inferred, and
    again afterwards. `outer` are the shapes of values outside of `graph`, with -1 for lengths that are not known.
    """
    shapes = {**(outer or {}), **_known_shapes(graph)}
    for node in graph.node:
        if node.domain in ("", "ai.onnx") and (node.op_type in _WEIGHT or node.op_type in _POOLS):
            _Geometry(node, shapes).check()
        for inner in subgraphs(node):
            check_geometry(inner, shapes)


def _known_shapes(graph: onnx.GraphProto) -> dict[str, list[int]]:
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            shapes[value.name] = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims]
    return shapes


class _Geometry:
    """The numbers of one convolution or pool."""

    def __init__(self, node: onnx.NodeProto, shapes: _Shapes) -> None:
        self.node = node
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.image = self._operand(0, shapes)
        self.weight = self._operand(_WEIGHT[node.op_type], shapes) if node.op_type in _WEIGHT else None
        self.groups = int(self.attributes.get("group", 1))

    def check(self) -> None:
        for name, least in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 0)):
            values = list(self.attributes.get(name, ()))
            if any(value < least for value in values):
                self._refuse(f"{name} {values}, and none may be below {least}", f"correct its {name}")
        if self.weight is not None and -1 not in self.weight and len(self.weight) > 2:
            self._check_weight(self.weight)
        if self.node.op_type == "ConvTranspose":
            self._check_result()
        else:
            self._check_windows()

    def _check_weight(self, weight: Sequence[int]) -> None:
        kernel = list(self.attributes.get("kernel_shape", weight[2:]))
        if kernel != list(weight[2:]):
            self._refuse(
                f"kernel_shape {kernel} and weights of {_shown(weight)}", "give both the same window"
            )
        if self.groups < 1:
            self._refuse(f"{self.groups} groups", "give at least one")
        channels = self.image[1] if self.image and len(self.image) > 2 else -1
        is_transposed = self.node.op_type == "ConvTranspose"
        what = "channels" if is_transposed else "filters"
        if weight[0] % self.groups:
            self._refuse(f"{weight[0]} {what} in {self.groups} groups", f"give groups that divide the {what}")
        expected = weight[0] if is_transposed else weight[1] * self.groups
        if channels not in (-1, expected):
            self._refuse(
                f"an image of {channels} channels, and weights of {_shown(weight)} in {self.groups} groups, which take "
                f"{expected}",
                "give an image, weights and groups that fit together",
            )

    def _check_windows(self) -> None:
        window = list(self.attributes.get("kernel_shape", self.weight[2:] if self.weight else ()))
        if self.image is None or len(self.image) != len(window) + 2:
            return
        if self.attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"", b"VALID"):
            return  # as many windows as the image has points, divided by the strides
        if self.attributes.get("ceil_mode", 0):
            return  # the last window may reach beyond the pads
        rank = len(window)
        pads = list(self.attributes.get("pads", [0] * 2 * rank))
        dilations = list(self.attributes.get("dilations", [1] * rank))
        if len(pads) != 2 * rank or len(dilations) != rank:
            return  # ONNX's checker refuses these
        for dim, size in enumerate(self.image[2:]):
            reach, padded = dilations[dim] * (window[dim] - 1) + 1, size + pads[dim] + pads[rank + dim]
            if size > 0 and padded < reach:
                self._refuse(
                    f"a window of {reach} points along dim {2 + dim} of an image that has {padded} with its pads",
                    "give a larger image, more pads or a smaller window",
                )

    def _check_result(self) -> None:
        """Checks that pads leave something of the result of a transposed convolution."""
        if self.image is None or self.weight is None or len(self.image) != len(self.weight):
            return
        gives_pads = self.attributes.get("auto_pad", b"NOTSET") in (b"NOTSET", b"")
        if "output_shape" in self.attributes or not gives_pads:
            return  # pads follow from the shape of the result
        rank = len(self.image) - 2
        pads = list(self.attributes.get("pads", [0] * 2 * rank))
        strides, dilations, behind = (
            list(self.attributes.get(name, [default] * rank))
            for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
        )
        if len(pads) != 2 * rank or any(len(values) != rank for values in (strides, dilations, behind)):
            return  # ONNX's checker refuses these
        for dim, (size, window) in enumerate(zip(self.image[2:], self.weight[2:], strict=True)):
            whole = (size - 1) * strides[dim] + dilations[dim] * (window - 1) + 1 + behind[dim]
            removed = pads[dim] + pads[rank + dim]
            if size > 0 and window > 0 and removed >= whole:
                self._refuse(
                    f"pads that remove {removed} of the {whole} points of its result along dim {2 + dim}",
                    "give a larger image, fewer pads or a larger window",
                )

    def _operand(self, number: int, shapes: _Shapes) -> Sequence[int] | None:
        return shapes.get(self.node.input[number]) if number < len(self.node.input) else None

    def _refuse(self, problem: str, hint: str) -> NoReturn:
        name = self.node.name or self.node.output[0]
        raise ModelError(f"{self.node.op_type} with {problem}", where=f"'{name}'", hint=hint)


def _shown(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))
