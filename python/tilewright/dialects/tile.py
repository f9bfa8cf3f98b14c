"""The `tile` dialect: a class for each operation, its enums, its attributes as frozen dataclasses, and `tensor_expr`.

An attribute reads as a value (`op.attributes["scope"].value` is `Scope.block`), and a value makes an attribute
(`Tiling(Scope.block, (8, 16), (0, 1)).attribute()`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilewright import ir
from tilewright.dialects import _tile_ops_gen as _ops
from tilewright.dialects._tile_enum_gen import Access as Access
from tilewright.dialects._tile_enum_gen import Form as Form
from tilewright.dialects._tile_enum_gen import Lifetime as Lifetime
from tilewright.dialects._tile_enum_gen import Math as Math
from tilewright.dialects._tile_enum_gen import Operands as Operands
from tilewright.dialects._tile_enum_gen import Residency as Residency
from tilewright.dialects._tile_enum_gen import Roundings as Roundings
from tilewright.dialects._tile_enum_gen import Scope as Scope
from tilewright.dialects._tile_enum_gen import Space as Space
from tilewright.dialects._tile_ops_gen import *
from tilewright.ir.views import values_of

if TYPE_CHECKING:
    # This declaration serves to type-check the source alone, where the generated modules do not exist yet.
    def __getattr__(name: str) -> Any: ...


@dataclass(frozen=True)
class Tiling:
    """Tile sizes and loop order of one operation at one level."""

    level: Scope
    sizes: tuple[int, ...]
    """Tile size of each dim of the domain."""
    order: tuple[int, ...]
    """Dims in loop order, outermost first."""

    def attribute(self, context: ir.Context | None = None) -> ir.Attribute:
        """Raises `IrError` if the sizes are not positive or the order is not a permutation."""
        sizes, order = _numbers(self.sizes), _numbers(self.order)
        return ir.Attribute.parse(f"#tile.tiling<{self.level}, sizes = {sizes}, order = {order}>", context)


@dataclass(frozen=True)
class Numerics:
    """The numerical freedoms of a kernel compared with its graph."""

    roundings: Roundings
    math: Math
    forms: tuple[str, ...] = ()
    """Algebra that replaces the graph's own, by the names of `Form`."""

    def attribute(self, context: ir.Context | None = None) -> ir.Attribute:
        """Raises `IrError` if a form is unknown or named twice."""
        forms = ", ".join(f'"{form}"' for form in self.forms)
        named = f", forms = [{forms}]" if self.forms else ""
        return ir.Attribute.parse(f"#tile.numerics<{self.roundings}, {self.math}{named}>", context)


@dataclass(frozen=True)
class Running:
    """A maximum that a loop nest uses while it is still being accumulated."""

    accumulator: int
    block: int
    """Points of the reduced dim that share a reference."""

    def attribute(self, context: ir.Context | None = None) -> ir.Attribute:
        return ir.Attribute.parse(f"#tile.running<{self.accumulator} every {self.block}>", context)


@dataclass(frozen=True)
class Gemm:
    """How the threads of a block on a GPU compute a contraction."""

    m: int
    n: int
    """`m` by `n` units of threads have a part of the tile each."""
    step: int
    """Elements of K per step."""
    stages: int
    """Steps that shared memory holds at once."""
    k_slices: int = 1
    """Grids of units that take a part of each step."""
    lhs: Residency = Residency.step
    """How long a copy of lhs stays in shared memory."""
    prefetch: Operands = Operands.none
    """Operands whose first steps are copied before the contraction begins."""
    lhs_copy: int = 16
    rhs_copy: int = 16
    """Bytes that a thread copies at once from global memory; 0: threads copy none."""

    def attribute(self, context: ir.Context | None = None) -> ir.Attribute:
        """Raises `IrError` unless units, slices, step and copies are powers of two and there are two stages or more."""
        fields = ", ".join(f"{name} = {value}" for name, value in vars(self).items())
        return ir.Attribute.parse(f"#tile.gemm<{fields}>", context)


