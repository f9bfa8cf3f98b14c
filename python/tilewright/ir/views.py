"""Typed views of operations: the base of the classes that `mlir-tblgen -gen-python-op-bindings` generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from tilewright.ir.native import native

if TYPE_CHECKING:
    from tilewright._native import (
        Attribute,
        Block,
        Context,
        InsertionPoint,
        Location,
        Operation,
        OpResult,
        Type,
        Value,
    )

OpResultList: TypeAlias = list["OpResult"]

_DIALECTS_WITH_CLASSES = ("arith", "func", "math", "tile")

_classes: dict[str, type[OpView]] = {}
"""Classes of operations by name."""


class OpView:
    """An operation with the accessors of its kind. Everything that `Operation` has, it has as well."""

    OPERATION_NAME: ClassVar[str] = ""
    _ODS_REGIONS: ClassVar[tuple[int, bool]] = (0, True)
    _ODS_OPERAND_SEGMENTS: ClassVar[Sequence[int] | None] = None
    _ODS_RESULT_SEGMENTS: ClassVar[Sequence[int] | None] = None

    operation: Operation

    def __init__(
        self,
        name: str,
        ods_regions: tuple[int, bool],
        operand_segments: Sequence[int] | None,
        result_segments: Sequence[int] | None,
        *,
        results: Sequence[Type] | None,
        operands: Sequence[Any],
        attributes: Mapping[str, Any],
        successors: Sequence[Block] | None = None,
        regions: int | None = None,
        loc: Location | None = None,
        ip: InsertionPoint | None = None,
    ) -> None:
        """Builds an operation; the generated classes call this."""
        assert result_segments is None, "no dialect with classes has operations with groups of results"
        groups = [values_of(group) for group in operands]
        named = {key: value for key, value in attributes.items() if value is not None}
        context = ip.block.owner.context if ip is not None else None
        if operand_segments is not None:
            sizes = [len(group) for group in groups]
            named["operandSegmentSizes"] = native.DenseI32ArrayAttr.get(sizes, context=context)
        self.operation = native.Operation.create(
            name,
            results=None if results is None else list(results),
            operands=[value for group in groups for value in group],
            attributes=named,
            regions=ods_regions[0] if regions is None else regions,
            successors=list(successors or ()),
            loc=loc,
            ip=ip,
        )

    def __getattr__(self, name: str) -> Any:
        if name == "operation":
            raise AttributeError(name)
        return getattr(self.operation, name)

    def __eq__(self, other: object) -> bool:
        mine: object = self.operation
        return mine == (other.operation if isinstance(other, OpView) else other)

    def __hash__(self) -> int:
        return hash(self.operation)

    def __str__(self) -> str:
        return str(self.operation)

    def __repr__(self) -> str:
        return repr(self.operation)


class Dialect:
    """Base of the generated classes of dialects."""

    DIALECT_NAMESPACE: ClassVar[str] = ""


_Class = TypeVar("_Class", bound=type)


def register_dialect(cls: _Class) -> _Class:
    """Accepts the class of a dialect. The generated modules call this; dialects need no registration here."""
    return cls


def register_operation(_dialect: type[Dialect]) -> Callable[[_Class], _Class]:
    """Makes `view` return objects of a generated class for its operation."""

    def register(cls: _Class) -> _Class:
        kind: Any = cls
        _classes[kind.OPERATION_NAME] = kind
        return cls

    return register


def view(operation: Operation) -> OpView:
    """Returns an operation as an object of its generated class, or of `OpView` if there is none."""
    dialect = operation.name.partition(".")[0]
    if operation.name not in _classes and dialect in _DIALECTS_WITH_CLASSES:
        import_module(f"tilewright.dialects.{dialect}")
    cls = _classes.get(operation.name, OpView)
    viewed = cls.__new__(cls)
    viewed.operation = operation
    return viewed


def values_of(given: Any) -> list[Value]:
    """Returns the values that an argument stands for: a value, the results of an operation, or a sequence of these."""
    if isinstance(given, native.Value):
        return [given]
    if isinstance(given, OpView | native.Operation):
        return list(given.operation.results)
    return [value for each in given for value in values_of(each)]


class AttrBuilder:
    """Functions that make attributes from Python values, by the name that TableGen has for the kind of attribute."""

    _builders: ClassVar[dict[str, Callable[[Any, Context | None], Attribute]]] = {}

    @classmethod
    def contains(cls, kind: str) -> bool:
        return kind in cls._builders

    @classmethod
    def get(cls, kind: str) -> Callable[..., Attribute]:
        return cls._builders[kind]

    @classmethod
    def insert(cls, kind: str, builder: Callable[[Any, Context | None], Attribute]) -> None:
        """Adds a builder, or replaces the one that is there."""
        cls._builders[kind] = builder


_Builder = TypeVar("_Builder", bound=Callable[..., Any])


def register_attribute_builder(kind: str, replace: bool = True) -> Callable[[_Builder], _Builder]:  # noqa: FBT001, FBT002 - as upstream
    """Decorates a function `(value, context) -> Attribute` that generated constructors use for a kind of attribute."""

    def register(builder: _Builder) -> _Builder:
        if replace or not AttrBuilder.contains(kind):
            AttrBuilder.insert(kind, builder)
        return builder

    return register


def _integer(width: int) -> Callable[[int, Context | None], Attribute]:
    def build(value: int, context: Context | None = None) -> Attribute:
        return native.IntegerAttr.get(native.IntegerType.get_signless(width, context=context), value)

    return build


def _map(value: Any, context: Context | None = None) -> Attribute:
    parsed = native.AffineMap.parse(value, context=context) if isinstance(value, str) else value
    return native.AffineMapAttr.get(parsed)


def _set(value: Any, context: Context | None = None) -> Attribute:
    parsed = native.IntegerSet.parse(value, context=context) if isinstance(value, str) else value
    return native.IntegerSetAttr.get(parsed)


def _array(element: Callable[..., Attribute]) -> Callable[[Sequence[Any], Context | None], Attribute]:
    def build(values: Sequence[Any], context: Context | None = None) -> Attribute:
        return native.ArrayAttr.get([attribute(value, element, context) for value in values], context=context)

    return build


def attribute(value: Any, build: Callable[..., Attribute], context: Context | None) -> Attribute:
    """Returns a value that is an attribute as it is, and builds one from any other value."""
    return value if isinstance(value, native.Attribute) else build(value, context=context)


def _any(value: Any, context: Context | None = None) -> Attribute:
    """Builds an attribute from a Python value whose type alone says what it is."""
    if value is None:
        return native.UnitAttr.get(context=context)
    if isinstance(value, bool):
        return native.BoolAttr.get(value, context=context)
    if isinstance(value, str):
        return native.StringAttr.get(value, context=context)
    if isinstance(value, native.AffineMap):
        return native.AffineMapAttr.get(value)
    if isinstance(value, native.IntegerSet):
        return native.IntegerSetAttr.get(value)
    raise TypeError(
        f"a {type(value).__name__} does not say which kind of attribute it is; build an ir.Attribute"
    )


def _string(value: str, context: Context | None = None) -> Attribute:
    return native.StringAttr.get(value, context=context)


_BUILDERS: dict[str, Callable[..., Attribute]] = {
    "I32Attr": _integer(32),
    "I64Attr": _integer(64),
    "BoolAttr": native.BoolAttr.get,
    "StrAttr": _string,
    "SymbolNameAttr": _string,
    "FlatSymbolRefAttr": native.FlatSymbolRefAttr.get,
    "DenseI64ArrayAttr": native.DenseI64ArrayAttr.get,
    "AffineMapAttr": _map,
    "IntegerSetAttr": _set,
    "AffineMapArrayAttr": _array(_map),
    "StrArrayAttr": _array(_string),
    "ArrayAttr": _array(_any),
}
for _kind, _build in _BUILDERS.items():
    AttrBuilder.insert(_kind, _build)
