"""`explain --edges` says for every edge which other scope is best, and what would make it the better choice."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from tilewright.api.edges import EdgeChoice, choices_text
from tilewright.cli.main import cli


@pytest.fixture(scope="module")
def rows_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from benchmarks.workloads import stitch

    path = tmp_path_factory.mktemp("rows") / "rows.onnx"
    onnx.save(stitch.softmax((64, 100)), path)
    return path


def _explain(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, ["explain", *map(str, arguments), "--edges"])
    assert result.exit_code == 0, result.output
    return result.output


def test_edges_of_a_model_are_listed(rows_path: Path) -> None:
    text = _explain(rows_path, "--target", "x86-64-avx2")
    assert "edges between ops in kernels of Tilewright: " in text.splitlines()[0]
    assert "would flip: " in text and "launch: " in text
    report = json.loads(_explain(rows_path, "--target", "x86-64-avx2", "--json"))
    assert sum(report["scopes"].values()) == len(report["edges"]) > 0
    assert all(edge["flip"] for edge in report["edges"])


# A compiled program does not have the ops that other scopes would be planned for.
def test_compiled_programs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "program.vmfb").touch()
    result = CliRunner().invoke(cli, ["explain", str(tmp_path / "program.vmfb"), "--edges"])
    assert result.exit_code != 0 and "scopes" in result.output


def test_all_policies_have_no_edges_in_common(rows_path: Path) -> None:
    result = CliRunner().invoke(cli, ["explain", str(rows_path), "--edges", "--policy", "all"])
    assert result.exit_code == 2 and "one policy" in result.output


def _edge(
    scope: str, seconds: float, other_seconds: float | None, *, flip: str = "more memory"
) -> EdgeChoice:
    return EdgeChoice(
        producer=0,
        consumer=1,
        from_op="linalg.reduce",
        to_op="linalg.sub",
        from_location="sum",
        to_location="difference",
        scope=scope,
        seconds=seconds,
        other="launch",
        other_seconds=other_seconds,
        why_impossible="" if other_seconds else "it does not fit",
        flip=flip,
    )


# The summary has the choices that are close; those without an alternative are for the details.
def test_closest_choices_come_first() -> None:
    edges = [_edge("block", 1e-6, None), _edge("block", 1e-6, 3e-6), _edge("grid", 1e-6, 2e-6)]
    summary = choices_text(edges)
    assert summary.index("+100.0%") < summary.index("+200.0%")
    assert "it does not fit" not in summary and "1 more kinds" in summary
    assert "it does not fit" in choices_text(edges, verbose=True)
