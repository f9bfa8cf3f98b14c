"""Rows, summaries and reports of the benchmarks say what was measured."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import onnx
import pytest
from benchmark_cases import QUICK, ROOT, measured, sample_result, samples

from benchmarks.measure import Record
from benchmarks.peers import LIMITS, OURS, Facts, Settings, load_peer
from benchmarks.plot import plot
from benchmarks.report import Report, to_markdown
from benchmarks.rows import BEST_PEER, Row, make_rows, summarize

pytestmark = pytest.mark.usefixtures("fake_peers")


# The slope over repetitions is the kernels' time, without the cost of a call.
def test_kernels_are_timed_apart_from_the_fixed_cost() -> None:
    ours, fast, _, _ = make_rows([sample_result()])
    assert ours.median_s == pytest.approx(14e-6)
    assert ours.kernel_s == pytest.approx(10e-6)
    assert (ours.ratio_of, ours.best_peer, fast.best_peer) == ("kernel", "fast", "fast")
    assert ours.ratio_to_best_peer == pytest.approx(2.0)
    assert fast.ratio_to_best_peer == pytest.approx(1.0)


# In long calls the fixed cost does not matter, so that they are compared as they are.
def test_long_calls_are_compared_whole() -> None:
    result = sample_result()
    result.is_short = False
    ours, *_ = make_rows([result])
    assert (ours.ratio_of, ours.best_peer) == ("call", "fast")
    assert ours.ratio_to_best_peer == pytest.approx(14 / 35)


# The best peer of each workload is the bar, and losses against it are counted.
def test_summary_has_the_strongest_peer_first() -> None:
    best, *peers = summarize([sample_result()], [OURS, "slow", "fast", "broken"])
    assert (best.system, best.ours_loses) == (BEST_PEER, 1)
    assert best.ours_over_it == pytest.approx(2.0)
    assert [mean.system for mean in peers] == ["fast", "slow", "broken"]
    assert (peers[-1].workloads, peers[-1].failed, peers[-1].ours_over_it) == (0, 1, None)


# The copy loop is a bound of the machine, and nobody loses against it.
def test_limit_is_no_peer() -> None:
    result = sample_result()
    result.records["copy"] = Record(samples=samples(fixed=0.0, kernel=1e-6), facts=Facts())
    assert {row.best_peer for row in make_rows([result])} == {"fast"}
    means = {mean.system: mean for mean in summarize([result], list(result.records))}
    assert means["copy"].ours_over_it == pytest.approx(10.0)
    assert means[BEST_PEER].ours_over_it == pytest.approx(2.0)


# The bound is measured in the same turns, and does copy.
def test_copy_loop_takes_turns_and_copies(tmp_path: Path) -> None:
    [result] = measured(LIMITS, tmp_path / "runner")
    assert result.records["copy"].status == "ok"
    assert len(result.records["copy"].samples) >= QUICK.rounds
    array = np.arange(4096 + 24, dtype=np.float32)
    program = load_peer(LIMITS["copy"], Settings(threads=3)).prepare(
        tmp_path, [array[:8], array], repetitions=1, cache=tmp_path
    )
    program.call()
    np.testing.assert_array_equal(program.outputs()[0].view(np.float32), array[:4112])


def _report() -> Report:
    return Report(
        date="2026-01-01",
        command="benchmarks/run.py stitch",
        machine={"processor": "x", "cores": 2, "memory_gib": 1.0, "system": "Linux", "python": "3.11"},
        limits={"fma_gflops": 1.0, "copy_gb_per_s": 2.0, "copy_non_temporal_gb_per_s": 3.0},
        versions={"onnx": "1"},
        settings={"threads": 1},
        rows=make_rows([sample_result()]),
        summary=summarize([sample_result()], list(sample_result().records)),
    )


# Tables are made from these fields.
def test_report_is_json_with_every_promised_field() -> None:
    report = json.loads(json.dumps(_report().to_json(), allow_nan=False))
    assert set(report) == {
        *("date", "command", "machine", "limits", "versions", "settings", "rows", "summary"),
    }
    assert all(set(row) == {field.name for field in fields(Row)} for row in report["rows"])


# A summary that hides what went badly would mislead.
def test_markdown_shows_losses_and_failures() -> None:
    text = to_markdown(_report())
    assert "| softmax-7x13 f32 | 2.00 [2.00, 2.00] | kernel | fast | 10.0 | 5.0 |" in text
    assert "| broken | crashed | killed by SIGSEGV \\| at once | softmax-7x13 f32 |" in text


# The plot names its workloads.
def test_plot_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    plot(_report(), tmp_path / "plot.svg")
    assert "softmax-7x13" in (tmp_path / "plot.svg").read_text()


# No field of the report is without a meaning in the guide.
def test_document_explains_every_field() -> None:
    _, _, text = (ROOT / "docs" / "guide" / "benchmarks.md").read_text().partition("## Fields of a row")
    explained = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert {field.name for field in fields(Row)} == explained


def _blocks_of_document() -> list[str]:
    text = (ROOT / "docs" / "guide" / "benchmarks.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


# The guide's example of a workload can be copied.
def test_workload_of_the_document_is_valid() -> None:
    names: dict[str, Callable[[tuple[int, int]], onnx.ModelProto]] = {}
    exec(_blocks_of_document()[0], names)
    onnx.checker.check_model(names["hard_swish"]((3, 5)), full_check=True)


# The guide's example of a peer can be copied.
def test_peer_of_the_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peer_of_document.py").write_text(_blocks_of_document()[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    [row] = make_rows(measured({"reference": "peer_of_document:OnnxReference"}, tmp_path / "run"))
    assert (row.status, row.reason) == ("ok", "")
