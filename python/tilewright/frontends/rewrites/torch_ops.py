"""Rewrites of torch ops for which IREE computes other numbers than PyTorch, or fails.

In a gelu by tanh, IREE 3.13 has 0.797724 for √(2/π) = 0.797885, so results differ from the fifth digit on. Sums,
means, norms and losses of f16 and bf16 are accumulated in f32 and rounded once by PyTorch, but IREE keeps them in the
type of the operands: a mean of 1024 numbers near 100 becomes infinite in f16. Where a view merges open dims, IREE takes
one for a dim of one element; where its type lacks a length that it is given, IREE takes -1 for the open ones.
"""

from __future__ import annotations

import functools
import io
import math
import re
from collections.abc import Callable
from typing import Any

from iree.compiler import ir

_INT_OF_F32 = 6
_INTS_OF_NARROW = {"f16": 5, "bf16": 15}
"""PyTorch's numbers for scalar types."""
_SUMMING: dict[str, int | None] = {
    "aten._adaptive_avg_pool2d": None,
    "aten._adaptive_avg_pool3d": None,
    "aten._log_softmax": None,
    "aten.adaptive_avg_pool1d": None,
    "aten.adaptive_avg_pool2d": None,
    "aten.adaptive_avg_pool3d": None,
    "aten.avg_pool1d": None,
    "aten.avg_pool2d": None,
    "aten.avg_pool3d": None,
    "aten.cross_entropy_loss": None,
    "aten.cumsum": 2,
    "aten.frobenius_norm.dim": None,
    "aten.group_norm": None,
    "aten.layer_norm": None,
    "aten.linalg_vector_norm": 4,
    "aten.log_softmax.int": 2,
    "aten.mean": 1,
    "aten.mean.dim": 3,
    "aten.mse_loss": None,
    "aten.native_group_norm": None,
    "aten.native_layer_norm": None,
    "aten.nll_loss_forward": None,
    "aten.norm.Scalar": None,
    "aten.norm.ScalarOpt_dim": None,
    "aten.prod": 1,
    "aten.prod.dim_int": 3,
    "aten.rms_norm": None,
    "aten.std": None,
    "aten.std.correction": None,
    "aten.std.dim": None,
    "aten.sum": 1,
    "aten.sum.dim_IntList": 3,
    "aten.var_mean": None,
    "aten.var_mean.correction": None,
    "aten.var_mean.dim": None,
}
"""Ops that sum, with the index of the operand that names the type of the result. IREE accumulates softmax, var,
batch_norm, instance_norm, matmuls and convolutions in f32 itself."""


