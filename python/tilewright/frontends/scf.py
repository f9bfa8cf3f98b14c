"""Pieces of structured control flow in MLIR: conversions between torch's and builtin tensors, slices, and checks.

Bodies of loops and branches consist of torch ops, while `scf` carries builtin tensors. Each function inserts its ops at
the current insertion point of IREE's Python bindings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, cf, flow, hal, tensor

from tilewright.errors import ModelError

Value = Any
"""An SSA value of IREE's Python bindings, which have no types of their own."""

Length = int | Value
"""The length of a dim: a number, or an index that is known when the program runs."""

_TENSOR = re.compile(r"!torch\.vtensor<\[([^\]]*)\],(.+)>")
_SIGNED = re.compile(r"^[su]i(?=\d)")


def builtin_type(torch_type: Any, *, where: str) -> Any:
    """Returns the builtin tensor type of a torch tensor type: integers lose their signedness. Raises `ModelError` for
    lists, optionals and the like."""
    match = _TENSOR.fullmatch(str(torch_type))
    if match is None:
        raise ModelError(
            f"a loop or branch passes on a value of type {torch_type}, which is no tensor",
            where=where,
            hint="pass tensors only, such as the concatenation of a sequence",
        )
    dims, element = match.groups()
    shape = "".join(f"{dim}x" for dim in dims.split(",") if dim)
    return ir.Type.parse(f"tensor<{shape}{_SIGNED.sub('i', element)}>")


def to_builtin(value: Value, *, where: str) -> Value:
    kind = builtin_type(value.type, where=where)
    return ir.Operation.create("torch_c.to_builtin_tensor", results=[kind], operands=[value]).result


def from_builtin(value: Value, torch_type: Any) -> Value:
    return ir.Operation.create("torch_c.from_builtin_tensor", results=[torch_type], operands=[value]).result


def index(number: Length) -> Value:
    return arith.constant(ir.IndexType.get(), number) if isinstance(number, int) else number


def boolean(truth: bool) -> Value:  # noqa: FBT001
    return arith.constant(ir.IntegerType.get_signless(1), int(truth))


def scalar(value: Value) -> Value:
    """Reads the only element of a tensor."""
    zero = index(0)
    return tensor.extract(value, [zero] * value.type.rank)


def single(number: Value, kind: Any) -> Value:
    """Makes a tensor of one element."""
    return tensor.FromElementsOp(kind, [number]).result


def shape_of(kind: Any) -> list[int]:
    """Returns the lengths that a builtin tensor type states, with -1 for a dim of unknown length."""
    return [-1 if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim in range(kind.rank)]


def length(value: Value, dim: int) -> Length:
    known = shape_of(value.type)[dim]
    return known if known >= 0 else tensor.dim(value, index(dim))


def lengths(value: Value) -> list[Length]:
    return [length(value, dim) for dim in range(value.type.rank)]


