"""The command line of the benchmarks refuses what cannot work, and keeps what an interrupted run has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmark_cases import sample_result

from benchmarks import run
from benchmarks.measure import Result

pytestmark = pytest.mark.usefixtures("fake_peers")


# A run takes hours, so that a wrong argument is refused before it starts.
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("stitch --peers nobody", "no peer is called 'nobody'; there are tilewright, iree,"),
        ("nosuite", "invalid choice: 'nosuite'"),
        ("stitch --dtypes f64", "no dtype is called 'f64'"),
        ("stitch --threads 0", "'0' is not a number of 1 or more"),
        ("stitch --rounds 0", "'0' is not a number of 1 or more"),
        ("stitch --seconds nan", "'nan' is not a number of seconds"),
        ("stitch --target nothing", "unknown target 'nothing'"),
        ("stitch --alone no-such-program", "'no-such-program' is not a program on this machine"),
        ("stitch --json /no/such/folder/x.json", "cannot be written"),
        ("stitch --report .", "is a folder"),
        ("stitch --plot x.txt", "must end in .svg"),
        ("stitch --plot x.svg --target cuda:h200", "no peers to be compared with"),
    ],
)
def test_what_cannot_work_is_one_line_at_once(
    arguments: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        run.main(arguments.split())
    [line] = capsys.readouterr().err.splitlines()
    assert exit.value.code == 2
    assert line.startswith("error: argument ") and reason in line


# A misspelt name must not be an empty run that looks like a success.
def test_unknown_workload_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["models", "--workloads", "nothing*"]) == 2
    assert "is called 'nothing*'" in capsys.readouterr().err


def _run_with(
    monkeypatch: pytest.MonkeyPatch, steps: Iterator[tuple[list[Result], dict[str, str]]], *arguments: str
) -> int:
    """Runs the runner with these measurements."""
    monkeypatch.setattr(run, "measure", lambda *_, **__: steps)
    monkeypatch.setattr("benchmarks.machine.limits", lambda *_, **__: None)
    return run.main(["stitch", "--workloads", "softmax-77*", *arguments])


def _interrupted() -> Iterator[tuple[list[Result], dict[str, str]]]:
    yield [sample_result()], {"onnx": "1"}
    raise KeyboardInterrupt


# An interrupt after hours loses only what is not measured yet.
def test_interrupted_run_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert _run_with(monkeypatch, _interrupted(), "--report", str(tmp_path / "out")) == 130
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert {row["workload"] for row in rows} == {"softmax-7x13"}
    assert "softmax-7x13" in (tmp_path / "out.md").read_text()
    assert "softmax-7x13" in (tmp_path / "out.svg").read_text()


# The same holds where no file was named.
def test_interrupted_run_without_files_prints_what_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_with(monkeypatch, _interrupted()) == 130
    printed = capsys.readouterr()
    assert "| softmax-7x13 f32 |" in printed.out
    assert printed.err == "interrupted\n"
