"""Random contractions in linalg with any layout, type, initial value and epilogue, and their results in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

Array = np.ndarray
Rng = np.random.Generator

# The sizes lie around those of register blocks (6 rows, 16 lanes and multiples) and K steps of two and four, and
# include single points.
_SIZES = (1, 2, 3, 5, 6, 7, 13, 16, 17, 31, 33, 64, 65)
_MOST_POINTS = 200_000
# Each entry has the types of the operands and of the accumulators, and the ops that widen the operands.
_TYPES = (
    ("f32", "f32", "f32", "", ""),
    ("f32", "f32", "f32", "", ""),
    ("bf16", "bf16", "f32", "extf", "extf"),
    ("f16", "f16", "f32", "extf", "extf"),
    ("f32", "bf16", "f32", "", "extf"),
    ("bf16", "bf16", "bf16", "", ""),
    ("f16", "f16", "f16", "", ""),
    ("i8", "i8", "i32", "extsi", "extsi"),
    ("i8", "i8", "i32", "extui", "extsi"),
)
_STARTS = ("zero", "zero", "number", "tensor", "bias")
_EPILOGUES = ("", "", "relu", "residual", "tanh")
_NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32}
_ROUNDING = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}  # half of a unit in the last place


@dataclass(frozen=True, kw_only=True)
class Contraction:
    """A linalg.generic and the ops around it. Each tensor is named by its dims, in the order of its layout."""

    sizes: dict[str, int]
    left: str
    right: str
    result: str
    types: tuple[str, str, str, str, str]
    start: str
    epilogue: str

    @property
    def sum_type(self) -> str:
        return self.types[2]

    def operands(self) -> list[tuple[str, str]]:
        """Returns the dims and types of the inputs."""
        found = [(self.left, self.types[0]), (self.right, self.types[1])]
        if self.start in ("tensor", "bias"):
            found.append((self.result if self.start == "tensor" else self.result[-1:], self.sum_type))
        if self.epilogue == "residual":
            found.append((self.result, self.sum_type))
        return found

    def shape(self, dims: str) -> tuple[int, ...]:
        return tuple(self.sizes[dim] for dim in dims)

    def tensor(self, dims: str, kind: str) -> str:
        return f"tensor<{''.join(f'{size}x' for size in self.shape(dims))}{kind}>"

    def inputs(self, rng: Rng) -> list[Array]:
        return [_random(rng, self.shape(dims), kind) for dims, kind in self.operands()]


def random_contraction(rng: Rng) -> Contraction:
    """Draws a contraction. A dim belongs to both operands and the result (batch), to one operand and the result (M,
    N), or to both operands alone (K)."""
    while True:
        counts = [
            int(rng.choice(4, p=p)) for p in ((0.5, 0.3, 0.2, 0), (0.1, 0.6, 0.2, 0.1), (0.1, 0.6, 0.2, 0.1))
        ]
        batch, rows, columns = ("bcd"[: counts[0]], "mno"[: counts[1]], "pqr"[: counts[2]])
        summed = "kl"[: int(rng.integers(1, 3))]
        sizes = {dim: int(rng.choice(_SIZES)) for dim in _shuffled(rng, batch + rows + columns + summed)}
        if rng.random() < 0.03:
            sizes[summed[0]] = 0
        if batch + rows + columns and np.prod([float(size) for size in sizes.values()]) <= _MOST_POINTS:
            break
    # A batch dim that one operand lacks is broadcast to it.
    broadcast = {dim: rng.random() < 0.2 for dim in batch}
    lacking = "".join(dim for dim in batch if broadcast[dim])
    return Contraction(
        sizes=sizes,
        left=_shuffled(rng, batch + rows + summed),
        right=_shuffled(rng, "".join(dim for dim in batch if dim not in lacking) + columns + summed),
        result=_shuffled(rng, batch + rows + columns),
        types=_TYPES[int(rng.integers(len(_TYPES)))],
        start=str(rng.choice(_STARTS)),
        epilogue=str(rng.choice(_EPILOGUES)),
    )


def module_of(contractions: Sequence[Contraction]) -> str:
    """Returns one function with the results of all contractions, each of which has its own operands."""
    parts = [_text(each, f"{number}") for number, each in enumerate(contractions)]
    arguments = [
        f"%a{number}_{place}: {each.tensor(*operand)}"
        for number, each in enumerate(contractions)
        for place, operand in enumerate(each.operands())
    ]
    types = ", ".join(each.tensor(each.result, each.sum_type) for each in contractions)
    results = ", ".join(f"%y{number}" for number in range(len(parts)))
    return (
        f"func.func @main({', '.join(arguments)}) -> ({types}) {{\n"
        + "\n".join(parts)
        + f"\nreturn {results} : {types}\n}}\n"
    )


def in_float64(what: Contraction, inputs: Sequence[Array]) -> tuple[Array, Array]:
    """Returns the result, and the error that a sum in f32 with at most two more roundings may have."""
    is_integer = what.sum_type == "i32"
    wide = np.int64 if is_integer else np.float64
    factors = [_widened(value, what.types[3 + place], wide) for place, value in enumerate(inputs[:2])]
    subscripts = f"{what.left},{what.right}->{what.result}"
    exact = np.einsum(subscripts, *factors)
    others = [value.astype(wide) for value in inputs[2:]]
    start: Array | float = 0
    if what.start == "number":
        start = 3
    elif what.start != "zero":
        start = others.pop(0)
    sums = np.asarray(exact + start)
    if is_integer:
        sums = sums.astype(np.int32).astype(np.int64)
    exact = sums
    if what.epilogue == "residual":
        exact = exact + others.pop(0)
    elif what.epilogue == "relu":
        exact = np.maximum(exact, 0)
    elif what.epilogue == "tanh" and not is_integer:
        exact = np.tanh(exact)
    if is_integer:
        return exact.astype(np.int32), np.zeros(exact.shape)
    terms = int(np.prod([what.sizes[dim] for dim in what.sizes if dim not in what.result], dtype=np.int64))
    magnitude = np.einsum(subscripts, *(np.abs(factor) for factor in factors)) + np.abs(start) + 1
    stored = _ROUNDING[what.sum_type] * (np.abs(sums) + np.abs(exact))
    return exact, 2 * (terms + 4) * _ROUNDING["f32"] * magnitude + stored


def _text(what: Contraction, number: str) -> str:
    kind, result = what.sum_type, what.tensor(what.result, what.sum_type)
    suffix = "i" if kind == "i32" else "f"
    operands = [(f"%a{number}_{place}", what.tensor(*each)) for place, each in enumerate(what.operands())]
    (left, left_type), (right, right_type), *others = operands
    lines = [f"%e{number} = tensor.empty() : {result}"]
    if what.start in ("zero", "number"):
        value = {"zero": "0", "number": "3"}[what.start] + (".0" if suffix == "f" else "")
        lines += [
            f"%c{number} = arith.constant {value} : {kind}",
            f"%s{number} = linalg.fill ins(%c{number} : {kind}) outs(%e{number} : {result}) -> {result}",
        ]
        start = f"%s{number}"
    else:
        start, start_type = others.pop(0)
        if what.start == "bias":
            outer = ", ".join(str(dim) for dim in range(len(what.result) - 1))
            lines.append(
                f"%s{number} = linalg.broadcast ins({start} : {start_type}) outs(%e{number} : {result}) "
                f"dimensions = [{outer}]"
            )
            start = f"%s{number}"
    widened = [f"%w{place}" if what.types[3 + place] else f"%x{place}" for place in (0, 1)]
    loops = ", ".join(what.sizes)
    maps = [f"affine_map<({loops}) -> ({', '.join(dims)})>" for dims in (what.left, what.right, what.result)]
    kinds = ", ".join(f'"{"parallel" if dim in what.result else "reduction"}"' for dim in what.sizes)
    lines += [
        f"%r{number} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}",
        f"    ins({left}, {right} : {left_type}, {right_type}) outs({start} : {result}) {{",
        f"^bb0(%x0: {what.types[0]}, %x1: {what.types[1]}, %z: {kind}):",
        *(
            f"  %w{place} = arith.{what.types[3 + place]} %x{place} : {what.types[place]} to {kind}"
            for place in (0, 1)
            if what.types[3 + place]
        ),
        f"  %p = arith.mul{suffix} {widened[0]}, {widened[1]} : {kind}",
        f"  %n = arith.add{suffix} %z, %p : {kind}",
        f"  linalg.yield %n : {kind}",
        f"}} -> {result}",
    ]
    return "\n".join([*lines, *_epilogue(what, number, others)])


def _epilogue(what: Contraction, number: str, others: Sequence[tuple[str, str]]) -> list[str]:
    """Returns the ops that follow, which change each element separately."""
    kind, result = what.sum_type, what.tensor(what.result, what.sum_type)
    suffix, maximum, zero = ("i", "maxsi", "0") if kind == "i32" else ("f", "maximumf", "0.0")
    steps = {
        "relu": [f"  %0 = arith.constant {zero} : {kind}", f"  %1 = arith.{maximum} %x, %0 : {kind}"],
        "residual": [f"  %1 = arith.add{suffix} %x, %b : {kind}"],
        "tanh": [] if kind == "i32" else [f"  %1 = math.tanh %x : {kind}"],
    }.get(what.epilogue, [])
    inputs = [(f"%r{number}", result), *others]
    loops = ", ".join(what.result)
    maps = ", ".join([f"affine_map<({loops}) -> ({loops})>"] * (len(inputs) + 1))
    parallel = ", ".join(['"parallel"'] * len(what.result))
    elements = ["%x", "%b"][: len(inputs)]
    return [
        f"%y{number} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}]}}",
        f"    ins({', '.join(name for name, _ in inputs)} : {', '.join(type_ for _, type_ in inputs)})"
        f" outs(%e{number} : {result}) {{",
        f"^bb0({', '.join(f'{element}: {kind}' for element in elements)}, %out: {kind}):",
        *steps,
        f"  linalg.yield {'%1' if steps else '%x'} : {kind}",
        f"}} -> {result}",
    ]


def _shuffled(rng: Rng, dims: str) -> str:
    return "".join(rng.permutation(list(dims)))


def _widened(value: Array, how: str, wide: type) -> Array:
    return (value.view(np.uint8) if how == "extui" else value).astype(wide)


def _random(rng: Rng, shape: tuple[int, ...], kind: str) -> Array:
    if kind == "i8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    if kind == "i32":
        return rng.integers(-(2**31), 2**31, shape).astype(np.int32)
    return np.asarray(rng.standard_normal(shape)).astype(_NUMPY[kind])
