"""Arithmetic with open sizes in the forms that IREE's importer takes.

It imports operators of Python, but neither functions, such as `torch.sym_float`, nor a tensor that is subtracted from a
size. A product with a float that is cut off, such as the size of an image that is scaled by 1.5, becomes a quotient of
whole numbers, because IREE converts no f64 to an integer.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

_aten, _prim = torch.ops.aten, torch.ops.prim

_OF_PYTHON = {
    torch.sym_float: _aten.Float.Scalar,
    torch.sym_max: _prim.max.int,
    torch.sym_min: _prim.min.int,
}
"""Functions of sizes, with the ops that compute the same."""

_LARGEST_FACTOR = 2**22
"""Numerators below this make exact products with sizes below 2**31, because f64 has 53 bits."""


def with_ops_of_sizes(graph: Graph) -> Graph:
    """Returns the graph with ops in place of functions of sizes. Those ops take no open sizes in Python, so a graph
    with such functions stays as it is, and a copy is returned."""
    if not any(map(_has_to_change, graph.nodes)):
        return graph
    copy = Graph()
    copy.output(copy.graph_copy(graph, {}))
    copy.owning_module = graph.owning_module
    for node in copy.nodes:
        if node.target is math.trunc:
            _divide(node)
        elif node.target is operator.mod:
            _spell_out_remainder(node)
        elif node.target in _OF_PYTHON:
            node.target = _OF_PYTHON[node.target]
        elif _is_taken_from_size(node):
            size, subtracted, *more = node.args
            node.target, node.args = _aten.rsub.Scalar, (subtracted, size, *more)
    copy.eliminate_dead_code()
    return copy


def _has_to_change(node: Node) -> bool:
    return node.target in (math.trunc, operator.mod, *_OF_PYTHON) or _is_taken_from_size(node)


def _is_taken_from_size(node: Node) -> bool:
    """Returns True for a difference of a size and a tensor."""
    return node.target is _aten.sub.Tensor and isinstance(_value(node.args[0]), torch.SymInt | torch.SymFloat)


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, Node) else argument


def _spell_out_remainder(node: Node) -> None:
    """Subtracts the whole part, because IREE's remainder of sizes has the sign of the dividend."""
    dividend: Any
    divisor: Any
    dividend, divisor = node.args
    with node.graph.inserting_before(node):
        quotient = node.graph.call_function(operator.floordiv, (dividend, divisor))
        whole = node.graph.call_function(operator.mul, (quotient, divisor))
    quotient.meta["val"] = _value(dividend) // _value(divisor)
    whole.meta["val"] = quotient.meta["val"] * _value(divisor)
    node.target, node.args = operator.sub, (dividend, whole)


def _divide(node: Node) -> None:
    """Makes a product of a size and a float, which is cut off, a quotient, if the product is exact and not negative."""
    product: Any = node.args[0]
    if getattr(product, "target", None) is not operator.mul:
        return
    for widened, factor in (product.args, product.args[::-1]):
        is_size = getattr(widened, "target", None) is _aten.Float.Scalar
        if not is_size or not isinstance(factor, float) or factor < 0:
            continue
        above, below = factor.as_integer_ratio()
        (size,) = widened.args
        if above < _LARGEST_FACTOR and statically_known_true(_value(size) >= 0):
            with node.graph.inserting_before(node):
                whole = node.graph.call_function(operator.mul, (size, above))
            whole.meta["val"] = size.meta["val"] * above
            node.target, node.args = operator.floordiv, (whole, below)
        return
