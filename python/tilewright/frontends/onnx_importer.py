"""ONNX to MLIR inside the worker, with IREE's importer, for a model whose large initializers were taken out.

Such an initializer arrives with name, dims and data type but no data. The importer never looks at the data of
what it turns into a named parameter, but ONNX's checker and shape inference do, so they see it as an input.
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
    """A module and what a caller needs to know about it."""

    bytecode: bytes
    """Text would lose large constants: how this process prints is fixed by IREE's global flags."""
    listing: str
    """To be read by people only."""
    function: str
    keys: dict[str, str]
    """Name of the initializer to key of the parameter."""
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]


def import_stripped_model(data: bytes, *, scope: str) -> Imported:
    """Checks, infers shapes, rewrites what is old or would give other numbers, imports.

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
    """Adds inferred value types to `model`; raises what ONNX's checker finds."""
    probe = _with_stubs_as_inputs(model, stubs)
    if not all(output.type.tensor_type.HasField("shape") for output in probe.graph.output):
        probe = onnx.shape_inference.infer_shapes(
            probe
        )  # the checker wants shapes that exporters may leave out
    onnx.checker.check_model(probe)
    inferred = onnx.shape_inference.infer_shapes(probe)
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred.graph.value_info)
    del model.graph.node[:]
    model.graph.node.extend(inferred.graph.node)  # their own graphs have types, too
    del model.graph.output[:]
    model.graph.output.extend(inferred.graph.output)


def _describe(value: onnx.ValueInfoProto) -> dict[str, Any]:
    tensor = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor.shape.dim]
    return {"name": value.name, "type": tensor.elem_type, "shape": shape}


class _Importer(externalization.IREENodeImporter):  # type: ignore[misc]
    """IREE's importer with repairs: only stubs become parameters, no two share a key, and some ops are torch's at once.

    IREE maps "a:b" and "a_b" to the same key, so that one would silently get the other's weights.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.keys: dict[str, str] = {}

    @classmethod
    def define_function(cls, *arguments: Any, **options: Any) -> _Importer:
        # The base class names itself here; build ours from what it made.
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
        """Of rows by their numbers, an [n, 1], as torch's index_put, which stays a scatter of rows.

        It has no place for numbers below zero or too large, so it is for those that `rewrites.scatters` has bounded;
        the rest goes the importer's way.
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
        """With a threshold that is a float.

        Where IREE finds the operand to be a constant, it folds the comparison with the threshold; with an integer, as
        its own import has it, to either answer, by what is in memory.
        """
        x = self._nv_map[node.input[0]]
        scale, threshold = (
            _torch("constant.float", "!torch.float", [], value=ir.FloatAttr.get_f64(value))
            for value in (1.0, 20.0)
        )
        self._nv_map[node.output[0]] = _torch("aten.softplus", str(x.type), [x, scale, threshold])
        return True

    def _handle_node_MaxPool(self, node: onnx.NodeProto) -> bool:
        """Refuses places of maxima of several planes: IREE counts them from where the plane begins, ONNX the tensor."""
        if len(node.output) > 1 and node.output[1] and self._shape(node.input[0])[:2] != [1, 1]:
            raise ModelError(
                "the second output of MaxPool, the places of the maxima, is not supported",
                where=f"'{node.name}'",
                hint="find them by an ArgMax over windows in the model",
            )
        return False

    def _shape(self, name: str) -> list[int]:
        """Empty where it is not known."""
        found = self._gi.find_type_proto_for_name(name)
        return [dim.dim_value for dim in found.tensor_type.shape.dim] if found else []

    def sanitize_name(self, name: str) -> str:
        # Only what needs no quotes in MLIR, and no "$", which names functions that IREE adds.
        key = base = re.sub(r"[^\w./-]", "_", name) or "unnamed"
        suffix = 0
        while key in self.keys.values():
            suffix += 1
            key = f"{base}.{suffix}"
        self.keys[name] = key
        return key


def _torch(name: str, kind: str, operands: list[Any], **attributes: Any) -> Any:
    """The result of a new op of the torch dialect."""
    return ir.Operation.create(
        f"torch.{name}", results=[ir.Type.parse(kind)], operands=operands, attributes=attributes
    ).result
