"""`python -m fuzz`: runs in several processes, a summary, tallies, and refusals of wrong arguments."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tilewright.errors import OutputError

from fuzz.cli import fuzz as cli
from fuzz.drive import drive
from fuzz.graphs import random_graph
from fuzz.hostile import Case
from fuzz.hostile import summarize as summarize_cases
from fuzz.hunt import Finding, Outcome
from fuzz.judge import GRAPHS_PER_MODULE, Verdict, operators
from fuzz.kinds import KINDS
from fuzz.summary import as_text, summarize
from fuzz.tally import add_broken_inputs, add_graphs


def test_the_command_offers_every_kind_of_graph() -> None:
    [option] = [option for option in cli.params if option.name == "kind"]
    assert isinstance(option.type, click.Choice) and list(option.type.choices) == list(KINDS)


def test_a_tally_adds_up_runs(tmp_path: Path) -> None:
    refused = Verdict(kind="refused", message="the op 'x' is not supported")
    outcome = Outcome({1: Verdict(kind="passed", taken=9, eligible=9), 2: refused})
    summary = summarize(outcome, target="cpu", kind="wide", seconds=2.0)
    file = tmp_path / "tally.json"
    for _ in range(2):
        together = add_graphs(file, summary)
    assert (together["graphs"], together["passed"], together["refused"]) == (4, 2, 2)
    assert together["graphs_by_kind"] == {"wide": 4}
    assert [run["seeds"] for run in json.loads(file.read_text())["graphs"]["runs"]] == [[1, 3], [1, 3]]


def test_a_tally_has_broken_inputs_beside_graphs(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"
    add_graphs(file, summarize(Outcome({1: Verdict(kind="passed")}), target="cpu", seconds=2.0))
    refused = Case(
        seed=4, mutation="truncate", outcome="refused", message="", data=b"", suffix=".onnx", command=()
    )
    for _ in range(2):
        together = add_broken_inputs(file, summarize_cases([refused], seconds=3.0))
    assert together == {"inputs": 2, "outcomes": {"refused": 2}, "seconds": 6}
    assert json.loads(file.read_text())["graphs"]["totals"]["graphs"] == 1


def test_a_file_that_is_no_tally_stays(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"
    file.write_text("{}")
    with pytest.raises(OutputError, match="is no tally"):
        add_graphs(file, {})
    assert file.read_text() == "{}"


def test_the_summary_counts() -> None:
    good, little = Verdict(kind="passed", taken=9, eligible=9), Verdict(kind="passed", taken=1, eligible=3)
    bad = Verdict(kind="hang", message="took longer")
    partial = Verdict(kind="passed", taken=9, eligible=9, is_compared=False)
    refused = Verdict(kind="refused", message="the op 'x' is not supported")
    verdicts = {1: good, 2: little, 3: bad, 4: partial, 5: refused}
    outcome = Outcome(verdicts, findings=[Finding((3,), bad)])
    summary = summarize(outcome, target="cpu", seconds=1.0)
    assert (summary["graphs"], summary["passed"], summary["passed_and_counted"]) == (5, 3, 1)
    assert summary["refused_seeds"] == {"the op _ is not supported": [5]}
    assert summary["seeds"] == [1, 6]
    assert (summary["seeds_below_the_share"], summary["not_compared"]) == ([2], 1)
    assert summary["failures_by_kind"] == {"hang": 1}
    assert "1 x hang" in as_text(summary)
    json.dumps(summary)


class _Process:
    def __init__(self, opened: list[_Process]) -> None:
        self.is_open = True
        opened.append(self)

    def close(self) -> None:
        self.is_open = False


def _square(number: int, process: _Process) -> int:
    assert process.is_open
    return number * number


def test_results_come_in_order_from_no_more_processes_than_jobs() -> None:
    opened: list[_Process] = []
    squares: list[int] = []
    drive(range(50), _square, jobs=3, process=lambda: _Process(opened), done=squares.append)
    assert squares == [number * number for number in range(50)]
    assert 1 <= len(opened) <= 3


def test_processes_end_with_an_interrupted_run() -> None:
    opened: list[_Process] = []

    def interrupted(square: int) -> None:
        if square == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(range(50), _square, jobs=2, process=lambda: _Process(opened), done=interrupted)
    assert opened and not any(process.is_open for process in opened)


def test_the_command_judges_and_writes_a_summary(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["--seeds", "0:3", "--jobs", "1", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["passed"] == 3 and summary["kind"] == "all"
    path = tmp_path / "model.onnx"
    path.write_bytes(random_graph(0).SerializeToString())
    result = CliRunner().invoke(cli, ["--replay", str(path), "--seeds", "0:1"])
    assert result.exit_code == 0 and "passed" in result.output


def test_the_command_judges_the_kind_that_it_is_given(tmp_path: Path) -> None:
    options = [
        "--kind",
        "windows",
        "--seeds",
        "0:2",
        "--target",
        "x86-64-avx2",
        "--jobs",
        "1",
        "--output",
        str(tmp_path),
    ]
    result = CliRunner().invoke(cli, options)
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["kind"], summary["target"], summary["passed"]) == ("windows", "x86-64-avx2", 2)
    assert set(summary["operators"]) == set(
        operators(KINDS["windows"].graph(0)) + operators(KINDS["windows"].graph(1))
    )


def test_seeds_that_are_no_range_are_refused() -> None:
    result = CliRunner().invoke(cli, ["--seeds", "7"])
    assert result.exit_code == 2 and "A:B" in result.output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--target", "vax"], "unknown target 'vax'"),
        (["--hostile", "2", "--corpus", "no/such"], "no lit tests"),
    ],
)
def test_what_cannot_be_fuzzed_is_one_error(arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 1 and result.output.count("\n") == 1 and reason in result.output


def test_graphs_for_a_simulated_gpu_have_no_other_target() -> None:
    refused = CliRunner().invoke(cli, ["--seeds", "0:1", "--device", "sim:h200", "--target", "cuda:a100"])
    assert refused.exit_code == 2
    assert "--target cannot be combined with --device" in refused.stderr


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1"])
def test_no_time_is_refused(seconds: str) -> None:
    result = CliRunner().invoke(cli, ["--seconds", seconds])
    assert result.exit_code == 2
    assert "give a number of seconds above 0" in result.stderr


def test_an_old_spelling_is_refused_with_the_new_one() -> None:
    result = CliRunner().invoke(cli, ["--out", "found"])
    assert result.exit_code == 2
    assert "--out is now --output" in result.stderr


def test_a_device_that_is_none_is_refused() -> None:
    result = CliRunner().invoke(cli, ["--device", "h200"])
    assert result.exit_code == 1 and "sim:GPU" in result.output


def test_no_more_graphs_are_begun_after_the_time(tmp_path: Path) -> None:
    options = ["--seeds", "0:4000", "--seconds", "0.1", "--jobs", "1", "--output", str(tmp_path)]
    result = CliRunner().invoke(cli, options)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "summary.json").read_text())["seeds"] == [0, GRAPHS_PER_MODULE]


@pytest.mark.parametrize("content", [None, b"no model"])
def test_a_replay_of_no_model_is_one_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    result = CliRunner().invoke(cli, ["--replay", str(path)])
    assert result.exit_code == 1 and result.output.startswith("error: ") and result.output.count("\n") == 1
