"""Front end for ONNX: the graph goes to IREE's importer, the weights go straight to a parameter archive.

Weights never become text and never pass through protobuf's limit of 2 GB: large initializers are removed first, so the
checker, shape inference and the importer process a small model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from tilewright.errors import IreeError, ModelError
from tilewright.frontends import ImportedModel, service
from tilewright.frontends.defaults import open_inputs, overridable
from tilewright.frontends.fixed_dims import fix_onnx_dims
from tilewright.frontends.rewrites.scatters import flatten_scatters
from tilewright.frontends.rewrites.sizes import check_inputs
from tilewright.frontends.weights import MINIMUM_PARAMETER_ELEMENTS, PARAMETER_SCOPE, PendingArchives
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.static_onnx import has_all_sizes
from tilewright.records.dims import Sizes
from tilewright.records.signature import DEFAULTS_SCOPE, Array, Signature, TensorSpec


def parse(data: bytes, *, name: str) -> onnx.ModelProto:
    """Parses a serialised model without loading its external data. Raises `ModelError` if it is not ONNX."""
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError:
        raise ModelError(
            "not an ONNX model, or a truncated one", where=name, hint="export or download it again"
        ) from None
    if not model.graph.node and not model.graph.output:
        raise ModelError("an ONNX model without a graph", where=name, hint="export or download it again")
    return model


def external_files(model: onnx.ModelProto) -> list[str]:
    """Returns the paths of the files with external data, as the model writes them, each once."""
    tensors = [*model.graph.initializer]
    for node in (*model.graph.node, *(node for function in model.functions for node in function.node)):
        tensors += _held_tensors(node)
    return sorted(
        {
            entry.value
            for tensor in tensors
            if tensor.data_location == onnx.TensorProto.EXTERNAL
            for entry in tensor.external_data
            if entry.key == "location"
        }
    )


def import_onnx(
    model: onnx.ModelProto,
    *,
    base: Path | None,
    name: str,
    compiler: IreeCompiler,
    directory: Path,
    fixed: Sizes,
) -> ImportedModel:
    """Imports a model, with `fixed` sizes for dims; paths of external data are relative to the folder `base`.

    Initializers that are inputs, too, are defaults (see `overridable`). Where the model needs them as constants, they
    are.
    """
    stripped, large = _strip(model, base=base, name=name)
    given = overridable(model)
    notes: list[str] = []
    try:
        imported, keys = _import_stripped(stripped, given, fixed, name=name, compiler=compiler)
    except ModelError as error:
        if not given:
            raise
        imported, keys = _import_stripped(stripped, [], fixed, name=name, compiler=compiler)
        notes.append(f"no initializer can be overridden by an input, because that is refused: {error}")
        given = []
    large = [tensor for tensor in large if tensor.name not in given]
    archives = PendingArchives()
    if given:
        notes.append(_note_on_defaults(given))
        tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        archives.add(
            DEFAULTS_SCOPE,
            directory / "defaults.irpa",
            ((each, _weights(tensors[each], base=base, name=name)) for each in given),
        )
    if large:
        archives.add(
            PARAMETER_SCOPE,
            directory / "model.irpa",
            ((keys[t.name], _weights(t, base=base, name=name)) for t in large),
        )

    def again(sizes: Sizes, compiler: IreeCompiler) -> ImportedModel:
        all_sizes = {**fixed, **sizes}
        static, others = _import_stripped(stripped, given, all_sizes, name=name, compiler=compiler)
        if not others.items() <= keys.items():
            raise ModelError("its weights have other names once its dims are fixed", where=name)
        return replace(static, archives=archives, notes=tuple(notes))

    return replace(imported, archives=archives, notes=tuple(notes), again=again)


def _import_stripped(
    stripped: onnx.ModelProto, given: list[str], fixed: Sizes, *, name: str, compiler: IreeCompiler
) -> tuple[ImportedModel, dict[str, str]]:
    """Imports what `_strip` returned, which stays as it is; also returns the keys of its large initializers.

    `given` are the initializers that callers may override.
    """
    model = onnx.ModelProto()
    model.CopyFrom(stripped)
    fix_onnx_dims(model, fixed, name=name)
    check_inputs(model.graph, name=name)
    flatten_scatters(model)
    answer, module = _ask(compiler, open_inputs(model, given), name=name)
    inputs = (_spec(value, name=name) for value in answer["inputs"])
    signature = Signature(
        tuple(replace(spec, has_default=spec.name in given) for spec in inputs),
        tuple(_spec(value, name=name) for value in answer["outputs"]),
    )
    imported = ImportedModel(
        source=module,
        listing=answer["listing"],
        name=name,
        signature=signature,
        entry=answer["function"],
        is_static_onnx=has_all_sizes(answer["listing"]),
    )
    return imported, answer["keys"]


def _ask(compiler: IreeCompiler, model: onnx.ModelProto, *, name: str) -> tuple[dict[str, Any], bytes]:
    """Lets the worker import a stripped model."""
    try:
        return service.import_onnx(compiler, model.SerializeToString(), scope=PARAMETER_SCOPE)
    except ModelError as error:
        raise ModelError(error.message, where=f"{name}, {error.where}", hint=error.hint) from None
    except IreeError as error:
        raise ModelError(
            f"not importable: {error.message}", where=name, hint="check it with onnx.checker.check_model"
        ) from error


def _note_on_defaults(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return (
        f"callers may override what is both an initializer and an input of the model ({len(names)}: {shown}), so it is "
        "not packed for kernels; remove weights from the graph's inputs"
    )


def _strip(
    model: onnx.ModelProto, *, base: Path | None, name: str
) -> tuple[onnx.ModelProto, list[onnx.TensorProto]]:
    """Returns a copy of the model with stubs in place of its large initializers, and these initializers."""
    large: list[onnx.TensorProto] = []
    stripped = onnx.ModelProto()
    _copy_fields(model, stripped, leave=("graph",))
    _copy_fields(model.graph, stripped.graph, leave=("initializer", "node"))
    tensors = list(model.graph.initializer)
    _refuse_sparse(model, name=name)
    for function in stripped.functions:
        for node in function.node:
            _load_held(node, base=base, name=name)
    for node in model.graph.node:
        constant = _large_constant(node)
        if constant is None:
            copy = stripped.graph.node.add()
            copy.CopyFrom(node)
            # A node's name becomes its location, which messages and explain() show.
            copy.name = node.name or next(filter(None, node.output), node.op_type)
            _load_held(copy, base=base, name=name)
            continue
        tensor = onnx.TensorProto()
        tensor.CopyFrom(constant)
        tensor.name = node.output[0]
        tensors.append(tensor)
    for tensor in tensors:
        _check(tensor, where=f"{name}, initializer '{tensor.name}'")
        if _is_large(tensor):
            large.append(tensor)
            stripped.graph.initializer.append(
                onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            )
        elif tensor.data_type == onnx.TensorProto.STRING:
            stripped.graph.initializer.append(tensor)
        else:
            # All initializers get the same encoding, because the importer does not read all of ONNX's encodings.
            array = _weights(tensor, base=base, name=name)
            stripped.graph.initializer.append(numpy_helper.from_array(array, tensor.name))
    return stripped, large


def _load_held(node: onnx.NodeProto, *, base: Path | None, name: str) -> None:
    """Loads the external data of the tensors in a node, so that nothing after us reads files that a model names."""
    for tensor in _held_tensors(node):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            array = _weights(tensor, base=base, name=name)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _refuse_sparse(model: onnx.ModelProto, *, name: str) -> None:
    if model.graph.sparse_initializer:
        tensor = model.graph.sparse_initializer[0].values
        raise ModelError(
            "sparse initializers are not supported",
            where=f"{name}, initializer '{tensor.name}'",
            hint="store it as a dense one",
        )


def _held_tensors(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    """Yields the tensors in the attributes of a node, including those in nested graphs."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            yield from graph.initializer
            for inner in graph.node:
                yield from _held_tensors(inner)