@dataclass(frozen=True)
class Blocking:
    """How a core of a processor computes a contraction with register blocks (`tile.blocking`)."""

    vectors: int
    """Vectors along N of a register block."""
    unroll: int = 1
    """Steps along K of one iteration of the innermost loop."""
    panel_k: int = 0
    """Elements of K of a panel of rhs that is copied before all rows use it; 0: none is."""
    prefetch: int = 0
    """Bytes of the smallest panel whose row blocks fetch the next one; 0: none do."""
    k_outermost: bool = False
    """True if the loop over blocks of K is outside of the loop along N."""
    even_rows: int = 0
    """Accumulators below which a last block of rows shares the rows of the one before evenly; 0: never."""
    wider_last: bool = False
    """True if the last block along N also takes the columns of one more vector."""

    def attribute(self, context: ir.Context | None = None) -> ir.Attribute:
        """Raises `IrError` if vectors or steps are not between 1 and 16, or another number is negative."""
        fields = ", ".join(f"{name} = {str(value).lower()}" for name, value in vars(self).items())
        return ir.Attribute.parse(f"#tile.blocking<{fields}>", context)


@dataclass(frozen=True)
class OfferedForm:
    """A form that is offered for ops of a function, and whether it is taken (`tile.forms`)."""

    form: Form
    number: int
    """Place among the offers of this form."""
    taken: bool
    ops: tuple[str, ...] = ()
    """Names of the ops that the form replaces."""
    parameters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    accumulation: str = ""
    """Types that sums are accumulated in, if the form changes them."""
    reassociates: bool = False
    roundings_removed: int = 0
    """Roundings per element that the form leaves out."""
    seconds: float | None = None
    """Predicted seconds with the form."""
    otherwise_seconds: float | None = None
    """Predicted seconds without it."""
    reason: str = ""
    would_change: str = ""
    locations: tuple[str, ...] = ()

    def attribute(self, context: ir.Context | None = None) -> ir.Attribute:
        """Raises `IrError` if the numbers are no 64-bit integers."""
        fields = {
            "form": _text(str(self.form)),
            "number": str(self.number),
            "taken": str(self.taken).lower(),
            "ops": _texts(self.ops),
            "parameters": _record(self.parameters),
            "accumulation": _text(self.accumulation),
            "reassociates": str(self.reassociates).lower(),
            "roundings_removed": str(self.roundings_removed),
            "seconds": _seconds(self.seconds),
            "otherwise_seconds": _seconds(self.otherwise_seconds),
            "reason": _text(self.reason),
            "would_change": _text(self.would_change),
            "locations": _texts(self.locations),
        }
        stated = ", ".join(f"{name} = {value}" for name, value in fields.items() if value)
        return ir.Attribute.parse(f"#tile.form<{stated}>", context)


@dataclass(frozen=True)
class TargetRef:
    """A target of the target table, with fields that override it."""

    name: str
    overrides: ir.DictAttr | None = None

    def attribute(self, context: ir.Context | None = None) -> ir.Attribute:
        overridden = f", {self.overrides}" if self.overrides is not None else ""
        return ir.Attribute.parse(f'#tile.target<"{self.name}"{overridden}>', context)


@dataclass(frozen=True)
class Slice:
    """The type of a strided region of a tensor in one memory space."""

    shape: tuple[int, ...]
    element_type: ir.Type
    space: Space
    strides: tuple[int, ...] = ()
    """Strides in elements; empty for a dense slice."""


def value_of(mnemonic: str, fields: Mapping[str, Any]) -> Any:
    """Returns an attribute or type of the dialect as one of the classes above, or as an enum."""
    named: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    values: dict[str, Any] = {"scope": Scope, "space": Space, "access": Access, "lifetime": Lifetime}
    if mnemonic in values:
        return _member(values[mnemonic], named["value"])
    if mnemonic == "form":
        return _offered(named)
    enums: dict[str, Any] = {
        "level": Scope,
        "roundings": Roundings,
        "math": Math,
        "space": Space,
        "lhs": Residency,
        "prefetch": Operands,
    }
    if mnemonic == "blocking":
        named |= {key: bool(named[key]) for key in ("k_outermost", "wider_last")}
        return Blocking(**named)
    for key, enum in enums.items():
        if key in named:
            named[key] = _member(enum, named[key])
    classes: dict[str, type[Any]] = {
        "tiling": Tiling,
        "numerics": Numerics,
        "running": Running,
        "gemm": Gemm,
        "target": TargetRef,
        "slice": Slice,
    }
    return classes[mnemonic](**named)


