"""Import of ONNX as MLIR inside the worker, by IREE's importer, for a model whose large initializers were removed.

Such an initializer is a stub with a name, dims and data type but no data. The importer never reads the data of
initializers that become named parameters, but ONNX's checker and shape inference do; they are given the stubs as
inputs.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import Any

import onnx
from iree.compiler import ir
from iree.compiler.extras import onnx_importer
from iree.compiler.tools.import_onnx import importer_externalization_overrides as externalization

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.axes import check_axes
from tilewright.frontends.rewrites.functions import inline_functions, spell_out_functions
from tilewright.frontends.rewrites.miscomputed import spell_out_miscomputed
from tilewright.frontends.rewrites.opsets import is_older, raise_opset
from tilewright.frontends.rewrites.scatters import ROWS_IN_BOUNDS
from tilewright.frontends.rewrites.shapes import fold_shapes
from tilewright.frontends.rewrites.unsigned import keep_signs
from tilewright.frontends.rewrites.wide_sums import sum_in_f32


@dataclass(frozen=True)
class Imported:
    """A module, and what a caller needs to know about it."""

    bytecode: bytes
    """The module as bytecode, because text would lose large constants: IREE's global flags determine how this process
    prints."""
    listing: str
    """The module as text, for people to read only."""
    function: str
    keys: dict[str, str]
    """Maps the name of each stub to the key of its parameter."""
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


def import_stripped_model(data: bytes, *, scope: str) -> Imported:
    """Checks a model, infers its shapes, rewrites ops that are old or would be miscomputed, and imports it.

    Stubs become parameters in `scope`.
    """
    model = onnx.ModelProto.FromString(data)
    inline_functions(model)
    if is_older(model):
        _raise_opset(model)
    taken_out = [t for t in model.graph.initializer if _is_stub(t)]
    _infer_shapes(model, taken_out)
    check_axes(model)
    for rewrite in (sum_in_f32, spell_out_functions):
        if rewrite(model):
            _infer_shapes(model, taken_out)
    while fold_shapes(model):
        _infer_shapes(model, taken_out)
    for rewrite in (spell_out_miscomputed, keep_signs):
        if rewrite(model):
            _infer_shapes(model, taken_out)
    info = onnx_importer.ModelInfo(model)
    module = info.create_module(context=ir.Context()).operation
    parameters = externalization.ParamData(
        param_bit_threshold=None,
        num_elements_threshold=0,
        params_scope=scope,
        data_dir="",
        param_path="",
        input_index_threshold=None,
    )
    importer = _Importer.define_function(info.main_graph, module, parameters)
    importer.import_all()
    module.verify()
    stream = io.BytesIO()
    module.write_bytecode(stream)
    return Imported(
        bytecode=stream.getvalue(),
        listing=module.get_asm(large_elements_limit=32, assume_verified=True),
        function=model.graph.name,
        keys=importer.keys,
        inputs=[_describe(v) for v in info.main_graph.input_map.values()],
        outputs=[_describe(v) for v in info.main_graph.output_map.values()],
    )


def _is_stub(tensor: onnx.TensorProto) -> bool:
    if tensor.HasField("raw_data") or tensor.string_data:
        return False
    held = (
        tensor.float_data,
        tensor.int32_data,
        tensor.int64_data,
        tensor.double_data,
        tensor.uint64_data,
    )
    elements = 1
    for dim in tensor.dims:
        elements *= dim
    return elements > 0 and not any(held)


def _with_stubs_as_inputs(model: onnx.ModelProto, stubs: list[onnx.TensorProto]) -> onnx.ModelProto:
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    names = {t.name for t in stubs}
    kept = [t for t in probe.graph.initializer if t.name not in names]
    del probe.graph.initializer[:]
    probe.graph.initializer.extend(kept)
    declared = {v.name for v in probe.graph.input}
    for stub in stubs:
        if stub.name not in declared:
            probe.graph.input.append(
                onnx.helper.make_tensor_value_info(stub.name, stub.data_type, list(stub.dims))
            )
    return probe


def _raise_opset(model: onnx.ModelProto) -> None:
    raised = _with_stubs_as_inputs(model, [t for t in model.graph.initializer if _is_stub(t)])
    raise_opset(raised)
    known = {t.name for t in raised.graph.initializer}
    raised.graph.initializer.extend(t for t in model.graph.initializer if t.name not in known)
    del raised.graph.input[:]
    raised.graph.input.extend(model.graph.input)
    model.CopyFrom(raised)


def _infer_shapes(model: onnx.ModelProto, stubs: list[onnx.TensorProto]) -> None:
    """Adds inferred value types to `model`; raises the errors of ONNX's checker."""
    probe = _with_stubs_as_inputs(model, stubs)
    if not all(output.type.tensor_type.HasField("shape") for output in probe.graph.output):
        probe = onnx.shape_inference.infer_shapes(
            probe
        )  # the checker requires shapes that exporters may omit
    onnx.checker.check_model(probe)
    inferred = onnx.shape_inference.infer_shapes(probe)
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred.graph.value_info)
    del model.graph.node[:]
    model.graph.node.extend(inferred.graph.node)  # the nodes' own graphs have inferred types, too
    del model.graph.output[:]
    model.graph.output.extend(inferred.graph.output)


