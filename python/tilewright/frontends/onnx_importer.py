"""Import of ONNX as MLIR inside the worker, by IREE's importer, for a model whose large initializers were removed.

Such an initializer is a stub with a name, dims and data type but no data. The importer never reads the data of
initializers that become named parameters, but ONNX's checker and shape inference do; they are given the stubs as
inputs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from iree.compiler import ir
from iree.compiler.extras import onnx_importer
from iree.compiler.tools.import_onnx import importer_externalization_overrides as externalization

from tilewright.frontends.control_flow import ControlFlow
from tilewright.frontends.rewrites.axes import check_axes
from tilewright.frontends.rewrites.ceil_windows import CeilWindows
from tilewright.frontends.rewrites.functions import inline_functions, spell_out_functions
from tilewright.frontends.rewrites.geometry import check_geometry
from tilewright.frontends.rewrites.legalize import legalize, rewrite_without_types
from tilewright.frontends.rewrites.loop_types import has_loops, settle_loops
from tilewright.frontends.rewrites.narrow_types import coded_types, use_codes
from tilewright.frontends.rewrites.opsets import declare_opset, is_older, raise_opset
from tilewright.frontends.rewrites.rolled import roll_cells
from tilewright.frontends.rewrites.rule import is_stub
from tilewright.frontends.rewrites.scan8 import split_batches
from tilewright.frontends.rewrites.scatters import ROWS_IN_BOUNDS
from tilewright.frontends.rewrites.sizes import check_sizes
from tilewright.frontends.rewrites.supported import refuse_unsupported
from tilewright.frontends.rewrites.unsigned import keep_signs
from tilewright.frontends.rewrites.wide_sums import sum_in_f32
from tilewright.frontends.written import empty_torch_dialect, write_module


@dataclass(frozen=True)
class Imported:
    """A module, and what a caller needs to know about it."""

    bytecode: bytes
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
    coded = coded_types(model)
    rewrite_model(model)
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
    with empty_torch_dialect():
        importer.import_all()
    bytecode, listing = write_module(module)
    return Imported(
        bytecode=bytecode,
        listing=listing,
        function=model.graph.name,
        keys=importer.keys,
        inputs=[_describe(v, coded) for v in info.main_graph.input_map.values()],
        outputs=[_describe(v, coded) for v in info.main_graph.output_map.values()],
    )


def rewrite_model(model: onnx.ModelProto) -> None:
    """Checks a model, infers its types, and rewrites it in place to ops that IREE's importer takes and gets right."""
    declare_opset(model)
    inline_functions(model)
    check_geometry(model.graph)  # attributes, from which ONNX infers shapes
    split_batches(model)
    rewrite_without_types(model)
    if is_older(model):
        _raise_opset(model)
    taken_out = [t for t in model.graph.initializer if is_stub(t)]

    def infer() -> None:
        _infer_shapes(model, taken_out)

    windows = CeilWindows(model)
    if has_loops(model.graph):  # what is inferred around loops reaches their bodies
        _infer_outside_loops(model, taken_out)
        while windows.declare():
            _infer_outside_loops(model, taken_out)
    infer()
    while windows.declare():
        infer()
    check_geometry(model.graph)
    check_sizes(model.graph)
    if roll_cells(model):
        infer()
    legalize(model, infer, is_of_onnx=False)
    check_axes(model)
    for rewrite in (use_codes, sum_in_f32, spell_out_functions):
        if rewrite(model):
            infer()
    legalize(model, infer, is_of_onnx=True)
    if keep_signs(model):
        infer()
    refuse_unsupported(model.graph)


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
    raised = _with_stubs_as_inputs(model, [t for t in model.graph.initializer if is_stub(t)])
    raise_opset(raised)
    known = {t.name for t in raised.graph.initializer}
    raised.graph.initializer.extend(t for t in model.graph.initializer if t.name not in known)
    del raised.graph.input[:]
    raised.graph.input.extend(model.graph.input)
    # Before version 4, a constant had to be an input, too, and the converter makes some that are none.
    raised.ir_version = max(raised.ir_version, 4)
    model.CopyFrom(raised)