def _copy_fields(source: Any, target: Any, *, leave: tuple[str, ...]) -> None:
    for descriptor, value in source.ListFields():
        if descriptor.name in leave:
            continue
        held = getattr(target, descriptor.name)
        if hasattr(held, "extend"):
            held.extend(value)
        elif hasattr(held, "CopyFrom"):
            held.CopyFrom(value)
        else:
            setattr(target, descriptor.name, value)


def _large_constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    for attribute in node.attribute:
        if attribute.name == "value" and _is_large(attribute.t):
            return attribute.t  # type: ignore[no-any-return]
    return None


_TYPES = frozenset(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}


def _check(tensor: onnx.TensorProto, *, where: str) -> None:
    """Raises `ModelError` for a malformed initializer, which ONNX's checker does not see once it is removed."""
    if tensor.data_type not in _TYPES:
        problem = f"its data type {tensor.data_type} is none of ONNX's"
    elif min(tensor.dims, default=0) < 0:
        problem = f"its dims {list(tensor.dims)} are not a valid shape"
    else:
        return
    raise ModelError(problem, where=where, hint="export the model again")


# Types of which several elements share a byte in ONNX. Numpy has a byte for each, and so have parameters.
_PACKED = frozenset(
    getattr(onnx.TensorProto, name)
    for name in ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")
    if hasattr(onnx.TensorProto, name)
)


