"""Open dims of PyTorch's exported programs: their names, and graphs with sizes in their place.

A graph is fixed by running it node by node on tensors without data (fake tensors) of the given sizes. Values that
become plain numbers leave the graph. Nothing is traced, because tracing patches PyTorch for all threads of a process.
"""

from __future__ import annotations

import inspect
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch.utils import _pytree

from tilewright.errors import ModelError
from tilewright.frontends.weights import MINIMUM_PARAMETER_ELEMENTS
from tilewright.records.dims import Dim, Sizes, open_axes, signature_inputs
from tilewright.records.signature import Signature, TensorSpec

_aten = torch.ops.aten
_CHECKS = (
    _aten._assert_scalar.default,
    _aten._assert_async.msg,
    _aten._assert_tensor_metadata.default,
    _aten.sym_constrain_range.default,
    _aten.sym_constrain_range_for_size.default,
)
"""Ops that check sizes, which are known once a graph is fixed."""
_SECONDS_BETWEEN_LOOKS = 0.02
"""Time between two looks whether an export has ended: little beside the compilation that waits for it."""


class Symbols:
    """The names and bounds that an exported program gives to sizes. A size without a name has the first of its places
    as its name ("x.0")."""

    def __init__(self, program: Any) -> None:
        self._names = {**_places(program), **_names(program)}
        self.bounds: dict[str, Dim] = {
            self._names.get(str(symbol), str(symbol)): _bound(values)
            for symbol, values in program.range_constraints.items()
        }

    def name(self, size: Any) -> str | None:
        """Returns the name of a size that is known only at run time, or None if it is an expression."""
        text = str(size)
        return self._names.get(text) if text.isidentifier() else None

    def fix(
        self, graph: Graph, signature: Signature, sizes: Sizes, outputs: Sequence[Any], *, name: str
    ) -> tuple[Graph, Signature]:
        """Returns a graph with sizes in place of the dims that have these names, and its signature.

        `outputs` are the specs of the graph's outputs that are tensors. Raises `ModelError` if an op refuses the sizes.
        """
        if not sizes:
            return graph, signature
        shapes = [list(spec.shape) for spec in signature.inputs]
        for axis in open_axes(signature_inputs(signature)):
            shapes[axis.input][axis.axis] = sizes.get(axis.dim, axis.dim)
        wanted = {spec.name: shape for spec, shape in zip(signature.inputs, shapes, strict=True)}
        try:
            fixed = _run(graph, wanted)
        except Exception as error:  # an op's own code runs here
            text = str(error).strip().splitlines() or [type(error).__name__]
            spelled = ", ".join(f"{dim}={size}" for dim, size in sizes.items())
            raise ModelError(f"it does not take {spelled}: {text[0][:200]}", where=name) from error
        values = {node.name: node.meta.get("val") for node in fixed.nodes}
        made = [values[spec.arg.name] for spec in outputs]
        return fixed, Signature(
            tuple(self._with_shape(spec, values[spec.name]) for spec in signature.inputs),
            tuple(self._with_shape(spec, value) for spec, value in zip(signature.outputs, made, strict=True)),
        )

    def _with_shape(self, spec: TensorSpec, value: Any) -> TensorSpec:
        shape = tuple(size if isinstance(size, int) else self.name(size) for size in value.shape)
        return TensorSpec(spec.name, spec.dtype, shape)


def _names(program: Any) -> dict[str, str]:
    """Returns the names that the caller of `torch.export` gave to symbols, as far as the program still knows them."""
    for node in program.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        environment = getattr(mode, "shape_env", None)
        if environment is not None:
            given = getattr(environment, "source_name_to_debug_name", {})
            symbols = getattr(environment, "source_to_var", {})
            named = {str(symbols[source]): text for source, text in given.items() if source in symbols}
            return {symbol: text for symbol, text in named.items() if text.isidentifier()}
    return {}


def _places(program: Any) -> dict[str, str]:
    """Returns the first place of every symbol in the program's inputs."""
    inputs = set(program.graph_signature.user_inputs)
    places: dict[str, str] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in inputs:
            for axis, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
                places.setdefault(str(size), f"{node.name}.{axis}")
    return places


def _bound(values: Any) -> Dim:
    low, high = (_number(value) for value in (values.lower, values.upper))
    return Dim(max(low or 0, 0), high)


