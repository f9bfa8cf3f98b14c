"""Import of FX graphs as MLIR by IREE's `FxImporter`, with large weights as parameters by reference."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler import ir
from iree.compiler.dialects import util
from iree.compiler.extras import fx_importer

from tilewright.frontends.weights import MINIMUM_PARAMETER_ELEMENTS, PARAMETER_SCOPE
from tilewright.frontends.written import empty_torch_dialect, write_module
from tilewright.records.signature import Array

_SIGNED = re.compile(r"^[su](i\d+)$")


@dataclass(frozen=True)
class Imported:
    """A module, and the weights that it refers to."""

    bytecode: bytes
    listing: str
    """The module as text, for people to read only."""
    weights: dict[str, Any]
    """Tensors by the key of their parameter."""
    scope: str = PARAMETER_SCOPE

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yields the bytes of every weight; those of a contiguous tensor are not copied."""
        for key, tensor in self.weights.items():
            yield key, tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()


def import_fx(run: Callable[[Any], Any]) -> Imported:
    """Calls `run` with an importer and returns what it imported. Raises what the importer raises."""
    hooks = _WeightHooks()
    context = ir.Context()
    importer = fx_importer.FxImporter(context=context, hooks=hooks)
    importer._cc = _NamedLocations(context, py_attr_tracker=importer._py_attr_tracker)
    with empty_torch_dialect():
        run(importer)
    bytecode, listing = write_module(importer.module_op)
    return Imported(
        bytecode=bytecode,
        listing=listing,
        weights=hooks.weights,
    )


class _NamedLocations(fx_importer.ContextCache):  # type: ignore[misc]
    """Names each op after its module and node ("encoder.0/linear"), which messages and explain() show.

    IREE's importer names the line of Python, which is inside PyTorch for most ops.
    """

    def get_node_location(self, node: Any) -> Any:
        if node.op != "call_function":
            return None
        modules = list(node.meta.get("nn_module_stack", {}).values())
        path = str(modules[-1][0]) if modules else ""
        path = re.sub(r"^L\['self'\]\.?|\._modules|[\[\]']", "", path).replace("_modules.", "")
        return ir.Location.name(f"{path}/{node.name}" if path else node.name, context=self._c)


class _WeightHooks(fx_importer.FxImporterHooks):  # type: ignore[misc]
    """Makes parameters of large tensors; equal views of the same memory become one parameter."""

    def __init__(self) -> None:
        self.weights: dict[str, Any] = {}
        self._globals: dict[tuple[Any, ...], tuple[str, Any]] = {}
        self._body: Any = None

    def prepare_module(self, module_op: Any) -> None:
        self._body = module_op.regions[0].blocks[0]

    def resolve_input(self, gni: Any, value: Any, info: Any) -> Any:
        return self._parameter(gni, value, info.input_spec.target)

    def resolve_literal(self, gni: Any, literal: Any, info: Any) -> Any:
        return self._parameter(gni, literal, "constant")

    def _parameter(self, gni: Any, value: Any, name: str) -> Any:
        """Returns a load of the tensor as a parameter, or None if it is to be a constant."""
        if not isinstance(value, torch.Tensor):
            return None
        # IREE computes bf16 in f32 on most CPUs, and converts the type of a constant without its elements.
        least = 2 if value.dtype == torch.bfloat16 else MINIMUM_PARAMETER_ELEMENTS
        if value.numel() < least:
            return None
        identity = (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype)
        if identity not in self._globals:
            self._globals[identity] = self._declare(gni, value, name)
        symbol, kind = self._globals[identity]
        with ir.Location.name(name, context=gni._c):
            load = util.GlobalLoadOp(kind, symbol)
            return ir.Operation.create(
                "torch_c.from_builtin_tensor",
                results=[gni._cc.tensor_to_vtensor_type(value)],
                operands=[load.result],
            ).result

    def _declare(self, gni: Any, value: Any, name: str) -> tuple[str, Any]:
        # A key has only characters that need no quotes in MLIR.
        key = base = re.sub(r"[^\w./-]", "_", name) or "unnamed"
        suffix = 0
        while key in self.weights:
            suffix += 1
            key = f"{base}.{suffix}"
        self.weights[key] = value
        element = str(gni._cc.dtype_to_type(value.dtype))
        element = _SIGNED.sub(r"\1", element)
        shape = "".join(f"{dim}x" for dim in value.shape)
        with gni._c, ir.InsertionPoint.at_block_begin(self._body), ir.Location.unknown():
            kind = ir.Type.parse(f"tensor<{shape}{element}>")
            reference = f'#stream.parameter.named<"{PARAMETER_SCOPE}"::"{key}"> : {kind}'
            util.GlobalOp(
                ir.StringAttr.get(key),
                ir.TypeAttr.get(kind),
                sym_visibility=ir.StringAttr.get("private"),
                initial_value=ir.Attribute.parse(reference),
            )
        return key, kind
