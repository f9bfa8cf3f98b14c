"""Feature levels of x86-64: the instruction sets for which kernels are tested, whichever processor runs the tests.

A module or test with the marker `cpu_levels` runs once for each level: during the run, target "cpu" means that level,
so tests need not name a target. `@pytest.mark.cpu_levels("cpu")` runs a test of such a module for this machine alone,
which suits tests that name their targets themselves or compile for no CPU.

Every test lands with one level, which is drawn by the test's name, or with those that the marker names:
`cpu_levels(landing=("x86-64-avx2",))`. The other levels have the marker `full`, which `--all` selects.

If this machine lacks the instructions of a level, a test compiles down to the object file and is skipped where it
would call the program.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import tilewright
from tilewright.api import compilation
from tilewright.records.targets import Target
from tilewright.runtime.processor import missing_features

HOST = "cpu"
LEVELS = ("x86-64-v2", "x86-64-avx2", "x86-64-avx512", HOST)
"""Names as in `tilewright targets`, narrowest first, then this machine with all of its instructions."""

_PROPERTY = "cpu_level"

Result = TypeVar("Result")

_current = HOST


def current() -> str:
    """Returns the level that target "cpu" means now."""
    return _current


def missing_here(level: str) -> list[str]:
    """Returns the extensions of a level that this machine lacks."""
    return missing_features(Target.lookup(level).features)


def why_not_run(level: str) -> str:
    """Returns why programs of a level are compiled but not called here, or "" if they are called."""
    missing = missing_here(level)
    return f"compiled for {level} and not run: this machine lacks {', '.join(missing)}" if missing else ""


@contextmanager
def standing_for_cpu(level: str) -> Iterator[None]:
    """Makes target "cpu" mean a level for every compilation of this process."""
    global _current
    compile_with, reason = compilation.compile_with, why_not_run(level)
    refuse = tilewright.Program._refuse_missing_features

    def compile_for_level(options: Any, model: Any, target: Any = HOST, **others: Any) -> tilewright.Program:
        # A sequence or a `Target` is not "cpu" either.
        return compile_with(options, model, level if target == HOST else target, **others)

    def refuse_or_skip(self: tilewright.Program) -> None:
        if self.metadata.target == level:
            pytest.skip(reason)
        refuse(self)

    before, _current = _current, level
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "compile_with", compile_for_level)
        if reason:
            patch.setattr(tilewright.Program, "_refuse_missing_features", refuse_or_skip)
        try:
            yield
        finally:
            _current = before


def cached(function: Callable[..., Result]) -> Callable[..., Result]:
    """Caches like `functools.cache`, separately for each level."""
    of_level = functools.cache(lambda level, *arguments, **named: function(*arguments, **named))

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Result:
        return of_level(current(), *arguments, **named)

    return call


# The functions below serve the hooks of pytest.


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Makes a test with the marker one test for each level."""
    mark = metafunc.definition.get_closest_marker("cpu_levels")
    if mark is None or (levels := mark.args or LEVELS) == (HOST,):
        return
    metafunc.parametrize("cpu_target", levels, indirect=True, scope="module")


def level_of(item: pytest.Item) -> str | None:
    """Returns the level that a test runs for, or None if the test does not run for several."""
    params: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    return params.get("cpu_target")


def lands(item: pytest.Item) -> bool:
    """Returns True if the level of a test runs without `--all`."""
    level, mark = level_of(item), item.get_closest_marker("cpu_levels")
    if level is None or mark is None:
        return True
    landing: Sequence[str] = mark.kwargs.get("landing", ())
    if landing:
        return level in landing
    levels: Sequence[str] = mark.args or LEVELS
    return level == levels[_draw(item) % len(levels)]


def _draw(item: pytest.Item) -> int:
    """Returns the same number for tests of a module with the same parameters, because they share compiled programs."""
    assert isinstance(item, pytest.Function)
    return zlib.crc32(f"{item.path.name} {parameters(item) or item.originalname}".encode())


def parameters(item: pytest.Function) -> str:
    """Returns the text that distinguishes a case of a test from its other cases, without the level."""
    if not hasattr(item, "callspec"):
        return ""
    return item.callspec.id.replace(level_of(item) or "", "", 1).strip("-")


def note_level(item: pytest.Item) -> None:
    """Writes a test's level into its report, which crosses the processes of pytest-xdist."""
    if (level := level_of(item)) is not None:
        item.user_properties.append((_PROPERTY, level))


def summary(reports: Sequence[pytest.TestReport]) -> list[str]:
    """Returns a line for each level that tests of this run ran for, with the processor."""
    tests = Counter(dict(report.user_properties).get(_PROPERTY) for report in reports)
    lines = [f"processor: {_processor()}"]
    for level in LEVELS:
        if tests[level]:
            how = why_not_run(level) or ("run, with all that it has" if level == HOST else "run")
            lines.append(f"{level}: {tests[level]} tests, {how}")
    return lines if len(lines) > 1 else []


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "unknown"
    found = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1] if found else "unknown"