def _infer_shapes(model: onnx.ModelProto, stubs: list[onnx.TensorProto]) -> None:
    """Adds inferred value types to `model`, in bodies of loops, too; raises the errors of ONNX's checker."""
    _infer_outside_loops(model, stubs)
    while settle_loops(model):
        _infer_outside_loops(model, stubs)


def _infer_outside_loops(model: onnx.ModelProto, stubs: list[onnx.TensorProto]) -> None:
    probe = _with_stubs_as_inputs(model, stubs)
    if not all(output.type.tensor_type.HasField("shape") for output in probe.graph.output):
        # The checker requires shapes that exporters may omit.
        probe = onnx.shape_inference.infer_shapes(probe)
        while settle_loops(probe):
            probe = onnx.shape_inference.infer_shapes(probe)
    onnx.checker.check_model(probe)
    # Dims that a loop carries are worth more effort: results are collected in place if their names are known.
    inferred = onnx.shape_inference.infer_shapes(probe, data_prop=has_loops(model.graph))
    del model.graph.value_info[:]
    model.graph.value_info.extend(inferred.graph.value_info)
    del model.graph.node[:]
    model.graph.node.extend(inferred.graph.node)  # the nodes' own graphs have inferred types, too
    del model.graph.output[:]
    model.graph.output.extend(inferred.graph.output)


def _describe(value: onnx.ValueInfoProto, coded: Mapping[str, int]) -> dict[str, Any]:
    """Describes a tensor of the signature; `coded` has the types of those that became bytes."""
    tensor = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor.shape.dim]
    return {
        "name": value.name,
        "type": coded.get(value.name, tensor.elem_type),
        "shape": shape,
        "is_coded": value.name in coded,
    }


_TORCH_INTEGERS = {
    onnx.TensorProto.INT16: ("si16", 2),
    onnx.TensorProto.UINT32: ("ui32", 28),
}
"""Integers to which IREE's importer has no cast: their names in types of the torch dialect, and PyTorch's numbers."""
_TORCH_KINDS = {
    onnx.TensorProto.FLOAT: "f32",
    onnx.TensorProto.FLOAT16: "f16",
    onnx.TensorProto.BFLOAT16: "bf16",
    onnx.TensorProto.DOUBLE: "f64",
    **{getattr(onnx.TensorProto, f"INT{bits}"): f"si{bits}" for bits in (8, 16, 32, 64)},
    **{getattr(onnx.TensorProto, f"UINT{bits}"): f"ui{bits}" for bits in (8, 16, 32, 64)},
}
"""The names of element types in types of the torch dialect."""
_WIDTHS = {"bf16": 16, "f32": 32, "f64": 64}
"""The bits of floats whose subnormal numbers a CPU may read as zero; f16 is computed in f32, where they are normal."""
_LOW_BITS = {onnx.TensorProto.UINT16: 16, onnx.TensorProto.UINT64: 64}
"""Integers that PyTorch lacks, and their bits."""