def tensor_expr(
    results: Sequence[ir.Type],
    inputs: Sequence[Any],
    body: Callable[..., Any],
    *,
    domain: Sequence[int],
    maps: Sequence[ir.AffineMap | str],
    result_maps: Sequence[ir.AffineMap | str],
    reductions: Sequence[int] = (),
    inits: Sequence[ir.Attribute] = (),
    guards: Sequence[ir.IntegerSet | str | None] | None = None,
    loc: ir.Location | None = None,
    ip: ir.InsertionPoint | None = None,
) -> Any:
    """Builds a tensor expression (`ExprOp`), verified.

    Arguments:
        results: Types of the result tensors.
        inputs: Input tensors, as values or operations.
        body: Function of the input elements, followed for a reduction by the accumulators. It builds and returns the
            elements of the results, or the next values of the accumulators.
        domain: Extents of the dims.
        maps: For each input, the element that a point of the domain reads, as a map or as text ("(d0, d1) -> (d1)").
        result_maps: For each result, the element that a point computes.
        reductions: Dims that are reduced.
        inits: For a reduction, the first value of each accumulator.
        guards: For each input, where it is read, or None if everywhere; it is zero elsewhere.

    Raises `IrError` with the broken constraint of the dialect; nothing is left in the module then.
    """
    values = values_of(inputs)
    if ip is not None:
        with ip:
            return _tensor_expr(
                results, values, body, domain, maps, result_maps, reductions, inits, guards, loc
            )
    return _tensor_expr(results, values, body, domain, maps, result_maps, reductions, inits, guards, loc)


def _tensor_expr(
    results: Sequence[ir.Type],
    inputs: Sequence[ir.Value],
    body: Callable[..., Any],
    domain: Sequence[int],
    maps: Sequence[ir.AffineMap | str],
    result_maps: Sequence[ir.AffineMap | str],
    reductions: Sequence[int],
    inits: Sequence[ir.Attribute],
    guards: Sequence[ir.IntegerSet | str | None] | None,
    loc: ir.Location | None,
) -> Any:
    read_where = [None] * len(inputs) if guards is None else [_guard(guard) for guard in guards]
    made = _ops.ExprOp(results, inputs, domain, reductions, maps, read_where, result_maps, inits, loc=loc)
    try:
        tensors = [value.type for value in inputs] + (list(results) if reductions else [])
        elements = [tensor.element_type for tensor in tensors if isinstance(tensor, ir.ShapedType)]
        block = made.regions[0].append_block(elements)
        with ir.InsertionPoint(block):
            yielded = body(*block.arguments)
            _ops.YieldOp(values_of(yielded))
        made.verify()
    except BaseException:
        made.erase()
        raise
    return made


def _guard(guard: ir.IntegerSet | str | None) -> ir.IntegerSet | None:
    return ir.IntegerSet.parse(guard) if isinstance(guard, str) else guard


def _offered(named: dict[str, Any]) -> OfferedForm:
    named["form"] = _member(Form, named["form"])
    for flag in ("taken", "reassociates"):
        named[flag] = bool(named[flag])
    for seconds in ("seconds", "otherwise_seconds"):
        if seconds in named:
            named[seconds] = named[seconds].value
    parameters = named.get("parameters")
    named["parameters"] = (
        {} if parameters is None else {n: tuple(v.value) for n, v in parameters.value.items()}
    )
    return OfferedForm(**named)


def _text(text: str) -> str:
    """Returns a string attribute, or nothing for no text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if text else ""


def _texts(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]" if texts else ""


def _record(parameters: Mapping[str, Sequence[int]]) -> str:
    entries = (f"{name} = array<i64: {', '.join(map(str, own))}>" for name, own in parameters.items() if own)
    text = ", ".join(entries)
    return f"{{{text}}}" if text else ""


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.17e} : f64"


def _member(enum: Any, text: str) -> Any:
    return next(member for member in enum if str(member) == text)


def _numbers(values: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


ir.register_attribute_builder("Tile_NumericsAttr")(lambda value, context: value.attribute(context))
ir.register_attribute_builder("Tile_RunningAttr")(lambda value, context: value.attribute(context))
ir.register_attribute_builder("Tile_GemmAttr")(lambda value, context: value.attribute(context))
ir.register_attribute_builder("Tile_TargetAttr")(
    lambda value, context: (TargetRef(value) if isinstance(value, str) else value).attribute(context)
)
