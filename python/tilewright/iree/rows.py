"""Proof that a module for more rows of an input computes what one for fewer rows does, in its first rows.

Two modules of one model, for two sizes of one dim, are walked from their results to their arguments, op by op in
pairs. Of each pair of values it is shown either that they are equal, or that the smaller one is the beginning of the
larger one along one dim ("rows"). An op is accepted only if each of its rows follows from the same rows of its
operands, for instance a linalg op whose row is one parallel loop. Everything else, such as a mean over rows, refutes
the claim. So does a constant that depends on the size, because the constants of the two modules then differ.

If the proof succeeds, the rows that an input lacks may be filled with anything.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.iree.compiler import IreeCompiler

EQUAL = -1
"""The state of two values that are equal; otherwise a state is the dim along which one begins the other."""

_DEEPEST = 100_000
"""Depth of recursion, which is the length of the longest chain of ops."""

_PURE = ("arith.", "math.", "tensor.", "linalg.", "affine.", "complex.", "index.", "scf.")
"""Dialects whose ops have equal results for equal operands."""

_IMAGES = re.compile(r"linalg\.(?:depthwise_)?(?:conv|pooling)_\w+")
"""Named ops on images whose first dim is the batch."""


def prove_rows(
    compiler: IreeCompiler, small: str, large: str, *, entry: str, axes: Sequence[int]
) -> list[tuple[int, int]] | str:
    """Returns, for each output, the axis along which it has rows and their number in `small`, or `EQUAL` twice; or why
    the proof fails.

    `small` and `large` are modules at the preprocessing phase. `axes` has the axis of each input that is larger in
    `large`, or `EQUAL`.
    """
    texts = small.encode(), large.encode()
    header = {
        "request": f"{__name__}:answer_rows",
        "step": "the comparison of two shapes",
        "split": len(texts[0]),
        "entry": entry,
        "axes": list(axes),
    }
    answer, _, _ = compiler.ask(header, b"".join(texts))
    if not answer["ok"]:
        return str(answer["error"])
    return str(answer["refuted"]) or [(axis, size) for axis, size in answer["outputs"]]


def answer_rows(header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
    """Compares two modules in the worker."""
    from iree.compiler import ir

    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        small, large = (ir.Module.parse(blob[part].decode()) for part in _halves(header["split"]))
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEEPEST)
        try:
            outputs = _Proof(ir, small, large, header["entry"], header["axes"]).outputs()
        except _RefutedError as refuted:
            return {"ok": True, "refuted": str(refuted), "outputs": []}, b""
        finally:
            sys.setrecursionlimit(before)
    return {"ok": True, "refuted": "", "outputs": outputs}, b""


def _halves(split: int) -> tuple[slice, slice]:
    return slice(0, split), slice(split, None)


class _RefutedError(Exception):
    """Rows depend on each other, or it cannot be shown that they do not."""


class _Proof:
    """The pairs of values of two functions, and the state of each that was asked for."""

    def __init__(self, ir: Any, small: Any, large: Any, entry: str, axes: Sequence[int]) -> None:
        self._ir, self._axes = ir, axes
        self._modules = small, large
        self._functions = tuple(_function(module, entry) for module in self._modules)
        self._globals = tuple(_globals(module) for module in self._modules)
        self._known: dict[tuple[Any, Any], int] = {}
        self._rules: Mapping[str, Callable[[Any, Any], int]] = {
            "tensor.empty": lambda s, g: self._by_type(s.results[0], g.results[0]),
            "arith.constant": self._constant,
            "util.global.load": self._load,
            "hal.tensor.import": self._import,
            "tensor.expand_shape": self._expand,
            "tensor.collapse_shape": self._collapse,
            "tensor.extract_slice": self._extract,
            "tensor.insert_slice": self._insert,
            "tensor.pad": self._pad,
            "tensor.concat": self._concat,
        }

    def outputs(self) -> list[tuple[int, int]]:
        """Returns the state of every result of the functions, and its size in the smaller one. Raises
        `_RefutedError`."""
        returns = [
            list(function.regions[0].blocks[0].operations)[-1].operation for function in self._functions
        ]
        if any(len(function.regions[0].blocks) > 1 for function in self._functions):
            raise _RefutedError("the function has branches")
        found = []
        for small, large in zip(*(each.operands for each in returns), strict=True):
            state = self._relate(small, large)
            found.append(
                (state, EQUAL if state == EQUAL else _shape(small.owner.operation.operands[0])[state])
            )
        return found

    def _relate(self, small: Any, large: Any) -> int:
        """Returns the state of two values. Raises `_RefutedError`."""
        key = (small, large)
        if key not in self._known:
            self._known[key] = self._relate_anew(small, large)
        return self._known[key]

    def _relate_anew(self, small: Any, large: Any) -> int:
        ir = self._ir
        if isinstance(small, ir.BlockArgument) or isinstance(large, ir.BlockArgument):
            raise _RefutedError("an argument is used in another way than as a tensor")
        first, second = small.owner.operation, large.owner.operation
        if first.name != second.name or len(first.operands) != len(second.operands):
            raise _RefutedError(f"{_spell(first)} is {_spell(second)} for the larger size")
        if small.result_number != large.result_number:
            raise _RefutedError(f"another result of {_spell(first)} is used for the larger size")
        if first.name in ("hal.tensor.barrier", "hal.tensor.export"):
            at = small.result_number if first.name.endswith("barrier") else 0
            return self._relate(first.operands[at], second.operands[at])
        rule = self._rules.get(first.name)
        if rule is not None:
            return rule(first, second)
        states = [self._relate(s, g) for s, g in zip(first.operands, second.operands, strict=True)]
        if first.name.startswith("linalg.") and max(states, default=EQUAL) != EQUAL:
            return self._linalg(first, second, states)
        return self._equal(first, second, states)

    # Values that are equal.

    def _equal(self, small: Any, large: Any, states: Sequence[int]) -> int:
        """An op whose operands, attributes, regions and result types are equal."""
        if not small.name.startswith(_PURE):
            raise _RefutedError(f"nothing is known of {_spell(small)}")
        if any(state != EQUAL for state in states):
            raise _RefutedError(f"the rows of {_spell(small)} may depend on each other")
        if _attributes(small) != _attributes(large) or not _have_equal_types(small, large):
            raise _RefutedError(f"{_spell(small)} depends on the size")
        self._same_regions(small, large)
        return EQUAL

    def _same_regions(self, small: Any, large: Any) -> None:
        """Requires that two ops do the same in their regions; what these capture must be equal."""
        arguments: dict[Any, Any] = {}
        self._match_regions(small, large, arguments)

    def _match_regions(self, small: Any, large: Any, inside: dict[Any, Any]) -> None:
        for first, second in zip(small.regions, large.regions, strict=True):
            for block, other in zip(first.blocks, second.blocks, strict=True):
                inside.update(zip(block.arguments, other.arguments, strict=True))
                for op, twin in zip(block.operations, other.operations, strict=True):
                    self._match_op(op.operation, twin.operation, inside)

    def _match_op(self, op: Any, twin: Any, inside: dict[Any, Any]) -> None:
        if (
            op.name != twin.name
            or _attributes(op) != _attributes(twin)
            or not _have_equal_types(op, twin)
            or len(op.operands) != len(twin.operands)
        ):
            raise _RefutedError(f"{_spell(op)} depends on the size")
        for value, other in zip(op.operands, twin.operands, strict=True):
            if value in inside:
                if inside[value] != other:
                    raise _RefutedError(f"the operands of {_spell(op)} differ")
            elif self._relate(value, other) != EQUAL:
                raise _RefutedError(f"{_spell(op)} may read other rows")
        inside.update(zip(op.results, twin.results, strict=True))
        self._match_regions(op, twin, inside)

    def _constant(self, small: Any, large: Any) -> int:
        value, other = small.attributes["value"], large.attributes["value"]
        if value == other:
            return EQUAL
        are_splats = all(
            isinstance(each, self._ir.DenseElementsAttr) and each.is_splat for each in (value, other)
        )
        if are_splats and value.get_splat_value() == other.get_splat_value():
            return self._by_type(small.results[0], large.results[0])
        raise _RefutedError(f"the constant {_spell(small)} depends on the size")

    def _load(self, small: Any, large: Any) -> int:
        name = str(small.attributes["global"])
        first, second = (module.get(name) for module in self._globals)
        if small.attributes["global"] != large.attributes["global"] or first is None or first != second:
            raise _RefutedError(f"the weight {name} depends on the size")
        return EQUAL

    def _import(self, small: Any, large: Any) -> int:
        numbers = [op.operands[0].arg_number for op in (small, large)]
        if numbers[0] != numbers[1]:
            raise _RefutedError("two inputs are mixed up")
        axis = self._axes[numbers[0]]
        if self._by_type(small.results[0], large.results[0]) != axis:
            raise _RefutedError("an input has other sizes")
        return int(axis)

    def _by_type(self, small: Any, large: Any) -> int:
        """Returns the only dim in which two types differ."""
        if small.type == large.type:
            return EQUAL
        first, second = _shape(small), _shape(large)
        differing = [d for d, sizes in enumerate(zip(first, second, strict=False)) if sizes[0] != sizes[1]]
        if len(first) != len(second) or len(differing) != 1 or _element(small) != _element(large):
            raise _RefutedError(f"{_spell(small.owner.operation)} differs in more than one dim")
        return differing[0]

    # Ops on rows.

    def _linalg(self, small: Any, large: Any, states: Sequence[int]) -> int:
        maps, others = _maps(small), _maps(large)
        if len(maps) != len(states):
            raise _RefutedError(f"nothing is known of the rows of {_spell(small)}")
        loop = _row_loop(others, states)
        if loop is None:
            raise _RefutedError(f"{_spell(small)} mixes rows")
        for value, state, first, second in zip(small.operands, states, maps, others, strict=True):
            for d, (expr, other) in enumerate(zip(first, second, strict=True)):
                is_row = d == state
                # A dim of one element may be read as element 0.
                if expr != other and not (is_row and _shape(value)[d] == 1 and expr in ("0", loop)):
                    raise _RefutedError(f"{_spell(small)} depends on the size")
                if is_row != (other == loop) or (not is_row and re.search(rf"\b{loop}\b", other)):
                    raise _RefutedError(f"{_spell(small)} mixes rows")
        if _attributes(small, but="indexing_maps") != _attributes(large, but="indexing_maps"):
            raise _RefutedError(f"{_spell(small)} depends on the size")
        self._same_regions(small, large)
        results = {self._by_type(s, g) for s, g in zip(small.results, large.results, strict=True)}
        if len(results) != 1 or EQUAL in results:
            raise _RefutedError(f"{_spell(small)} sums over rows")
        return results.pop()

    def _expand(self, small: Any, large: Any) -> int:
        return self._reshape(small, large, is_expanding=True)

    def _collapse(self, small: Any, large: Any) -> int:
        return self._reshape(small, large, is_expanding=False)

    def _reshape(self, small: Any, large: Any, *, is_expanding: bool) -> int:
        """Rows stay rows if they are the outermost dim of those that are joined or split."""
        if len(small.operands) != 1 or small.attributes["reassociation"] != large.attributes["reassociation"]:
            raise _RefutedError(f"{_spell(small)} depends on the size")
        state = self._relate(small.operands[0], large.operands[0])
        result = self._by_type(small.results[0], large.results[0])
        if (state == EQUAL) != (result == EQUAL):
            raise _RefutedError(f"{_spell(small)} depends on the size")
        if state == EQUAL:
            return EQUAL
        narrow, wide = (state, result) if is_expanding else (result, state)
        sizes = _shape(large.results[0] if is_expanding else large.operands[0])
        groups = [[int(str(d).split()[0]) for d in group] for group in small.attributes["reassociation"]]
        group = groups[narrow]
        if wide not in group or any(sizes[d] != 1 for d in group if d < wide):
            raise _RefutedError(f"{_spell(small)} mixes rows")
        return result

    def _extract(self, small: Any, large: Any) -> int:
        """A slice has rows where it takes all, or the beginning of an operand that is equal."""
        self._refuse_more_operands(small, large, 1)
        source = self._relate(small.operands[0], large.operands[0])
        dim = self._sliced(small, large, source, _shape(small.operands[0]), _shape(large.operands[0]))
        result = self._by_type(small.results[0], large.results[0])
        if (dim == EQUAL) != (result == EQUAL):
            raise _RefutedError(f"{_spell(small)} depends on the size")
        return result

    def _insert(self, small: Any, large: Any) -> int:
        self._refuse_more_operands(small, large, 2)
        source, target = (self._relate(s, g) for s, g in zip(small.operands, large.operands, strict=True))
        dim = self._sliced(small, large, target, _shape(small.operands[1]), _shape(large.operands[1]))
        if (dim == EQUAL) != (source == EQUAL) or dim != target:
            raise _RefutedError(f"{_spell(small)} mixes rows")
        return target

    def _sliced(self, small: Any, large: Any, state: int, sizes: Sequence[int], others: Sequence[int]) -> int:
        """Returns the dim of the sliced tensor along which the slice has rows."""
        parts = [
            [_integers(op.attributes[f"static_{name}"]) for name in ("offsets", "sizes", "strides")]
            for op in (small, large)
        ]
        found = EQUAL
        for d in range(len(sizes)):
            first, second = ([part[d] for part in each] for each in parts)
            if d == state:
                if first != [0, sizes[d], 1] or second != [0, others[d], 1]:
                    raise _RefutedError(f"{_spell(small)} takes some rows only")
                found = d
            elif first != second:
                if (
                    state != EQUAL
                    or found != EQUAL
                    or [first[0], second[0]] != [0, 0]
                    or first[2] != second[2]
                ):
                    raise _RefutedError(f"{_spell(small)} depends on the size")
                found = d
        return found

    def _refuse_more_operands(self, small: Any, large: Any, count: int) -> None:
        """Requires that offsets and sizes are constants."""
        if len(small.operands) != count or len(large.operands) != count:
            raise _RefutedError(f"{_spell(small)} has bounds that are computed")

    def _pad(self, small: Any, large: Any) -> int:
        self._refuse_more_operands(small, large, 1)
        state = self._relate(small.operands[0], large.operands[0])
        if state == EQUAL:
            return self._equal(small, large, [EQUAL])
        bounds = [_integers(small.attributes[f"static_{side}"]) for side in ("low", "high")]
        if _attributes(small) != _attributes(large) or any(each[state] for each in bounds):
            raise _RefutedError(f"{_spell(small)} pads rows")
        self._same_regions(small, large)
        return state

    def _concat(self, small: Any, large: Any) -> int:
        states = {self._relate(s, g) for s, g in zip(small.operands, large.operands, strict=True)}
        if states == {EQUAL}:
            return self._equal(small, large, [EQUAL])
        joined = int(str(small.attributes["dim"]).split()[0])
        if len(states) != 1 or joined in states or _attributes(small) != _attributes(large):
            raise _RefutedError(f"{_spell(small)} joins rows")
        return states.pop()


def _row_loop(maps: Sequence[Sequence[str]], states: Sequence[int]) -> str | None:
    """Returns the loop over the rows of all operands that have rows; None if there is no one loop."""
    loops = {exprs[state] for exprs, state in zip(maps, states, strict=True) if state != EQUAL}
    return loops.pop() if len(loops) == 1 and re.fullmatch(r"d\d+", next(iter(loops))) else None


def _maps(op: Any) -> list[list[str]]:
    """Returns how the loops of a linalg op index each operand, as text; [] if that is not known."""
    if "indexing_maps" in op.attributes:
        return [_results(str(each)) for each in op.attributes["indexing_maps"]]
    ranks = [len(_shape(operand)) for operand in op.operands]
    if op.name == "linalg.fill":
        return [[], _loops(range(ranks[1]))]
    if op.name == "linalg.transpose":
        order = _integers(op.attributes["permutation"])
        return [_loops(order.index(d) for d in range(ranks[0])), _loops(range(ranks[1]))]
    if op.name == "linalg.broadcast":
        added = _integers(op.attributes["dimensions"])
        return [_loops(d for d in range(ranks[1]) if d not in added), _loops(range(ranks[1]))]
    if op.name == "linalg.reduce":
        gone = _integers(op.attributes["dimensions"])
        half = len(ranks) // 2
        kept = _loops(d for d in range(ranks[0]) if d not in gone)
        return [_loops(range(ranks[0]))] * half + [kept] * half
    if _IMAGES.fullmatch(op.name) and len(ranks) == 3:
        # Only the loop over the batch is named; the filter or window has none of the others' loops.
        images = [["d0", *(f"image{d}" for d in range(1, rank))] for rank in (ranks[0], ranks[2])]
        return [images[0], [f"filter{d}" for d in range(ranks[1])], images[1]]
    return []


def _loops(numbers: Any) -> list[str]:
    return [f"d{number}" for number in numbers]


def _results(text: str) -> list[str]:
    """Returns the results of an affine map: ["d0", "d1 + 3"] of "affine_map<(d0, d1) -> (d0, d1 + 3)>"."""
    inside = text.split("->", 1)[1].strip().removesuffix(">").strip().removeprefix("(").removesuffix(")")
    return [part.strip() for part in inside.split(",")] if inside.strip() else []


def _integers(attribute: Any) -> list[int]:
    """Returns the numbers of `array<i64: 0, 1>`."""
    return [int(number) for number in re.findall(r"-?\d+", str(attribute).partition(":")[2])]


def _attributes(op: Any, *, but: str = "") -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes if name != but}


def _have_equal_types(op: Any, other: Any) -> bool:
    return [result.type for result in op.results] == [result.type for result in other.results]


def _shape(value: Any) -> list[int]:
    """Returns the shape of a tensor of static shape; [] for any other value."""
    dims = re.match(r"tensor<((?:\d+x)*)[^?]*$", str(value.type))
    return [int(size) for size in dims[1].split("x")[:-1]] if dims else []


def _element(value: Any) -> str:
    return re.sub(r"tensor<(?:\d+x)*", "", str(value.type))


def _spell(op: Any) -> str:
    place = re.match(r'loc\("([^"]*)"', str(op.location))
    return f"{op.name} of '{place[1]}'" if place else str(op.name)


def _function(module: Any, entry: str) -> Any:
    """Returns the function that computes; see `merging`."""
    functions = {}
    for operation in module.body.operations:
        if operation.operation.name == "util.func":
            functions[operation.operation.attributes["sym_name"].value] = operation.operation
    return functions.get(f"{entry}$async") or functions[entry]


def _globals(module: Any) -> dict[str, str]:
    """Returns the definitions of the globals that keep their initial value, by reference."""
    found = {}
    for each in module.body.operations:
        operation = each.operation
        if operation.name != "util.global" or "is_mutable" in operation.attributes:
            continue
        if "initial_value" in operation.attributes:
            found[f"@{operation.attributes['sym_name'].value}"] = str(operation)
    return found
