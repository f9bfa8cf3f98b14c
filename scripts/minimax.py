"""Makes the polynomials of passes/codegen/common/VectorMath*.cpp: `scripts/minimax.py` writes VectorMathTables.h.

Each polynomial is the best uniform approximation (Remez' exchange on a dense grid of Chebyshev points, 40 digits) under
the weight that turns its error into the relative error of the function it is a part of. The two lowest coefficients
are rounded to the element type one after another, the rest being fitted again each time, so that their rounding costs
nothing; the others are rounded at the end. The header says what error is left, in exact arithmetic.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpmath import mp, mpf

mp.dps = 40

_HEADER = Path(__file__).parents[1] / "passes" / "codegen" / "common" / "VectorMathTables.h"
_GRID = 400
_TINY = mpf(10) ** -9
_HALF_LN2 = (
    mp.log(2) / 2 * mpf("1.003")
)  # margin, because the product that is rounded to an integer is itself rounded
_EIGHTH_TURN = mp.pi / 4 * mpf("1.005")

Function = Callable[[mpf], mpf]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The polynomial of degree `degree` nearest to `target` on [low, high], its error multiplied by `weight`."""

    name: str
    comment: str
    target: Function
    weight: Function
    low: mpf
    high: mpf
    degree: int
    double: bool = False


def _rounded(value: mpf, *, double: bool) -> mpf:
    code = "d" if double else "f"
    return mpf(struct.unpack(code, struct.pack(code, float(value)))[0])


def _powers(x: mpf, low: int, degree: int) -> list[mpf]:
    return [x**power for power in range(low, degree + 1)]


def _solve(points: Sequence[tuple[mpf, mpf, mpf]], low: int, degree: int) -> list[mpf]:
    """Returns the coefficients of the powers low..degree whose weighted error has one size and alternates at the
    points."""
    rows = [[*_powers(x, low, degree), (-1) ** row / w] for row, (x, _, w) in enumerate(points)]
    solution = mp.lu_solve(mp.matrix(rows), mp.matrix([y for _, y, _ in points]))
    return list(solution)[:-1]


def _extrema(errors: Sequence[mpf], count: int) -> list[int]:
    """Returns where each run of one sign is largest; drops the smallest of the ends until `count` remain."""
    found: list[int] = []
    for index, error in enumerate(errors):
        if not found or (error > 0) != (errors[found[-1]] > 0):
            found.append(index)
        elif abs(error) > abs(errors[found[-1]]):
            found[-1] = index
    while len(found) > count:
        found.pop(0 if abs(errors[found[0]]) < abs(errors[found[-1]]) else -1)
    return found


def _exchange(grid: Sequence[tuple[mpf, mpf, mpf]], low: int, degree: int) -> list[mpf]:
    """Runs Remez' exchange for the powers low..degree."""
    count = degree - low + 2
    chosen = [round(i * (len(grid) - 1) / (count - 1)) for i in range(count)]
    coefficients: list[mpf] = []
    for _ in range(30):
        coefficients = _solve([grid[i] for i in chosen], low, degree)
        errors = [w * (y - mp.fdot(coefficients, _powers(x, low, degree))) for x, y, w in grid]
        extrema = _extrema(errors, count)
        if extrema == chosen or len(extrema) < count:
            break
        chosen = extrema
    return coefficients


def fit(problem: Fit) -> tuple[list[mpf], mpf]:
    """Returns the coefficients from the lowest, rounded to the element type, and the largest weighted error they
    leave."""
    middle, radius = (problem.low + problem.high) / 2, (problem.high - problem.low) / 2
    points = [middle - radius * mp.cos(mp.pi * i / (_GRID - 1)) for i in range(_GRID)]
    exact = [(x, problem.target(x), problem.weight(x)) for x in points]
    grid, done = exact, list[mpf]()
    for low in range(min(2, problem.degree)):
        lowest = _rounded(_exchange(grid, low, problem.degree)[0], double=problem.double)
        done.append(lowest)
        grid = [(x, y - lowest * x**low, w) for x, y, w in grid]
    rest = _exchange(grid, len(done), problem.degree)
    done += [_rounded(value, double=problem.double) for value in rest]
    return done, max(abs(w * (y - mp.polyval(done[::-1], x))) for x, y, w in exact)


