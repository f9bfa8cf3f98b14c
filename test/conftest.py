"""Fixtures and options of all Python tests: the two tiers, and the feature levels of CPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import cpu_levels
import pytest
import schedule
import tiers
import tilewright
from tilewright.api import stitch
from tilewright.api.fallback import next_attempt

_COUNTS = "counts"
"""Name of a test's property with its counts, which the end of a run sums up."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="also run what is marked `full`: see docs/design/testing.md"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cpu_levels.parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.mark_full(items)
    left = [] if config.getoption("--all") else [item for item in items if item.get_closest_marker("full")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    if hasattr(config, "workerinput"):  # a process of pytest-xdist
        schedule.slow_files_first(items)


def pytest_runtest_setup(item: pytest.Item) -> None:
    cpu_levels.note_level(item)


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport, config: pytest.Config
) -> Generator[None, tuple[str, str, str], tuple[str, str, str]]:
    """Names a test when it fails, and not only at the end of a run, which a machine may cut off."""
    category, letter, word = yield
    if report.failed and config.get_verbosity() <= 0:
        letter = f"{letter} {report.nodeid}\n"
    return category, letter, word


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Reports which feature levels ran on which processor, and the counts of the tests."""
    kinds = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")
    reports = [
        report
        for kind in kinds
        for report in terminalreporter.stats.get(kind, [])
        if isinstance(report, pytest.TestReport)
    ]
    lines = cpu_levels.summary(reports)
    if lines and not config.getoption("--all"):
        lines.append("Each test ran for one level or some; --all runs it for each.")
    counted = Counter[str]()
    for report in reports:
        for name, value in report.user_properties:
            if name == _COUNTS:
                counted.update(value)
    if counted:
        lines.append(", ".join(f"{number} {what}" for what, number in counted.items()))
    if lines:
        terminalreporter.section("what ran")
    for line in lines:
        terminalreporter.line(line)


@pytest.fixture(scope="session", autouse=True)
def _no_measured_plans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Isolates the tests from plans that the user of this machine tuned, and from programs in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE", "off")
        patch.setenv("TILEWRIGHT_TUNING", str(tmp_path_factory.mktemp("tuning") / "none.db"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _kept_compilers(_no_measured_plans: None) -> Iterator[None]:
    """Keeps the compilers' processes alive, because starting them takes a large part of the time of small
    compilations."""
    with tilewright.keep_compilers():
        yield


@pytest.fixture(scope="module", autouse=True)
def cpu_target(request: pytest.FixtureRequest) -> Iterator[str]:
    """Sets the feature level that target "cpu" means: see `cpu_levels`.

    A module's fixture that keeps compiled programs must request this one, so that it is made anew for each level.
    """
    level: str = getattr(request, "param", cpu_levels.HOST)
    with cpu_levels.standing_for_cpu(level):
        yield level


_may_fall_back = False


@pytest.fixture(scope="session", autouse=True)
def _failing_passes_are_errors() -> Iterator[None]:
    """Turns the failure of a pass into an error. Outside of tests, a compilation continues if a pass fails on one of
    its kernels."""

    def next_or_raise(error: tilewright.PassError, *arguments: Any, **keywords: Any) -> Any:
        if not _may_fall_back:
            raise error
        return next_attempt(error, *arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stitch, "next_attempt", next_or_raise)
        yield


@pytest.fixture
def may_fall_back() -> Iterator[None]:
    """Lets compilations of a test continue if a pass fails on a kernel, as they do for users."""
    global _may_fall_back
    _may_fall_back = True
    yield
    _may_fall_back = False
