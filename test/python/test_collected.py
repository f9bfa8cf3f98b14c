"""The stored results: their names, which of them stay, and the pages and tables that are made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.collected import RESULTS, cpu_table, load_runs, page, superseded, write_run


def _store(folder: Path, name: str, data: dict[str, object] | None = None) -> None:
    (folder / name).write_text(json.dumps(data or {}))


def test_of_runs_that_differ_in_the_date_the_older_is_superseded(tmp_path: Path) -> None:
    _store(tmp_path, "2026-01-02-gemm-f32-h200.json")
    _store(tmp_path, "2026-01-03-gemm-f32-h200.json")
    _store(tmp_path, "2026-01-01-gemm-f16-h200.json")
    assert [run.path.name for run in superseded(load_runs(tmp_path))] == ["2026-01-02-gemm-f32-h200.json"]


def test_a_file_of_another_name_is_refused(tmp_path: Path) -> None:
    _store(tmp_path, "gemm.json")
    with pytest.raises(ValueError, match=r"gemm\.json is not called DATE-SUITE-MACHINE\.json"):
        load_runs(tmp_path)


def test_the_end_of_a_name_is_the_machine(tmp_path: Path) -> None:
    """A simulated GPU is not taken for the real one, whose name its own ends with."""
    _store(tmp_path, "2026-01-01-gemm-simulated-h200.json")
    _store(tmp_path, "2026-01-01-gemm-f32-h200.json")
    assert {run.machine for run in load_runs(tmp_path)} == {"simulated H200", "NVIDIA H200"}


def test_writing_a_run_keeps_its_data(tmp_path: Path) -> None:
    data = {
        "date": "x",
        "rows": [{"a": 1}, {"a": None}],
        "empty": [],
        "numbers": [1, 2],
        "nested": {"b": [1]},
    }
    write_run(tmp_path / "run.json", data)
    text = (tmp_path / "run.json").read_text()
    assert json.loads(text) == data
    assert '\n    {"a": 1},\n' in text


def test_a_run_on_a_cpu_is_printed_as_a_page() -> None:
    run = next(run for run in load_runs() if run.kind == "cpu")
    text = page(run)
    assert text.startswith(f"# Benchmarks, {run.date}") and run.data["command"] in text


def test_a_run_on_a_gpu_is_no_page_of_a_cpu() -> None:
    run = next(run for run in load_runs() if run.kind == "gpu")
    with pytest.raises(ValueError, match=r"is not a run of benchmarks/run\.py on a CPU"):
        page(run)


def test_the_table_has_a_line_for_each_suite_of_a_run() -> None:
    run = next(run for run in load_runs() if run.what.startswith("stitch-f32-1-thread-zen4"))
    *_, line = cpu_table([run]).splitlines()
    assert line.startswith("| stitch | f32 | 1 | AMD Zen 4 server, 2 cores |")


def test_only_data_is_stored() -> None:
    assert {path.suffix for path in RESULTS.iterdir()} == {".json"}