def _at_zero(limit: mpf, function: Function) -> Function:
    """Returns the function, with its limit where it cannot be evaluated."""
    return lambda x: limit if x == 0 else function(x)


def _of_square(function: Function, limit: mpf) -> Function:
    """Returns an odd function divided by its argument, as a function of the argument's square."""
    return _at_zero(limit, lambda s: function(mp.sqrt(s)) / mp.sqrt(s))


def _problems() -> list[Fit]:
    ln2, one = mp.log(2), mpf(1)
    erf, sin = _of_square(mp.erf, 2 / mp.sqrt(mp.pi)), _of_square(mp.sin, one)
    asin, atan = _of_square(mp.asin, one), _of_square(mp.atan, one)
    log2_over = _at_zero(1 / ln2, lambda f: mp.log1p(f) / ln2 / f)
    exp2 = Fit(
        name="kExp2",
        comment="2^r = 1 + r P(r), |r| <= 1/2",
        target=_at_zero(ln2, lambda r: (mpf(2) ** r - 1) / r),
        weight=lambda r: (abs(r) + _TINY) * mpf(2) ** -r,
        low=mpf("-0.501"),
        high=mpf("0.501"),
        degree=5,
    )
    return [
        Fit(
            name="kExp",
            comment="exp r = 1 + r + r^2 P(r), |r| <= ln 2 / 2",
            target=_at_zero(mpf("0.5"), lambda r: (mp.expm1(r) - r) / r**2),
            weight=lambda r: (r**2 + _TINY) / mp.exp(r),
            low=-_HALF_LN2,
            high=_HALF_LN2,
            degree=4,
        ),
        Fit(
            name="kExpM1",
            comment="expm1 r = r + r^2 P(r), |r| <= 0.69",
            target=_at_zero(mpf("0.5"), lambda r: (mp.expm1(r) - r) / r**2),
            weight=_at_zero(_TINY, lambda r: abs(r**2 / mp.expm1(r))),
            low=mpf("-0.69"),
            high=mpf("0.69"),
            degree=6,
        ),
        exp2,
        replace(exp2, name="kExp2ForBf16", degree=2),
        Fit(
            name="kLog",
            comment="ln(1 + f) = f + f^2 P(f), 1/sqrt 2 <= 1 + f <= sqrt 2",
            target=_at_zero(mpf("-0.5"), lambda f: (mp.log1p(f) - f) / f**2),
            weight=_at_zero(_TINY, lambda f: abs(f**2 / mp.log1p(f))),
            low=mp.sqrt(mpf("0.5")) - 1,
            high=mp.sqrt(2) - 1,
            degree=9,
        ),
        Fit(
            name="kExp2xM1",
            comment="expm1 2r = 2r + r^2 P(r), -ln 2 / 4 <= r <= 0.28",
            target=_at_zero(mpf(2), lambda r: (mp.expm1(2 * r) - 2 * r) / r**2),
            weight=_at_zero(_TINY, lambda r: abs(r**2 / mp.expm1(2 * r))),
            low=-_HALF_LN2 / 2,
            high=mpf("0.28"),
            degree=5,
        ),
        Fit(
            name="kErf",
            comment="erf x = x + x P(x^2), |x| <= 1",
            target=lambda s: erf(s) - 1,
            weight=lambda s: 1 / erf(s),
            low=mpf(0),
            high=one,
            degree=6,
        ),
        Fit(
            name="kErfcRoot",
            comment="erf x = 1 - P(x)^8, 1 <= x <= 3.93",
            target=lambda x: mp.root(mp.erfc(x), 8),
            weight=lambda x: 8 * mp.erfc(x) / mp.root(mp.erfc(x), 8),
            low=one,
            high=mpf("3.93"),
            degree=7,
        ),
        Fit(
            name="kSin",
            comment="sin r = r + r s P(s), s = r^2, |r| <= pi/4",
            target=_at_zero(-one / 6, lambda s: (sin(s) - 1) / s),
            weight=lambda s: (s + _TINY) / sin(s),
            low=mpf(0),
            high=_EIGHTH_TURN**2,
            degree=2,
        ),
        Fit(
            name="kCos",
            comment="cos r = 1 - s/2 + s^2 P(s), s = r^2, |r| <= pi/4",
            target=_at_zero(one / 24, lambda s: (mp.cos(mp.sqrt(s)) - 1 + s / 2) / s**2),
            weight=lambda s: (s**2 + _TINY) / mp.cos(mp.sqrt(s)),
            low=mpf(0),
            high=_EIGHTH_TURN**2,
            degree=2,
        ),
        Fit(
            name="kAsin",
            comment="asin x = x + x s P(s), s = x^2, |x| <= 1/2",
            target=_at_zero(one / 6, lambda s: (asin(s) - 1) / s),
            weight=lambda s: (s + _TINY) / asin(s),
            low=mpf(0),
            high=mpf("0.25"),
            degree=5,
        ),
        Fit(
            name="kAtan",
            comment="atan x = x + x s P(s), s = x^2, |x| <= 1",
            target=_at_zero(-one / 3, lambda s: (atan(s) - 1) / s),
            weight=lambda s: (s + _TINY) / atan(s),
            low=mpf(0),
            high=one,
            degree=9,
        ),
        Fit(
            name="kWideLog2",
            comment="log2(1 + f) = f P(f), 1/sqrt 2 <= 1 + f <= sqrt 2, in f64",
            target=log2_over,
            weight=lambda f: 1 / log2_over(f),
            low=mp.sqrt(mpf("0.5")) - 1,
            high=mp.sqrt(2) - 1,
            degree=12,
            double=True,
        ),
    ]


