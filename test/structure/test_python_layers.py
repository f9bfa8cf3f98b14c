"""The levels of the Python code: a package imports only from packages below it, also inside functions.

docs/design/layout.md says what each package is for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from arrows import wrong_arrows

ROOT = Path(__file__).resolve().parent.parent.parent

LEVELS: tuple[tuple[str, ...], ...] = (
    ("tilewright.errors", "tilewright._native", "tilewright._runtime"),
    ("tilewright.system",),
    ("tilewright.ir",),
    ("tilewright.dialects",),
    ("tilewright.pipelines",),
    ("tilewright._passes_generated",),
    ("tilewright.passes",),
    ("tilewright.records",),
    ("tilewright.reference",),
    ("tilewright.worker",),
    ("tilewright.iree",),
    ("tilewright.runtime",),
    ("tilewright.frontends",),
    ("tilewright.simulator", "tilewright.tuning"),
    ("tilewright.cache",),
    ("tilewright.api",),
    ("tilewright.calibration", "tilewright.compare", "tilewright.torch"),
    ("tilewright.cli",),
    ("tilewright", "tilewright.__main__"),
)
"""Packages from the lowest level up. Packages of one level must not depend on each other."""

GENERATED = {"tilewright._native", "tilewright._runtime", "tilewright._passes_generated"}
"""Modules that exist only in a build."""


def _files() -> list[Path]:
    return sorted((ROOT / "python/tilewright").rglob("*.py"))


def _module(path: Path) -> str:
    """Returns the dotted name of a file, such as "tilewright.iree.text"; for an `__init__.py`, that of its package."""
    parts = path.relative_to(ROOT / "python").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _part(module: str) -> str:
    """Returns the package, or top-level module, that a module belongs to."""
    return ".".join(module.split(".")[:2])


def _imports(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yields the modules that a file imports anywhere, with their line numbers."""
    package = path.parent.relative_to(ROOT / "python").parts
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *(node.module.split(".") if node.module else ())))
            for alias in node.names:
                # A name imported from the package itself is a module of it, or one of its public names.
                yield node.lineno, f"{module}.{alias.name}" if module == "tilewright" else module


def _arrows(path: Path, text: str) -> Iterator[tuple[str, str, str]]:
    """Yields the imports of this repository's code. The fuzzer and the benchmarks exist only in a checkout and have no
    level."""
    for line, module in _imports(path, text):
        if module.split(".")[0] in ("tilewright", "fuzz", "benchmarks"):
            yield f"{path.relative_to(ROOT)}:{line}", _part(_module(path)), _part(module)


def test_imports_run_downwards() -> None:
    arrows = [arrow for path in _files() for arrow in _arrows(path, path.read_text())]
    assert list(wrong_arrows(arrows, LEVELS)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import tilewright.cli.main",
        "from tilewright import cli",
        "from tilewright.cli import main",
        "from tilewright.cli.main import main",
        "from ..cli import main",
        "def late():\n    from tilewright.cli.main import main",
    ],
)
def test_an_import_that_runs_upwards_is_found(text: str) -> None:
    found = list(wrong_arrows(_arrows(ROOT / "python/tilewright/iree/text.py", text), LEVELS))
    line = text.count("\n") + 1
    assert found == [f"python/tilewright/iree/text.py:{line}: tilewright.iree must not know tilewright.cli"]


def test_the_package_does_not_need_a_checkout() -> None:
    arrows = _arrows(ROOT / "python/tilewright/cli/main.py", "from fuzz.cli import fuzz")
    assert [found.partition(": ")[2] for found in wrong_arrows(arrows, LEVELS)] == ["fuzz.cli has no level"]


def test_a_package_may_import_itself_and_what_is_below() -> None:
    text = (
        "from tilewright.iree.flags import x\nfrom . import faults\nfrom tilewright.errors import ModelError"
    )
    assert list(wrong_arrows(_arrows(ROOT / "python/tilewright/iree/text.py", text), LEVELS)) == []


def test_every_part_has_a_level() -> None:
    """Fails if a part has no level, or if a level names a package that no longer exists."""
    parts = {_part(_module(path)) for path in _files()}
    assert {part for row in LEVELS for part in row} == parts | GENERATED