def _number(value: Any) -> int | None:
    """Returns a bound as a number; None for infinity."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None
    return number if abs(number) < 2**31 else None


def hold_constants(program: Any, more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tensors that a program holds, and `more`, by name, with copies of those that become constants of the
    module.

    A larger tensor only tells later which names are the same memory, since its elements are in the parameter archive.
    It is held by an alias, so that this stays so if the module gets other memory (`module.half()`).
    """
    held: dict[str, Any] = {}
    for name, value in {**program.state_dict, **program.constants, **more}.items():
        held[name] = value.detach() if isinstance(value, torch.Tensor) else value
        if isinstance(value, torch.Tensor) and value.numel() < MINIMUM_PARAMETER_ELEMENTS:
            held[name] = held[name].clone()
    return held


def _run(graph: Graph, shapes: Mapping[str, Sequence[Any]]) -> Graph:
    """Returns a copy of a graph whose inputs, by name, have these shapes. A dim that stays open has its name there."""
    mode = next(mode for mode in map(_mode_of, graph.nodes) if mode is not None)
    fixed = Graph()
    values: dict[Node, Any] = {}
    replaced: dict[Node, Any] = {}
    with mode, torch.no_grad():
        for node in graph.nodes:
            _wait_for_exports()
            if node.op == "output":
                fixed.output(map_arg(node.args[0], replaced.__getitem__))
                continue
            value = _value(node, shapes, values)
            values[node] = value
            if node.op == "call_function" and (
                node.target in _CHECKS or isinstance(value, bool | int | float)
            ):
                replaced[node] = value
                continue
            replaced[node] = fixed.node_copy(node, replaced.__getitem__)
            replaced[node].meta = {**node.meta, "val": value}
            replaced[node].meta.pop("tensor_meta", None)  # the old shape
    fixed.owning_module = graph.owning_module
    return fixed


def _wait_for_exports() -> None:
    """Waits outside of the main thread while another one exports a module: PyTorch then notes the functions that an op
    calls in a table that all threads share, and an op of either thread may fail. An export that begins during an op is
    not seen."""
    if threading.current_thread() is not threading.main_thread():
        while torch.compiler.is_exporting():
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _mode_of(node: Node) -> Any:
    return getattr(node.meta.get("val"), "fake_mode", None)


def _value(node: Node, shapes: Mapping[str, Sequence[Any]], values: Mapping[Node, Any]) -> Any:
    """Returns the value of a node on tensors without data."""
    old: Any = node.meta.get("val")
    if node.op == "placeholder":
        if node.name not in shapes:
            return old
        sizes = [
            size if isinstance(size, int) else was
            for size, was in zip(shapes[node.name], old.shape, strict=True)
        ]
        return torch.empty(sizes, dtype=old.dtype, device=old.device)
    if node.op != "call_function":
        return old
    arguments, named = map_arg((node.args, node.kwargs), values.__getitem__)
    return node.target(*arguments, **named)  # type: ignore[operator]


def open_dims(
    module: Any, arguments: tuple[Any, ...], named: Mapping[str, Any], dims: Mapping[str, Dim], *, name: str
) -> Any:
    """Returns the `dynamic_shapes` with which to export a module so that the dims that `dims` names stay open.

    A dim is called by its input and axis ("x.0"); an input by its argument, and by its place in a nested one
    ("batch_x"). Raises `ModelError` if there is no such input or axis.
    """
    bound = inspect.signature(module.forward).bind(*arguments, **named).arguments
    tensors: dict[str, Any] = {}
    for path, leaf in _pytree.tree_flatten_with_path(dict(bound))[0]:
        if isinstance(leaf, torch.Tensor):
            tensors["_".join(map(_key, path))] = leaf
    collected: Any = torch.export.ShapesCollection()  # type: ignore[no-untyped-call]
    opened: dict[str, dict[int, Any]] = {}
    for dim, choice in dims.items():
        owner, _, axis = dim.rpartition(".")
        if owner not in tensors or not axis.isdigit() or int(axis) >= tensors[owner].dim():
            raise ModelError(
                f"no dim of its inputs is called '{dim}'",
                where=name,
                hint=f"name an input and an axis, such as '{next(iter(tensors), 'x')}.0'; "
                f"inputs are: {', '.join(tensors) or 'none'}",
            )
        opened.setdefault(owner, {})[int(axis)] = _hint(choice)
    for owner, axes in opened.items():
        collected[tensors[owner]] = axes
    return collected.dynamic_shapes(module, arguments, dict(named))


def _hint(choice: Dim) -> Any:
    if choice.fixed is not None or choice.ahead or (not choice.low and choice.high is None):
        return torch.export.Dim.DYNAMIC
    return torch.export.Dim.DYNAMIC(min=choice.low, max=choice.high)


def _key(key: Any) -> str:
    text = str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", ""))))
    return re.sub(r"\W", "_", text)