class _Importer(externalization.IREENodeImporter, ControlFlow):  # type: ignore[misc]
    """IREE's importer with repairs: only stubs become parameters, keys are unique, some ops are imported as torch
    ops, and ops with bodies as `scf`.

    IREE maps both "a:b" and "a_b" to the same key, so one of them would silently get the weights of the other.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.keys: dict[str, str] = {}
        self._kept = []

    @classmethod
    def define_function(cls, *arguments: Any, **options: Any) -> _Importer:
        # The base class creates an instance of itself; this builds an instance of our class from its result.
        base = externalization.IREENodeImporter.define_function(*arguments, **options)
        base.__class__ = cls
        base.keys = {}
        base._kept = []
        return base  # type: ignore[no-any-return]

    def import_all(self, func: bool = True) -> None:  # noqa: FBT001, FBT002
        super().import_all(func)
        with ir.InsertionPoint.at_block_terminator(self._b), ir.Location.unknown():
            self.release_kept()

    def import_initializer(self, initializer: Any, extern_name: str | None = None) -> Any:
        if isinstance(initializer, onnx.TensorProto) and not is_stub(initializer):
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

    def _handle_node_Cast(self, node: onnx.NodeProto) -> bool:
        """Imports a cast to an integer type that IREE's importer leaves out.

        Torch has a conversion to i16 and u32. To u16 and u64 it has none, so `rewrites.ops.cast` casts to signed
        integers first, whose low bits are those of the result.
        """
        target = next(attribute.i for attribute in node.attribute if attribute.name == "to")
        value = self._nv_map[node.input[0]]
        if target in _TORCH_INTEGERS:
            kind, number = _TORCH_INTEGERS[target]
            dtype = _torch("constant.int", "!torch.int", [], value=ir.Attribute.parse(f"{number} : i64"))
            self._nv_map[node.output[0]] = _torch(
                "prims.convert_element_type", _with_element(value, kind), [value, dtype]
            )
        elif target in _LOW_BITS:
            self._nv_map[node.output[0]] = _low_bits(value, _LOW_BITS[target])
        elif target == onnx.TensorProto.BOOL and (kind := _element(value)) in _WIDTHS:
            self._nv_map[node.output[0]] = _is_nonzero(value, kind)
        else:
            return False
        return True

    def _handle_node_BitCast(self, node: onnx.NodeProto) -> bool:
        """Imports a BitCast, which IREE's importer lacks, as that of MLIR's arith dialect."""
        value = self._nv_map[node.input[0]]
        target = next(attribute.i for attribute in node.attribute if attribute.name == "to")
        kind = _TORCH_KINDS[target]
        source = _element(value)
        plain, result = (name.lstrip("su") for name in (source, kind))
        op = None if plain == result else "arith.extui" if plain == "i1" else "arith.bitcast"
        self._nv_map[node.output[0]] = _through_builtin(value, op, plain, result, kind)
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

    def _handle_node_Elu(self, node: onnx.NodeProto) -> bool:
        """Imports x < 0 ? alpha (exp x - 1) : x with expm1; IREE's own import subtracts 1 from exp x, which is zero for
        small x."""
        return self._import_elu(node, alpha=_float_attribute(node, "alpha", 1.0))

    def _handle_node_Selu(self, node: onnx.NodeProto) -> bool:
        """Imports Selu like Elu, with its constants in full; IREE's own import has five of their digits."""
        gamma = _float_attribute(node, "gamma", 1.05070102214813232421875)
        return self._import_elu(
            node, alpha=_float_attribute(node, "alpha", 1.67326319217681884765625), gamma=gamma
        )

    def _handle_node_Celu(self, node: onnx.NodeProto) -> bool:
        """Imports Celu like Elu; a negative alpha, which gives other branches, is left to IREE's importer."""
        alpha = _float_attribute(node, "alpha", 1.0)
        return alpha > 0 and self._import_elu(node, alpha=alpha, divisor=alpha)

    def _import_elu(
        self, node: onnx.NodeProto, *, alpha: float, gamma: float = 1.0, divisor: float = 1.0
    ) -> bool:
        given = self._nv_map[node.input[0]]
        if _element(given) == "f64":
            return False  # IREE's CPU back end has no expm1 in f64
        x = _converted(given, "f32")
        kind = str(x.type)

        def number(value: float) -> Any:
            return _torch("constant.float", "!torch.float", [], value=ir.FloatAttr.get_f64(value))

        def scaled(value: Any, op: str, factor: float) -> Any:
            return value if factor == 1.0 else _torch(op, kind, [value, number(factor)])

        below = _torch("aten.expm1", kind, [scaled(x, "aten.div.Scalar", divisor)])
        below = scaled(below, "aten.mul.Scalar", alpha * gamma)
        is_below = _torch("aten.lt.Scalar", _with_element(x, "i1"), [x, number(0.0)])
        above = scaled(x, "aten.mul.Scalar", gamma)
        y = _torch("aten.where.self", kind, [is_below, below, above])
        self._nv_map[node.output[0]] = _converted(y, _element(given))
        return True

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


