"""The levels of the code: a folder includes and imports only from folders below it, and files stay short.

docs/design/layout.md says what each folder is for, and why they have this order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from arrows import wrong_arrows

ROOT = Path(__file__).resolve().parent.parent.parent

CPP_LEVELS: tuple[tuple[str, ...], ...] = (
    ("passes/support", "runtime"),
    ("dialects/tile",),
    ("passes/target",),
    ("passes/graph",),
    ("passes/layout",),
    ("passes/normalize", "passes/cost"),
    ("passes/normalize/forms", "passes/normalize/layers"),
    ("passes/plan/ir",),
    ("passes/plan/space",),
    ("passes/backend",),
    ("passes/plan/tiling/cpu", "passes/plan/tiling/gpu"),
    ("passes/plan/tiling",),
    ("passes/plan/scopes",),
    ("passes/plan/grid", "passes/plan/search"),
    ("passes/plan/fusion",),
    ("passes/plan/forms", "passes/plan/apply"),
    ("passes/program",),
    ("passes/program/cpu", "passes/program/gpu"),
    ("passes/program/movement", "passes/codegen/common"),
    ("passes/codegen/cpu", "passes/codegen/gpu/copy", "passes/codegen/gpu/nest"),
    ("passes/codegen/gpu/gemm",),
    ("passes/codegen/gpu",),
    ("passes/iree",),
    ("passes/backend/common",),
    ("passes/backend/cpu", "passes/backend/cuda"),
    ("passes",),
    ("tools/simulator",),
    ("core",),
    ("tools/tilewright-opt", "tools", "python/bindings"),
)
"""Folders from the lowest level up. Folders of one level must not depend on each other."""

PASS_INTERFACE = ("passes/Passes.h", "passes/Passes.h.inc")
"""Generated declarations of all passes. They belong to no folder, so every folder may include them."""

MOST_LINES = 500
"""Most lines of a C++ file. A longer file holds more than one idea."""

ODD_OPENING = re.compile(r"^\s*///?<? (?:Of|In which|What|Whether|By which) ")
"""Beginnings of fragments. A comment says first what a thing is, in a sentence with a subject and a verb."""


def _cpp_files() -> list[Path]:
    folders = ("passes", "dialects", "core", "runtime", "tools", "python/bindings")
    return sorted(
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cpp")
    )


def _includes(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the project's own headers that a file includes, with their line numbers."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.match(r'#include "((?:passes|dialects|core|tools)/[^"]+)"', line):
            yield number, match[1]


def test_includes_run_downwards() -> None:
    arrows = [
        (f"{path.relative_to(ROOT)}:{number}", str(path.relative_to(ROOT).parent), str(Path(header).parent))
        for path in _cpp_files()
        for number, header in _includes(path)
        if header not in PASS_INTERFACE
    ]
    assert list(wrong_arrows(arrows, CPP_LEVELS)) == []


def test_programs_and_code_are_made_as_the_plan_says() -> None:
    """Lowering and code generation carry a plan out: they know its struct, and nothing that decides."""
    deciding = [
        f"{path.relative_to(ROOT)}:{number}: {header}"
        for folder in ("passes/program", "passes/codegen")
        for path in _cpp_files()
        if path.is_relative_to(ROOT / folder)
        for number, header in _includes(path)
        if header.startswith(("passes/cost/", "passes/plan/", "passes/backend/"))
        and not header.startswith("passes/plan/ir/")
    ]
    assert deciding == []


def test_an_arrow_that_runs_upwards_is_found() -> None:
    levels = (("a",), ("b", "c"))
    arrows = [("1", "b", "a"), ("2", "a", "b"), ("3", "b", "c"), ("4", "b", "b"), ("5", "d", "a")]
    assert list(wrong_arrows(arrows, levels)) == [
        "2: a must not know b",
        "3: b must not know c",
        "5: d has no level",
    ]


@pytest.mark.parametrize("path", _cpp_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_comments_are_sentences() -> None:
    odd = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (*_cpp_files(), *sorted((ROOT / "test/unit").rglob("*.cpp")))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ODD_OPENING.match(line)
    ]
    assert odd == []