def spell_out_torch(source: bytes) -> bytes:
    """Returns the module as bytecode if something was rewritten, else `source` unchanged, even if it is not a
    module."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(source)
        except ir.MLIRError:
            return source  # compiling it later reports why
        found: list[tuple[Any, Callable[[Any], list[Any]]]] = []

        def collect(operation: Any) -> Any:
            if operation.name == "torch.aten.gelu" and _is_by_tanh(operation):
                found.append((operation, lambda gelu: [_gelu_by_tanh(gelu)]))
            elif _is_narrow_sum(operation):
                found.append((operation, _sum_in_f32))
            elif operation.name == "torch.aten.view" and _has_open_dims_to_merge(operation):
                found.append((operation, lambda view: [_flatten_first(view)]))
            elif (
                operation.name == "torch.aten.view" and _with_lengths(operation) != operation.results[0].type
            ):
                found.append((operation, lambda view: [_view(view, *view.operands)]))
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        for operation, rewrite in found:
            with operation.location, ir.InsertionPoint(operation):
                for result, value in zip(operation.results, rewrite(operation), strict=True):
                    result.replace_all_uses_with(value)
            operation.erase()
        return _bytecode(module) if found else source


def _is_by_tanh(gelu: Any) -> bool:
    form = gelu.operands[1].owner
    return "value" in form.attributes and ir.StringAttr(form.attributes["value"]).value == "tanh"


def _has_open_dims_to_merge(view: Any) -> bool:
    operand, result = (str(value.type) for value in (view.operands[0], view.results[0]))
    return operand.count("?") > 1 and result.count(",") > 1


def _flatten_first(view: Any) -> Any:
    """Makes all dims one before they become those of the result."""
    x, shape = view.operands
    kind = re.sub(r"\[.*\]", "[?]", str(x.type))
    all_elements = _make("prim.ListConstruct", shape.type, _int(-1))
    flat = _make("aten.view", ir.Type.parse(kind), x, all_elements)
    lengths = [*shape.owner.operands]
    if (rest := [place for place, length in enumerate(lengths) if _is_rest(length)]) and len(lengths) > 1:
        lengths[rest[0]] = _length_of_rest(x, [length for length in lengths if not _is_rest(length)])
    return _view(view, flat, _make("prim.ListConstruct", shape.type, *lengths))


def _view(view: Any, x: Any, shape: Any) -> Any:
    """Makes the view with a type that has all of its constant lengths, without which IREE loses the open ones."""
    result = view.results[0].type
    exact = _make("aten.view", _with_lengths(view), x, shape)
    return exact if exact.type == result else _make("tensor_static_info_cast", result, exact)


def _with_lengths(view: Any) -> Any:
    """Returns the type of the result with the constant lengths that the view is given."""
    result = view.results[0].type
    found = re.fullmatch(r"(!torch.vtensor<\[)(.*?)(\].*)", str(result))
    if found is None or getattr(view.operands[1].owner, "name", "") != "torch.prim.ListConstruct":
        return result
    lengths = [_constant(length) for length in view.operands[1].owner.operands]
    sizes = found[2].split(",")
    if len(sizes) != len(lengths):
        return result
    exact = [
        size if size != "?" or n is None or n < 0 else str(n) for size, n in zip(sizes, lengths, strict=True)
    ]
    return ir.Type.parse(f"{found[1]}{','.join(exact)}{found[3]}")


def _constant(length: Any) -> int | None:
    """Returns a length that is known, or None."""
    if getattr(length.owner, "name", "") != "torch.constant.int":
        return None
    return int(ir.IntegerAttr(length.owner.attributes["value"]).value)


def _is_rest(length: Any) -> bool:
    """Returns True for the -1 that stands for the length that is left."""
    return _constant(length) == -1


def _length_of_rest(x: Any, lengths: list[Any]) -> Any:
    """Divides the number of elements by the other lengths, because IREE takes -1 for a length here."""
    kind = ir.Type.parse("!torch.int")
    others = functools.reduce(lambda product, length: _make("aten.mul.int", kind, product, length), lengths)
    return _make("aten.floordiv.int", kind, _make("aten.numel", kind, x), others)


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


def _narrow(kind: Any) -> str | None:
    """Returns the element type of a tensor of f16 or bf16; None for all other types."""
    found = re.search(r",(b?f16)>$", str(kind))
    return found[1] if found else None


def _wide(kind: Any) -> Any:
    """Returns the type of the tensor in f32 if its elements are f16 or bf16, else the type itself."""
    narrow = _narrow(kind)
    return ir.Type.parse(str(kind).replace(f",{narrow}>", ",f32>")) if narrow else kind


def _widened(value: Any) -> Any:
    if not _narrow(value.type):
        return value
    return _make("prims.convert_element_type", _wide(value.type), value, _int(_INT_OF_F32))


def _rounded(value: Any, kind: Any) -> Any:
    """Rounds a value in f32 to the tensor type `kind`."""
    narrow = _narrow(kind)
    return (
        _make("prims.convert_element_type", kind, value, _int(_INTS_OF_NARROW[narrow])) if narrow else value
    )


def _is_narrow_sum(operation: Any) -> bool:
    if operation.name.removeprefix("torch.") not in _SUMMING:
        return False
    return bool(_narrow(operation.operands[0].type) and any(_narrow(r.type) for r in operation.results))


def _sum_in_f32(operation: Any) -> list[Any]:
    """Computes the op on operands in f32 and rounds its results to their own types."""
    operands = [_widened(operand) for operand in operation.operands]
    index = _SUMMING[operation.name.removeprefix("torch.")]
    if index is not None:
        none = ir.Type.parse("!torch.none")
        operands[index] = ir.Operation.create("torch.constant.none", results=[none]).result
    kinds = [result.type for result in operation.results]
    attributes = {named.name: named.attr for named in operation.attributes}
    wide = ir.Operation.create(
        operation.name, results=[_wide(kind) for kind in kinds], operands=operands, attributes=attributes
    )
    return [_rounded(value, kind) for value, kind in zip(wide.results, kinds, strict=True)]


def _gelu_by_tanh(gelu: Any) -> Any:
    """Computes x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2; narrow floats are computed in f32, as in PyTorch."""
    kind = gelu.results[0].type
    x, wide = _widened(gelu.operands[0]), _wide(kind)
    cube = _make("aten.mul.Tensor", wide, _make("aten.mul.Tensor", wide, x, x), x)
    scaled = _make("aten.mul.Scalar", wide, cube, _float(0.044715))
    inner = _make("aten.add.Tensor", wide, x, scaled, _int(1))
    tanh = _make("aten.tanh", wide, _make("aten.mul.Scalar", wide, inner, _float(math.sqrt(2 / math.pi))))
    factor = _make("aten.add.Scalar", wide, tanh, _float(1), _int(1))
    return _rounded(
        _make("aten.mul.Tensor", wide, _make("aten.mul.Scalar", wide, x, _float(0.5)), factor), kind
    )