def _describe(value: onnx.ValueInfoProto) -> dict[str, Any]:
    tensor = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor.shape.dim]
    return {"name": value.name, "type": tensor.elem_type, "shape": shape}


class _Importer(externalization.IREENodeImporter):  # type: ignore[misc]
    """IREE's importer with repairs: only stubs become parameters, keys are unique, and some ops are imported as torch
    ops.

    IREE maps both "a:b" and "a_b" to the same key, so one of them would silently get the weights of the other.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.keys: dict[str, str] = {}

    @classmethod
    def define_function(cls, *arguments: Any, **options: Any) -> _Importer:
        # The base class creates an instance of itself; this builds an instance of our class from its result.
        base = externalization.IREENodeImporter.define_function(*arguments, **options)
        base.__class__ = cls
        base.keys = {}
        return base  # type: ignore[no-any-return]

    def import_initializer(self, initializer: Any, extern_name: str | None = None) -> Any:
        if isinstance(initializer, onnx.TensorProto) and not _is_stub(initializer):
            value = onnx_importer.NodeImporter.import_initializer(self, initializer, extern_name)
            self._nv_map[extern_name or initializer.name] = value
            return value
        return super().import_initializer(initializer, extern_name)

    def _handle_node_ScatterND(self, node: onnx.NodeProto) -> bool:
        """Imports a scatter of whole rows, whose row numbers are of shape [n, 1], as torch's index_put, which remains
        a scatter of rows.

        index_put does not support row numbers that are negative or too large. So this handles only scatters that
        `rewrites.scatters` made, whose row numbers are in bounds; IREE's importer handles all others.
        """
        if node.doc_string != ROWS_IN_BOUNDS:
            return False
        data, numbers, rows = (self._nv_map[name] for name in node.input)
        last = _torch("constant.int", "!torch.int", [], value=ir.Attribute.parse("1 : i64"))
        count = self._shape(node.input[1])[0]
        flat = _torch("aten.squeeze.dim", f"!torch.vtensor<[{count}],si64>", [numbers, last])
        chosen = _torch("prim.ListConstruct", "!torch.list<optional<vtensor>>", [flat])
        no = _torch("constant.bool", "!torch.bool", [], value=ir.BoolAttr.get(False))
        self._nv_map[node.output[0]] = _torch("aten.index_put", str(data.type), [data, chosen, rows, no])
        return True

    def _handle_node_Softplus(self, node: onnx.NodeProto) -> bool:
        """Imports Softplus with a floating-point threshold.

        IREE's own import uses an integer. If the operand is a constant, IREE then folds the comparison with this
        threshold to an arbitrary answer, which depends on the contents of memory.
        """
        x = self._nv_map[node.input[0]]
        scale, threshold = (
            _torch("constant.float", "!torch.float", [], value=ir.FloatAttr.get_f64(value))
            for value in (1.0, 20.0)
        )
        self._nv_map[node.output[0]] = _torch("aten.softplus", str(x.type), [x, scale, threshold])
        return True

    def _handle_node_MaxPool(self, node: onnx.NodeProto) -> bool:
        """Refuses indices of maxima if the tensor has several planes: IREE counts from the beginning of the plane,
        ONNX from that of the tensor."""
        if len(node.output) > 1 and node.output[1] and self._shape(node.input[0])[:2] != [1, 1]:
            raise ModelError(
                "the second output of MaxPool, the indices of the maxima, is not supported",
                where=f"'{node.name}'",
                hint="find them by an ArgMax over windows in the model",
            )
        return False

    def _shape(self, name: str) -> list[int]:
        """Returns the shape of a value, or an empty list if it is not known."""
        found = self._gi.find_type_proto_for_name(name)
        return [dim.dim_value for dim in found.tensor_type.shape.dim] if found else []

    def sanitize_name(self, name: str) -> str:
        # The key has only characters that need no quotes in MLIR, and no "$", which IREE uses in the names of
        # functions that it adds.
        key = base = re.sub(r"[^\w./-]", "_", name) or "unnamed"
        suffix = 0
        while key in self.keys.values():
            suffix += 1
            key = f"{base}.{suffix}"
        self.keys[name] = key
        return key


def _torch(name: str, kind: str, operands: list[Any], **attributes: Any) -> Any:
    """Creates an op of the torch dialect and returns its result."""
    return ir.Operation.create(
        f"torch.{name}", results=[ir.Type.parse(kind)], operands=operands, attributes=attributes
    ).result