def _is_large(tensor: onnx.TensorProto) -> bool:
    if tensor.data_type == onnx.TensorProto.STRING:
        return False
    elements = 1
    for dim in tensor.dims:
        elements *= dim
    return elements >= MINIMUM_PARAMETER_ELEMENTS


def _weights(tensor: onnx.TensorProto, *, base: Path | None, name: str) -> Array:
    where = f"{name}, initializer '{tensor.name}'"
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        if base is None:
            raise ModelError(
                "its data is in another file, and a ModelProto does not say in which folder",
                where=where,
                hint="load the data with onnx.load, or compile the path of the model",
            )
        return _external_weights(tensor, base=base, where=where)
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"malformed data: {error}", where=where, hint="export the model again") from None


def _external_weights(tensor: onnx.TensorProto, *, base: Path, where: str) -> Array:
    """Returns the data of a tensor by mapping its file instead of reading it, so a model may be larger than memory."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    shape = tuple(tensor.dims)
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type))
    try:
        path = (base / entries["location"]).resolve()
        offset = int(entries.get("offset", "0"))
    except (KeyError, ValueError, RuntimeError):  # RuntimeError comes from symbolic links that form a cycle
        raise ModelError("malformed reference to external data", where=where) from None
    if not path.is_relative_to(base.resolve()):
        raise ModelError(
            f"its external data '{entries['location']}' is outside the model's folder", where=where
        )
    try:
        if not path.is_file():
            raise ModelError(
                f"its external data file '{path.name}' is {'no file' if path.exists() else 'missing'}",
                where=where,
                hint="put it beside the model",
            )
        if tensor.data_type in _PACKED:
            return np.asarray(numpy_helper.to_array(tensor, str(base)))
        held, needed = path.stat().st_size, math.prod(shape) * dtype.itemsize
        # This uses Python's integers, because those of np.memmap may overflow.
        if min(offset, *shape, 0) < 0 or offset + needed > held:
            raise ModelError(
                f"its external data cannot be read: {needed} bytes at {offset} are not in the {held} of '{path.name}'",
                where=where,
                hint="put the file that was exported with the model beside it",
            )
        if not needed:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"its external data cannot be read: {error}", where=where) from None


def _spec(value: dict[str, Any], *, name: str) -> TensorSpec:
    try:
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value["type"]))
    except (KeyError, ValueError):
        dtype = np.dtype(object)
    if dtype == np.dtype(object):
        raise ModelError(
            "its type has no numpy counterpart (sequences, maps, optionals and strings are not supported)",
            where=f"{name}, '{value['name']}'",
        )
    return TensorSpec(value["name"], dtype.name, tuple(value["shape"]), is_coded=value["is_coded"])