def _table(problem: Fit) -> str:
    coefficients, error = fit(problem)
    # Nine and seventeen digits distinguish all f32 and f64 values.
    digits = [f"{float(value):.{16 if problem.double else 8}e}" for value in coefficients]
    entries = ", ".join(value if problem.double else value + "f" for value in digits)
    bits = mp.nstr(mp.log(error, 2), 4)
    element = "double" if problem.double else "float"
    return f"/// {problem.comment}; error 2^{bits}.\ninline constexpr {element} {problem.name}[] = {{{entries}}};\n"


def _two_over_pi() -> str:
    """Returns words of 2/pi, which with the zeros before the binary point are enough for any f32."""
    with mp.workdps(120):
        words = [int(mp.floor(mp.ldexp(2 / mp.pi, 32 * i))) & 0xFFFFFFFF for i in range(8)]
    entries = ", ".join(f"0x{word:08X}" for word in words)
    return (
        "/// The bits of 2/pi, 32 a word, from those above the binary point.\n"
        f"inline constexpr unsigned kTwoOverPi[] = {{{entries}}};\n"
    )


def _half_pi() -> str:
    parts, rest = [], mp.pi / 2
    for _ in range(3):
        parts.append(_rounded(rest, double=False))
        rest -= parts[-1]
    entries = ", ".join(f"{float(part):.8e}f" for part in parts)
    accuracy = mp.nstr(mp.log(abs(rest), 2), 4)
    return (
        f"/// pi/2 as a sum, accurate to 2^{accuracy}.\ninline constexpr float kHalfPi[] = {{{entries}}};\n"
    )


def header() -> str:
    """Returns the text of VectorMathTables.h."""
    tables = "\n".join(_table(problem) for problem in _problems())
    return (
        "// Polynomials of the vector math, from the lowest coefficient. "
        "Made by scripts/minimax.py: edit that instead.\n"
        "// clang-format off\n"
        "#ifndef TILEWRIGHT_CODEGEN_CPU_VECTORMATHTABLES_H\n"
        "#define TILEWRIGHT_CODEGEN_CPU_VECTORMATHTABLES_H\n\n"
        f"namespace tilewright::vecmath {{\n\n{tables}\n{_half_pi()}\n{_two_over_pi()}\n"
        "} // namespace tilewright::vecmath\n\n#endif\n"
    )


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=_HEADER, help="the header to write")
    parser.parse_args().output.write_text(header())


if __name__ == "__main__":
    _main()
