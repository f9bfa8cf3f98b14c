"""The two tiers of tests: those that land, and those that only `--all` runs; see docs/design/testing.md.

Tests that do not land have the marker `full`, by hand or from here: tests for the other feature levels (`cpu_levels`)
and, for a test with the marker `lands(one_in=n)`, all but every nth of its cases. At least one case of every test
lands.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable

import cpu_levels
import pytest


def mark_full(items: Iterable[pytest.Item]) -> None:
    """Marks the tests that do not land."""
    cases: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        if not cpu_levels.lands(item):
            item.add_marker(pytest.mark.full)
        elif isinstance(item, pytest.Function) and item.get_closest_marker("lands"):
            cases.setdefault((str(item.path), item.originalname), []).append(item)
    for of_test in cases.values():
        mark = of_test[0].get_closest_marker("lands")
        assert mark is not None
        kept = math.ceil(len(of_test) / mark.kwargs["one_in"])
        for item in sorted(of_test, key=_draw)[kept:]:
            item.add_marker(pytest.mark.full)


def _draw(item: pytest.Function) -> int:
    """Returns the same number for tests with the same parameters, because they may share compiled programs."""
    return zlib.crc32(cpu_levels.parameters(item).encode())