_TORCH_FLOATS = {"f16": 5, "f32": 6, "bf16": 15}
"""PyTorch's numbers of floats."""


def _converted(value: Any, kind: str) -> Any:
    """Converts a tensor of floats."""
    if _element(value) == kind:
        return value
    number = ir.Attribute.parse(f"{_TORCH_FLOATS[kind]} : i64")
    dtype = _torch("constant.int", "!torch.int", [], value=number)
    return _torch("prims.convert_element_type", _with_element(value, kind), [value, dtype])


def _float_attribute(node: onnx.NodeProto, name: str, default: float) -> float:
    return next((attribute.f for attribute in node.attribute if attribute.name == name), default)


def _element(value: Any) -> str:
    """Returns the element type of a tensor of the torch dialect."""
    return str(value.type).rpartition(",")[2].rstrip(">")


def _with_element(value: Any, kind: str) -> str:
    """Returns the type of a tensor of the torch dialect with other elements."""
    return re.sub(r",\w+>$", f",{kind}>", str(value.type))


def _low_bits(value: Any, bits: int) -> Any:
    """Makes unsigned integers of the low bits of signed ones, i32 for u16 and i64 for u64."""
    source = 64 if str(value.type).endswith("si64>") else 32
    op = "arith.trunci" if source != bits else None
    return _through_builtin(value, op, f"i{source}", f"i{bits}", f"ui{bits}")


def _is_nonzero(value: Any, kind: str) -> Any:
    """Tests the bits of floats beside the sign.

    A comparison with zero is false for subnormal numbers on CPUs, where IREE's runtime makes the processor read them as
    zero. The bits are tested in halves, because LLVM makes a comparison of floats of a test of all of them.
    """
    half = _WIDTHS[kind] // 2
    low = _through_builtin(value, "arith.bitcast", kind, f"i{2 * half}", f"si{2 * half}")
    integers = str(low.type)

    def number(value: int) -> Any:
        return _torch("constant.int", "!torch.int", [], value=ir.Attribute.parse(f"{value} : i64"))

    high = _torch("aten.__rshift__.Scalar", integers, [low, number(half)])
    parts = [
        _torch("aten.bitwise_and.Scalar", integers, [part, number(mask)])
        for part, mask in ((low, 2**half - 1), (high, 2 ** (half - 1) - 1))
    ]
    magnitude = _torch("aten.bitwise_or.Tensor", integers, parts)
    return _torch("aten.ne.Scalar", _with_element(value, "i1"), [magnitude, number(0)])


def _through_builtin(value: Any, op: str | None, source: str, target: str, kind: str) -> Any:
    """Applies an op of MLIR's arith dialect to a tensor of the torch dialect.

    `source` and `target` are the types of the elements before and after in arith, which has no signs, and `kind` is
    that of the result in the torch dialect.
    """
    dims = re.search(r"\[(.*)\]", str(value.type))
    sizes = "".join(f"{size}x" for size in dims[1].split(",")) if dims and dims[1] else ""

    def create(name: str, result: str, operand: Any) -> Any:
        return ir.Operation.create(name, results=[ir.Type.parse(result)], operands=[operand]).result

    plain = create("torch_c.to_builtin_tensor", f"tensor<{sizes}{source}>", value)
    if op is not None:
        plain = create(op, f"tensor<{sizes}{target}>", plain)
    return create("torch_c.from_builtin_tensor", _with_element(value, kind), plain)
