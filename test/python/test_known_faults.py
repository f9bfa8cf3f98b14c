"""The table of IREE's faults: its links hold, and with `--all` each program still shows its fault."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from tilewright.iree import fault_programs, known_faults, recheck
from tilewright.iree.known_faults import FAULTS, Fault
from tilewright.iree.versions import PINNED_IREE

_SHOWN = {name: fault for name, fault in FAULTS.items() if fault.program}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_the_workaround_is_where_the_table_says(fault: Fault) -> None:
    module, _, function = fault.where.partition(":")
    if module.startswith("tilewright.frontends.pytorch"):
        pytest.importorskip("torch")
    held = importlib.import_module(module)
    assert not function or callable(getattr(held, function))


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_a_fault_is_shown_or_says_why_not(fault: Fault) -> None:
    assert bool(fault.program) != bool(fault.unchecked)
    assert PINNED_IREE.startswith(fault.versions)


def test_every_program_belongs_to_a_fault() -> None:
    programs = {
        name
        for name, function in inspect.getmembers(fault_programs, inspect.isfunction)
        if function.__module__ == fault_programs.__name__ and not name.startswith("_")
    }
    assert programs == {fault.program for fault in _SHOWN.values()}


@pytest.mark.parametrize("fault", _SHOWN.values(), ids=list(_SHOWN))
def test_programs_are_valid_onnx(fault: Fault) -> None:
    evidence = fault.make()
    if not isinstance(evidence.model, str):
        onnx.checker.check_model(evidence.model)


@pytest.mark.full
@pytest.mark.parametrize("fault", _SHOWN.values(), ids=list(_SHOWN))
def test_iree_still_shows_the_fault(fault: Fault) -> None:
    assert recheck.recheck(fault) == fault.symptom


@pytest.mark.full
def test_a_program_that_hangs_is_ended_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"TILEWRIGHT_MARK={os.getpid()}"
    monkeypatch.setenv(*mark.split("="))
    monkeypatch.setattr(recheck, "_MOST_SECONDS", 10)
    (hanging,) = (fault for fault in _SHOWN.values() if fault.symptom == "hangs")
    assert recheck.recheck(hanging) == "hangs"
    assert [pid for pid in _processes(mark) if pid != os.getpid()] == []


def _processes(mark: str) -> Iterator[int]:
    """Yields the processes that have a variable in their environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def test_a_fault_that_is_gone_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        recheck, "recheck", lambda fault: "right" if fault.pattern == "Det" else fault.symptom
    )
    assert recheck.main(["determinants", "scans backwards", "narrow convolutions"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert (
        said[0] == f"determinants: right; the workaround may go: {known_faults.FAULTS['determinants'].where}"
    )
    assert said[1:] == ["scans backwards: wrong numbers", "narrow convolutions: not checked, needs a GPU"]
    assert recheck.main(["scans backwards"]) == 0
