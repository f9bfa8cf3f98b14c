"""Fixes the sizes of dims that a model leaves open, before its ops are imported.

ONNX: the sizes replace the names of dims, so that shape inference and folding see them. MLIR: the function's arguments
get static types, and a cast to the type that the body was written for, which IREE's canonicalization moves through the
body until everything behind it is static.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from tilewright.errors import ModelError
from tilewright.records.dims import open_axes, settle_names


def onnx_inputs(model: onnx.ModelProto) -> list[tuple[str, Sequence[int | str | None]]]:
    """Returns the name and shape of every input that is not an initializer."""
    held = {tensor.name for tensor in model.graph.initializer}
    return [
        (value.name, [_size(dim) for dim in value.type.tensor_type.shape.dim])
        for value in model.graph.input
        if value.name not in held
    ]


def _size(dim: Any) -> int | str | None:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None


def fix_onnx_dims(model: onnx.ModelProto, given: Mapping[str, int], *, name: str) -> None:
    """Fixes dims in place. Raises `ModelError` if there is no such dim."""
    inputs = onnx_inputs(model)
    sizes = settle_names(given, inputs, where=name)
    if not sizes:
        return
    values = {value.name: value for value in model.graph.input}
    for axis in open_axes(inputs):
        if axis.dim in sizes:
            dim = values[inputs[axis.input][0]].type.tensor_type.shape.dim[axis.axis]
            dim.dim_value = sizes[axis.dim]
    _rename(model.graph, sizes)


def _rename(graph: onnx.GraphProto, sizes: Mapping[str, int]) -> None:
    """Replaces named dims by their sizes in the types of a graph and of those in its nodes."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                _rename(inner, sizes)


def fix_mlir_dims(source: bytes, given: Mapping[str, int], *, entry: str | None, name: str) -> bytes:
    """Returns a module, as bytecode, whose entry takes tensors of fixed sizes; dims are called "input0.1".

    It runs in the worker, where IREE's libraries are. Raises `ModelError` if there is no such dim, or no one function.
    """
    from iree.compiler import ir

    from tilewright.frontends.written import write_module
    from tilewright.iree.service import argument_names

    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(source)
        function = _entry(module, entry, name)
        kinds = [str(argument.type) for argument in function.regions[0].blocks[0].arguments]
        named = argument_names(function.regions[0]) if b"jax." in source else []
        is_named = len(set(named) - {""}) == len(kinds)
        inputs = [(named[i] if is_named else f"input{i}", shape_of(kind)) for i, kind in enumerate(kinds)]
        sizes = settle_names(given, inputs, where=name)
        static: dict[int, list[Any]] = {}
        for axis in open_axes(inputs):
            if axis.dim in sizes:
                shape = static.setdefault(axis.input, list(inputs[axis.input][1]))
                shape[axis.axis] = sizes[axis.dim]
        for position, shape in static.items():
            _fix_argument(ir, function, position, _with_shape(kinds[position], shape))
        return write_module(module.operation)[0]


def _entry(module: Any, entry: str | None, name: str) -> Any:
    from tilewright.iree.service import is_public

    functions = [
        operation.operation
        for operation in module.body.operations
        if operation.operation.name in ("func.func", "util.func")
        and is_public(operation.operation.attributes)
    ]
    names = [str(function.attributes["sym_name"]).strip('"') for function in functions]
    if entry is None and len(functions) == 1:
        return functions[0]
    if entry in names:
        return functions[names.index(entry)]
    raise ModelError(
        f"dims are fixed in one function, and it has: {', '.join(names) or 'none'}",
        where=name,
        hint="choose one with entry=",
    )


def shape_of(kind: str) -> list[int | str | None]:
    """Returns the shape in the text of a tensor type, of the builtin or of the torch dialect; [] for other types."""
    if kind.startswith("tensor<"):
        dims = kind.removeprefix("tensor<").split("x")[:-1]
    elif kind.startswith(("!torch.vtensor<[", "!torch.tensor<[")):
        dims = kind.partition("[")[2].partition("]")[0].split(",")
    else:
        return []
    return [int(dim) if dim.isdigit() else None for dim in dims if dim == "?" or dim.isdigit()]


def _with_shape(kind: str, shape: Sequence[int | None]) -> str:
    """Returns the text of a tensor type with other sizes."""
    sizes = ["?" if size is None else str(size) for size in shape]
    if kind.startswith("tensor<"):
        start = len("tensor<")
        for _ in shape:
            start = kind.index("x", start) + 1
        return f"tensor<{''.join(f'{size}x' for size in sizes)}{kind[start:]}"
    before, _, rest = kind.partition("[")
    return f"{before}[{','.join(sizes)}]{rest.partition(']')[2]}"


def _fix_argument(ir: Any, function: Any, position: int, static: str) -> None:
    """Gives an argument a static type, and the body a cast of it to the type that it had."""
    block = function.regions[0].blocks[0]
    argument = block.arguments[position]
    was, kind = argument.type, ir.Type.parse(static)
    op = "tensor.cast" if static.startswith("tensor<") else "torch.tensor_static_info_cast"
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        cast = ir.Operation.create(op, results=[was], operands=[argument])
    argument.replace_all_uses_except(cast.result, cast)
    argument.set_type(kind)
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [kind if i == position else each for i, each in enumerate(signature.inputs)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, signature.results))
