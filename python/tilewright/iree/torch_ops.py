"""Ops of the torch dialect of which IREE computes other numbers than PyTorch, rewritten as ops that it computes right.

A gelu by tanh, in which IREE 3.13 has 0.797724 for √(2/π) = 0.797885: results differ from the fifth digit on.
"""

from __future__ import annotations

import io
import math
import re
from typing import Any

from iree.compiler import ir

_INT_OF_F32 = 6
_INTS_OF_NARROW = {"f16": 5, "bf16": 15}
"""Scalar types as PyTorch numbers them."""


def spell_out_torch(source: bytes) -> bytes:
    """The module as bytecode where there was something to rewrite, else as it is, even if it is none."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(source)
        except ir.MLIRError:
            return source  # whoever compiles it says why
        found: list[Any] = []

        def collect(operation: Any) -> Any:
            if operation.name == "torch.aten.gelu" and _is_by_tanh(operation):
                found.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        for operation in found:
            with operation.location, ir.InsertionPoint(operation):
                operation.results[0].replace_all_uses_with(_gelu_by_tanh(operation))
            operation.erase()
        return _bytecode(module) if found else source


def _is_by_tanh(gelu: Any) -> bool:
    form = gelu.operands[1].owner
    return "value" in form.attributes and ir.StringAttr(form.attributes["value"]).value == "tanh"


def _bytecode(module: Any) -> bytes:
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _make(name: str, kind: Any, *operands: Any) -> Any:
    return ir.Operation.create(f"torch.{name}", results=[kind], operands=list(operands)).result


def _float(value: float) -> Any:
    attributes = {"value": ir.FloatAttr.get_f64(value)}
    kind = ir.Type.parse("!torch.float")
    return ir.Operation.create("torch.constant.float", results=[kind], attributes=attributes).result


def _int(value: int) -> Any:
    attributes = {"value": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)}
    kind = ir.Type.parse("!torch.int")
    return ir.Operation.create("torch.constant.int", results=[kind], attributes=attributes).result


def _gelu_by_tanh(gelu: Any) -> Any:
    """x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2; narrow floats are computed in f32, as PyTorch does."""
    x, kind = gelu.operands[0], gelu.results[0].type
    narrow = re.search(r",(b?f16)>$", str(kind))
    wide = ir.Type.parse(str(kind).replace(f",{narrow[1]}>", ",f32>")) if narrow else kind
    if narrow:
        x = _make("prims.convert_element_type", wide, x, _int(_INT_OF_F32))
    cube = _make("aten.mul.Tensor", wide, _make("aten.mul.Tensor", wide, x, x), x)
    scaled = _make("aten.mul.Scalar", wide, cube, _float(0.044715))
    inner = _make("aten.add.Tensor", wide, x, scaled, _int(1))
    tanh = _make("aten.tanh", wide, _make("aten.mul.Scalar", wide, inner, _float(math.sqrt(2 / math.pi))))
    factor = _make("aten.add.Scalar", wide, tanh, _float(1), _int(1))
    result = _make("aten.mul.Tensor", wide, _make("aten.mul.Scalar", wide, x, _float(0.5)), factor)
    return (
        _make("prims.convert_element_type", kind, result, _int(_INTS_OF_NARROW[narrow[1]]))
        if narrow
        else result
    )
