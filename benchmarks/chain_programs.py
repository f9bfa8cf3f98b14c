"""Generates tile programs of the chain C = A B, E = C D (f32) in a given block order, as text.

Loops are nested in the given order, outermost first. The first product runs inside the loops before k, and inside k;
the second inside the loops before k, and inside those after it. So k comes after m and l: a block of C is complete
before the second product reads it. If n comes before k, the first product runs again for every block of n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

M, N, K, L = range(4)
NAMES = "mnkl"


@dataclass(frozen=True, kw_only=True)
class ChainBlocks:
    """Extents and tiles of m, n, k and l, and the order of the loops. Tiles divide extents."""

    extents: tuple[int, int, int, int]
    tiles: tuple[int, int, int, int]
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, extent, tile in zip(NAMES, self.extents, self.tiles, strict=True):
            if extent % tile:
                raise ValueError(f"a tile of {tile} does not divide the {extent} of {name}")
        if sorted(self.order) != [M, N, K, L] or self.order.index(K) < max(
            self.order.index(M), self.order.index(L)
        ):
            raise ValueError("the order must hold m, n, k and l, k after m and l")


def fused_chain(blocks: ChainBlocks) -> str:
    """Returns one kernel that keeps a block of C in the workgroup's memory."""
    return _Writer(blocks).fused()


def separate_chain(blocks: ChainBlocks) -> str:
    """Returns one kernel that runs all of the first product, then the second, so that C is written and read."""
    return _Writer(blocks).separate()


class _Writer:
    def __init__(self, blocks: ChainBlocks) -> None:
        self._blocks = blocks
        self._lines: list[str] = []
        self._depth = 0
        self._constants: dict[int, str] = {}
        # for each surrounding loop: the first index of its block, and whether a sum over the loop begins there
        self._at: dict[int, tuple[str, bool]] = {}

    def fused(self) -> str:
        rows, columns = (self._blocks.tiles[loop] for loop in (M, L))
        before = self._blocks.order.index(K)
        shared, after = self._blocks.order[:before], self._blocks.order[before + 1 :]
        c = f"!tile.slice<{rows}x{columns}xf32, block>"
        self._emit(f"%c = tile.alloc : {c}")

        def first() -> None:
            self._product("%a", "%b", "%c", c, (M, L, K), local="acc")
            self._emit("tile.sync <block>")

        def blocks() -> None:
            self._loop([K], first)
            self._loop(list(after), lambda: self._product("%c", "%d", "%e", c, (M, N, L), local="lhs"))

        self._loop(list(shared), blocks)
        return self._program(outputs=1)

    def separate(self) -> str:
        c = self._slice(M, L)
        first, second = ([x for x in self._blocks.order if x in loops] for loops in ((M, L, K), (M, N, L)))
        self._loop(first, lambda: self._product("%a", "%b", "%c", c, (M, L, K)))
        self._loop(second, lambda: self._product("%c", "%d", "%e", c, (M, N, L)))
        return self._program(outputs=2)

    def _slice(self, row: int, column: int) -> str:
        return f"!tile.slice<{self._blocks.extents[row]}x{self._blocks.extents[column]}xf32, global>"

    def _emit(self, line: str) -> None:
        self._lines.append("  " * self._depth + line)

    def _constant(self, value: int) -> str:
        return self._constants.setdefault(value, f"%i{value}")

    def _loop(self, loops: list[int], body: Callable[[], None]) -> None:
        """Generates loops around a body; the first block of a loop that accumulates is generated separately, as it
        starts from zero."""
        if not loops:
            body()
            return
        loop, rest = loops[0], loops[1:]
        extent, tile = self._blocks.extents[loop], self._blocks.tiles[loop]
        start = 0
        if loop in (K, L) or extent == tile:
            self._at[loop] = (self._constant(0), True)
            self._loop(rest, body)
            start = tile
        if start == extent:
            return
        name = f"%{NAMES[loop]}{len(self._lines)}"
        low, high, step = (self._constant(value) for value in (start, extent, tile))
        self._emit(f"scf.for {name} = {low} to {high} step {step} {{")
        self._depth += 1
        self._at[loop] = (name, start == 0)
        self._loop(rest, body)
        self._depth -= 1
        self._emit("}")

    def _product(self, lhs: str, rhs: str, out: str, c: str, dims: Sequence[int], *, local: str = "") -> None:
        """Generates out += lhs * rhs over the dims (m, n, k); `local` names the operand that is the block of C."""
        m, n, k = dims
        extents, sizes = ([side[dim] for dim in dims] for side in (self._blocks.extents, self._blocks.tiles))
        offsets = ", ".join(self._at[dim][0] for dim in dims)
        over = "affine_map<(d0, d1, d2)[s0, s1, s2] -> "
        acc = over + ("(d0 - s0, d1 - s1)>" if local == "acc" else "(d0, d1)>")
        lhs_map = over + ("(d0 - s0, d2 - s2)>" if local == "lhs" else "(d0, d2)>")
        lhs_type = c if lhs == "%c" else self._slice(m, k)
        out_type = c if out == "%c" else self._slice(m, n)
        rhs_type = self._slice(k, n)
        init = "0.0 : f32" if self._at[k][1] else "unit"
        self._emit(
            f"tile.compute {extents} sizes {sizes} offsets [0, 1, 2] ({offsets}) vector 1 reduce [2] "
            f'into ({out} : {out_type}) at [{acc}] inits [{init}] kinds ["add"] '
            'attributes {micro_kernel = "fma"} {'
        )
        self._emit("^bb0(%s: f32):")
        self._emit(f"  %u = tile.load {lhs} at {lhs_map} : {lhs_type} -> f32")
        self._emit(f"  %v = tile.load {rhs} at {over}(d2, d1)> : {rhs_type} -> f32")
        self._emit("  %p = arith.mulf %u, %v : f32")
        self._emit("  %t = arith.addf %s, %p : f32")
        self._emit("  tile.yield %t : f32")
        self._emit("}")

    def _program(self, *, outputs: int) -> str:
        a, b, c, d, e = (self._slice(*of) for of in ((M, K), (K, L), (M, L), (L, N), (M, N)))
        arguments = [f"%a: {a}", f"%b: {b}", f"%d: {d}", f"%e: {e}"] + ([f"%c: {c}"] if outputs == 2 else [])
        constants = [f"  {name} = arith.constant {value} : index" for value, name in self._constants.items()]
        return "\n".join(
            [
                f"tile.program @chain outputs {outputs} {{",
                f"^bb0({', '.join(arguments)}):",
                "tile.parallel [] tiles [] workgroups 1 {",
                "tile.walk {",
                *constants,
                *self._lines,
                "}",
                "}",
                "}",
            ]
        )