def tensor_type(shape: Sequence[int], element: Any) -> Any:
    """Returns a builtin tensor type; -1 stands for a dim of unknown length."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return ir.RankedTensorType.get([dynamic if dim < 0 else dim for dim in shape], element)


def empty(kind: Any, sizes: Sequence[Length]) -> Value:
    """Makes an uninitialised tensor; `sizes` has the length of each dim, of which the type may already state some."""
    given = [
        index(size) if kind.is_dynamic_dim(dim) else kind.get_dim_size(dim) for dim, size in enumerate(sizes)
    ]
    return tensor.EmptyOp(given, kind.element_type).result


def take(value: Value, axis: int, position: Length) -> Value:
    """Returns the slice of a tensor at a position along an axis, without this axis."""
    sizes = lengths(value)
    sizes[axis] = 1
    shape = shape_of(value.type)
    kind = tensor_type(shape[:axis] + shape[axis + 1 :], value.type.element_type)
    return tensor.ExtractSliceOp(kind, value, *_window(sizes, axis, position)).result


def first(value: Value, count: Value) -> Value:
    """Returns the first `count` slices of a tensor along its first axis."""
    kind = tensor_type([-1, *shape_of(value.type)[1:]], value.type.element_type)
    return tensor.ExtractSliceOp(kind, value, *_window([count, *lengths(value)[1:]], 0, 0)).result


def put(value: Value, target: Value, axis: int, position: Length) -> Value:
    """Returns a tensor with a slice replaced, at a position along an axis that the slice lacks."""
    sizes = lengths(value)
    sizes.insert(axis, 1)
    return tensor.InsertSliceOp(value, target, *_window(sizes, axis, position)).result


def put_all(value: Value, target: Value, axis: int, position: Length) -> Value:
    """Returns a tensor with some of its slices along an axis replaced, from a position on."""
    return tensor.InsertSliceOp(value, target, *_window(lengths(value), axis, position)).result


def from_end(count: Length, step: Value) -> Value:
    """Returns the position of a step that is counted from the end."""
    last = count - 1 if isinstance(count, int) else arith.subi(count, index(1))
    return arith.subi(index(last), step)


@dataclass(frozen=True)
class Carrier:
    """How a tensor crosses the border of a loop or branch, so that IREE 3.13 compiles it right.

    In a model with dims of unknown length, a tensor is boxed: it crosses as a buffer view, which holds its lengths and
    has a buffer of its own. The host then waits for it in each iteration. Otherwise,

    - `scf.for` would keep the lengths of the initial value, although iterations change them;
    - `scf.while` and `scf.if` would not compile if some lengths are not known;
    - a loop may take a tensor for another one that lies in the same allocation, because integer range analysis
      overlooks the initial offset of what it carries, unless the offset is a constant.
    """

    type: Any
    is_boxed: bool

    @property
    def carried_type(self) -> Any:
        return ir.Type.parse("!hal.buffer_view") if self.is_boxed else self.type

    def pack(self, value: Value, *, what: str, where: str) -> Value:
        value = as_type(value, self.type, what=what, where=where)
        if not self.is_boxed:
            return value
        dims = [size for size in lengths(value) if not isinstance(size, int)]
        # Each view is one of its own, since a view that crosses twice is null the second time.
        hidden = _barrier(value)
        tied = flow.TensorTieShapeOp(hidden, dims).result if dims else hidden
        return hal.TensorExportOp(self.carried_type, tied, ir.TypeAttr.get(value.type), dims).result

    def unpack(self, packed: Value) -> Value:
        if not self.is_boxed:
            return packed
        dims = [
            hal.BufferViewDimOp(packed, dim).result
            for dim in range(self.type.rank)
            if self.type.is_dynamic_dim(dim)
        ]
        encoding = ir.TypeAttr.get(self.type)
        return hal.TensorImportOp(self.type, packed, encoding, dims).target


def opaque(number: Length) -> Value:
    """Returns an index whose value the compiler does not see."""
    return _barrier(index(number))


def keep(value: Value) -> None:
    """Uses a tensor, so that nothing that was imported before overwrites it.

    IREE 3.13 writes into the buffer of a view if nothing reads it afterwards, although others may have the view, too.
    """
    _barrier(value)


def anchor(previous: Value | None = None) -> Value:
    """Makes a tensor that a loop or branch carries beside boxed ones, from the one that it was given.

    Without any tensor among what an op carries, IREE 3.13 forgets that its body has to wait for what was computed
    before.
    """
    if previous is None:
        byte = arith.constant(ir.IntegerType.get_signless(8), 0)
        previous = single(byte, tensor_type([1], byte.type))
    return _barrier(previous)


def _barrier(value: Value) -> Value:
    return ir.Operation.create("util.optimization_barrier", results=[value.type], operands=[value]).result


_Window = tuple[list[Value], list[Value], list[Value], list[int], list[int], list[int]]


def _window(sizes: Sequence[Length], axis: int, position: Length) -> _Window:
    """Returns the offsets, sizes and strides of a slice that begins at a position along one axis: those that are known
    only when the program runs, and those that are known now."""
    unknown = ir.ShapedType.get_dynamic_size()
    offsets = [position if dim == axis else 0 for dim in range(len(sizes))]
    dynamic = [[number for number in numbers if not isinstance(number, int)] for numbers in (offsets, sizes)]
    static = [[n if isinstance(n, int) else unknown for n in numbers] for numbers in (offsets, sizes)]
    return dynamic[0], dynamic[1], [], static[0], static[1], [1] * len(sizes)


def require_equal(left: Length, right: Length, message: str) -> None:
    """Ends the program with an error if two lengths differ when it runs."""
    if isinstance(left, int) and isinstance(right, int) and left == right:
        return
    cf.assert_(arith.cmpi(arith.CmpIPredicate.eq, index(left), index(right)), message)


def as_type(value: Value, kind: Any, *, what: str, where: str) -> Value:
    """Returns a builtin tensor under a type that states more or fewer lengths; those that only the new type states
    are checked when the program runs. Raises `ModelError` if the types contradict each other."""
    if value.type == kind:
        return value
    given, asked = shape_of(value.type), shape_of(kind)
    is_same_rank = len(given) == len(asked) and value.type.element_type == kind.element_type
    if not is_same_rank or any(a >= 0 and b >= 0 and a != b for a, b in zip(given, asked, strict=True)):
        raise ModelError(f"{what} is {value.type} in one place and {kind} in another", where=where)
    for dim, (known, wanted) in enumerate(zip(given, asked, strict=True)):
        if known < 0 <= wanted:
            require_equal(length(value, dim), wanted, f"{where}: dim {dim} of {what} is not {wanted}")
    return tensor.CastOp(kind, value).result
