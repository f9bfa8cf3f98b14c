"""Numbers in the C++ code: one that decides how fast a program is, is a cost parameter, with unit, source and date.

constants.toml lists all other constants, each with its kind, so that a new number is sorted once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = Path(__file__).with_name("constants.toml")

FOLDERS = ("graph", "normalize", "plan", "cost", "layout", "program", "codegen", "backend", "support")
"""Folders of passes/. passes/target holds the numbers of machines, passes/iree those of another project."""

KINDS = {"fact", "search", "numerics", "table"}
"""constants.toml says what each is."""

DECLARATION = re.compile(
    r"\bconstexpr\s+(?:const\s+)?(?:std::)?(?:bool|float|double|int|unsigned|size_t|u?int\d+_t)\s+(?P<names>[^;()]*?[={][^;]*);"
)
"""A declaration of numbers. A function has a parenthesis before any value."""


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def constants_of(text: str) -> list[str]:
    """Returns the names of the numbers that C++ code declares as constexpr, in order."""
    names = []
    for declaration in DECLARATION.finditer(_without_comments(text)):
        values = re.sub(r"\{[^{}]*\}|\([^()]*\)", "", declaration["names"])  # commas inside belong to values
        names += [
            name for part in values.split(",") if (name := part.partition("=")[0].strip().removesuffix("[]"))
        ]
    return names


def _constants() -> Iterator[tuple[str, str]]:
    """Yields the file and the name of each constant."""
    for folder in FOLDERS:
        for path in sorted((ROOT / "passes" / folder).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield from ((str(path.relative_to(ROOT)), name) for name in constants_of(path.read_text()))


def _listed() -> dict[tuple[str, str], str]:
    files = tomllib.loads(TABLE.read_text())
    return {(file, name): kind for file, names in files.items() for name, kind in names.items()}


def test_a_number_that_decides_how_fast_a_program_is_is_a_cost_parameter() -> None:
    listed = _listed()
    unsorted = [
        f"{file}: {name}: if it decides how fast a program is, it belongs into passes/target/CostParameters.def, with "
        f"unit, source and date; otherwise, list it with its kind in {TABLE.relative_to(ROOT)}"
        for file, name in _constants()
        if (file, name) not in listed
    ]
    assert unsorted == []


def test_constants_that_are_gone_are_listed_no_more() -> None:
    known = set(_constants())
    gone = [
        f"{file}: {name}: remove it from the list" for file, name in _listed() if (file, name) not in known
    ]
    assert gone == []


def test_each_constant_has_a_kind_that_there_is() -> None:
    assert {kind for kind in _listed().values() if kind not in KINDS} == set()


def test_all_numbers_of_a_declaration_are_found() -> None:
    text = """
// constexpr int64_t kComment = 1;
static constexpr int64_t kFirst = 2 * (3 + 4), kSecond = 5; ///< constexpr int kBehind = 6;
inline constexpr float kRow[] = {1.0f,
                                 2.0f};
constexpr double kLast = std::numeric_limits<double>::infinity();
constexpr int64_t twice(int64_t of) { return 2 * of; }
constexpr llvm::StringLiteral kName = "name";
"""
    assert constants_of(text) == ["kFirst", "kSecond", "kRow", "kLast"]
