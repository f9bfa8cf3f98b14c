"""The fuzzer itself: how it draws, judges, survives, shrinks and reports."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import ModelProto
from tilewright.errors import OutputError, SimulationError, TilewrightError
from tilewright.ir.module import Module
from tilewright.records.report import Report
from tilewright.reference.oracle import float64_reference, ort_reference, random_inputs
from tilewright.worker.process import Worker, WorkerDied, WorkerTooSlow

from fuzz import command
from fuzz.builder import FLOATS, INTEGERS, ModelBuilder
from fuzz.cli import fuzz as cli
from fuzz.drive import drive
from fuzz.graphs import pairs, random_graph
from fuzz.hostile_mlir import hostile_text, samples
from fuzz.hunt import GRAPHS_PER_MODULE, Finding, Judge, Outcome
from fuzz.judge import Expected as Expectation
from fuzz.judge import Verdict, compare, judge, operators
from fuzz.kinds import KINDS
from fuzz.merge import merge, part_of
from fuzz.shrink import shrink
from fuzz.summary import as_text, summarize
from fuzz.symbols import with_known_sizes
from fuzz.tally import add_to_tally
from fuzz.wide import NEW


def test_a_seed_is_one_graph() -> None:
    assert random_graph(7).SerializeToString() == random_graph(7).SerializeToString()
    assert random_graph(7).SerializeToString() != random_graph(8).SerializeToString()


def test_graphs_are_valid_and_hold_every_operator_in_every_type() -> None:
    counts = {f"{op} {dtype}": 0 for op, dtype in pairs()}
    for seed in range(1200):
        model = random_graph(seed)
        if seed < 100:
            onnx.checker.check_model(model, full_check=True)
        for name, count in operators(model).items():
            counts[name] += count
    assert [name for name, count in counts.items() if count < 2] == []


def test_window_graphs_are_valid_and_hold_what_reads_at_edges() -> None:
    counts: Counter[str] = Counter()
    for seed in range(200):
        model = KINDS["windows"].graph(seed)
        if seed < 50:
            onnx.checker.check_model(model, full_check=True)
        counts += operators(model)
    wanted: dict[str, tuple[str, ...]] = dict.fromkeys(
        ("Pad", "Slice", "Concat", "Where"), (*FLOATS, *INTEGERS)
    )
    wanted |= dict.fromkeys(("Conv", "MaxPool", "AveragePool", "ReduceMean"), ("f32", "f16"))
    assert [
        f"{op} {dtype}" for op, types in wanted.items() for dtype in types if not counts[f"{op} {dtype}"]
    ] == []


def test_wide_graphs_are_valid_and_hold_every_operator() -> None:
    counts: Counter[str] = Counter()
    for seed in range(300):
        model = KINDS["wide"].graph(seed)
        if seed < 50:
            onnx.checker.check_model(model, full_check=True)
        counts += Counter(node.op_type for node in model.graph.node)
    assert [op for family in NEW for op in family.ops if counts[op] < 2] == []


def test_references_of_wide_graphs_are_those_of_onnx_runtime() -> None:
    """ONNX Runtime computes in the graph's own types, and lacks some operators in some of them."""
    compared = 0
    for seed in range(60):
        expected = Expectation.of(KINDS["wide"].graph(seed), seed, "wide")
        try:
            outputs = ort_reference(expected.model, expected.inputs)
        except Exception:  # of many kinds, for what it lacks
            continue
        worst, limit = expected.judged(outputs)
        assert worst <= limit, seed
        compared += 1
    assert compared > 20


def test_special_inputs_hold_special_values() -> None:
    m = ModelBuilder("special")
    m.output(m.op("Neg", m.input((400,), "f32")), (400,), "f32")
    m.output(m.op("Neg", m.input((400,), "i64")), (400,), "i64")
    floats, integers = KINDS["special"].inputs(m.build(), 3)
    assert np.isnan(floats).any() and np.isinf(floats).any() and np.signbit(floats[floats == 0]).any()
    assert {np.iinfo(np.int64).min, np.iinfo(np.int64).max} <= set(integers.tolist())


def test_open_dims_are_named_after_their_sizes() -> None:
    opened = [KINDS["dynamic"].graph(seed) for seed in range(20)]
    dims = [
        dim for model in opened for value in model.graph.input for dim in value.type.tensor_type.shape.dim
    ]
    assert any(dim.dim_param for dim in dims)
    for seed, model in enumerate(opened):
        known = with_known_sizes(model).graph.input
        for value, closed in zip(KINDS["wide"].graph(seed).graph.input, known, strict=True):
            assert value.type.tensor_type.shape == closed.type.tensor_type.shape


def test_twins_are_equal_in_float64() -> None:
    for seed in range(40):
        model = KINDS["twins"].graph(seed)
        onnx.checker.check_model(model, full_check=True)
        Expectation.of(model, seed, "twins")  # raises an error if they differ


def test_a_reference_that_contradicts_itself_is_the_judges_failure() -> None:
    m = ModelBuilder("twins")
    x = m.input((3,), "f32")
    for op in ("Neg", "Abs"):
        m.output(m.op(op, x), (3,), "f32")
    verdict = judge({"a": m.build()}, {"a": 1}, target="cpu", kind="twins")["a"]
    assert (verdict.kind, "contradicts itself" in verdict.message) == ("oracle", True)


def test_the_command_offers_every_kind_of_graph() -> None:
    [option] = [option for option in cli.params if option.name == "kind"]
    assert isinstance(option.type, click.Choice) and list(option.type.choices) == list(KINDS)


def test_merged_models_compute_what_they_compute_alone() -> None:
    models = {"a": random_graph(1), "b": random_graph(2)}
    inputs = {name: random_inputs(model, 5) for name, model in models.items()}
    alone = [y for name, model in models.items() for y in float64_reference(model, inputs[name])]
    together = float64_reference(merge(models), [x for name in models for x in inputs[name]])
    for y, expected in zip(together, alone, strict=True):
        np.testing.assert_array_equal(y, expected)
    assert {part_of(node.name or node.output[0]) for node in merge(models).graph.node} == {"a", "b"}


def _report(*, taken: int, left: int) -> Report:
    op = {"op": "linalg.generic", "loc": 'loc("a/v0")', "bytes": 4}
    kernel: dict[str, Any] = {"name": "k", "edges": [], "groups": [], "predicted": []}
    kernel["ops"] = [{**op, "id": index, "root": True} for index in range(taken)]
    rest = {**op, "reason": "", "operations": 1, "dispatch": True}
    return Report.from_json({"kernels": [kernel], "left_to_iree": [rest] * left})


def test_a_verdict_holds_errors_and_coverage() -> None:
    model = random_graph(0)
    expected = {"a": Expectation.of(model, 0)}
    right = expected["a"].outputs
    good = compare(expected, right, _report(taken=9, left=1))["a"]
    assert (good.failed, good.counts, good.taken, good.eligible) == (False, True, 9, 10)
    assert not compare(expected, right, _report(taken=8, left=1))["a"].counts
    assert compare(expected, [y * 1.5 for y in right], _report(taken=9, left=1))["a"].kind == "wrong numbers"
    assert (
        compare(expected, [y * np.nan for y in right], _report(taken=9, left=1))["a"].kind == "wrong numbers"
    )


@pytest.mark.parametrize("part", ["a", ""])
def test_a_part_that_iree_computes_is_not_compared(part: str) -> None:
    model = random_graph(0)
    expected = {"a": Expectation.of(model, 0)}
    invented = [np.zeros_like(y) for y in expected["a"].outputs]
    verdict = compare(expected, invented, _report(taken=9, left=1), incomplete=frozenset({part}))["a"]
    assert (verdict.failed, verdict.has_share, verdict.counts) == (False, True, False)


def test_graphs_are_judged_on_a_simulated_device(monkeypatch: pytest.MonkeyPatch) -> None:
    models, seeds = {"g3": random_graph(3), "g5": random_graph(5)}, {"g3": 3, "g5": 5}
    for verdict in judge(models, seeds, target="sim:h200").values():
        assert (verdict.kind, verdict.message, verdict.counts) == ("passed", "", True)

    def find(*arguments: Any) -> None:
        raise SimulationError("kernel k: race: llvm.load at g3/v1")

    monkeypatch.setattr("fuzz.judge.simulate_program", find)
    assert {v.message for v in judge(models, seeds, target="sim:h200").values()} == {
        "kernel k: race: llvm.load at g3/v1"
    }


def test_where_all_digits_cancel_rounding_is_no_error() -> None:
    """mean(x - mean(x)) is zero, so that only rounding is left; a larger result is an error."""
    m = ModelBuilder("cancels")
    x = m.input((9,), "bf16")
    difference = m.op("Sub", x, m.op("ReduceMean", x, m.ints([0]), keepdims=1))
    m.output(m.op("ReduceMean", difference, m.ints([0]), keepdims=1), (1,), "bf16")
    expected = {"a": Expectation.of(m.build(), 3)}
    assert not compare(expected, [np.full(1, 1e-3)], _report(taken=1, left=0))["a"].failed
    assert compare(expected, [np.full(1, 0.5)], _report(taken=1, left=0))["a"].failed


def test_failures_are_alike_whatever_their_numbers() -> None:
    error = Verdict(kind="error", message="at v3: 'tensor<3x4xf32>' is illegal")
    assert error.same_failure(Verdict(kind="error", message="at v7: 'tensor<9xf16>' is illegal"))
    assert not error.same_failure(Verdict(kind="error", message="something else"))
    assert not error.same_failure(Verdict(kind="crash", message=error.message))


def test_a_failure_shrinks_to_the_operator_that_fails() -> None:
    model = next(m for m in map(random_graph, range(100)) if _has(m, "Tanh") and len(m.graph.node) > 6)
    small = shrink(model, lambda other: _has(other, "Tanh"))
    assert [node.op_type for node in small.graph.node] == ["Tanh"]
    assert all(dim.dim_value == 1 for dim in small.graph.input[0].type.tensor_type.shape.dim)
    onnx.checker.check_model(small, full_check=True)


def test_what_never_fails_again_stays_as_it_is() -> None:
    model = random_graph(3)
    assert shrink(model, lambda other: False) is model


def _has(model: ModelProto, op: str) -> bool:
    return any(node.op_type == op for node in model.graph.node)


def test_a_request_beyond_its_limit_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    with Worker(tmp_path, module="fuzz_victim", limit_seconds=2.0) as worker:
        with pytest.raises(WorkerTooSlow, match="longer than 2 s"):
            worker.ask({"request": "fuzz_victim:hang"})
        with pytest.raises(WorkerDied, match="SIGSEGV"):
            worker.ask({"request": "fuzz_victim:crash"})
        assert worker.ask({"request": "fuzz_victim:live"})[0] == {"ok": True}


def test_deaths_of_a_judge_are_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge(tmp_path, target="cpu")

    def die(self: Worker, header: dict[str, Any], blob: bytes = b"") -> None:
        raise WorkerDied(f"died by {signal.Signals.SIGSEGV.name}", "")

    monkeypatch.setattr(Worker, "ask", die)
    outcome = judge.seeds([1, 2])
    assert [finding.seeds for finding in outcome.findings] == [(1,), (2,)]
    assert {verdict.kind for verdict in outcome.verdicts.values()} == {"crash"}


def test_what_fails_only_in_company_is_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge(tmp_path, target="cpu")

    def ask(self: Worker, header: dict[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes, str]:
        kind = "wrong numbers" if len(header["seeds"]) > 1 else "passed"
        verdict = Verdict(kind=kind, taken=1, eligible=1).to_json()
        seeds = header["seeds"]
        return (
            {"verdicts": dict.fromkeys(seeds, verdict), "operators": {s: {"Add f32": 1} for s in seeds}},
            b"",
            "",
        )

    monkeypatch.setattr(Worker, "ask", ask)
    outcome = judge.seeds([1, 2, 3])
    assert [finding.seeds for finding in outcome.findings] == [(1, 2, 3)]
    assert outcome.operators == {"Add f32": 3}


def test_a_refused_graph_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is refused is halved until the graph that causes it is alone."""
    asked: list[list[int]] = []

    def ask(self: Worker, header: dict[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes, str]:
        seeds = header["seeds"]
        asked.append(seeds)
        verdict = Verdict(kind="refused" if 3 in seeds else "passed", message="no").to_json()
        return {"verdicts": dict.fromkeys(seeds, verdict), "operators": {s: {} for s in seeds}}, b"", ""

    monkeypatch.setattr(Worker, "ask", ask)
    outcome = Judge(tmp_path, target="cpu").seeds([0, 1, 2, 3])
    assert outcome.findings == []
    assert {seed: verdict.kind for seed, verdict in outcome.verdicts.items()} == {
        0: "passed",
        1: "passed",
        2: "passed",
        3: "refused",
    }
    assert asked == [[0, 1, 2, 3], [0, 1], [2, 3], [2], [3]]


def test_a_tally_adds_up_runs(tmp_path: Path) -> None:
    refused = Verdict(kind="refused", message="the op 'x' is not supported")
    outcome = Outcome({1: Verdict(kind="passed", taken=9, eligible=9), 2: refused})
    summary = summarize(outcome, target="cpu", kind="wide", seconds=2.0)
    file = tmp_path / "tally.json"
    for _ in range(2):
        together = add_to_tally(file, summary)
    assert (together["graphs"], together["passed"], together["refused"]) == (4, 2, 2)
    assert together["graphs_by_kind"] == {"wide": 4}
    assert [run["seeds"] for run in json.loads(file.read_text())["runs"]] == [[1, 3], [1, 3]]


def test_a_file_that_is_no_tally_stays(tmp_path: Path) -> None:
    file = tmp_path / "tally.json"
    file.write_text("{}")
    with pytest.raises(OutputError, match="is no tally"):
        add_to_tally(file, {})
    assert file.read_text() == "{}"


def test_the_summary_counts() -> None:
    good, little = Verdict(kind="passed", taken=9, eligible=9), Verdict(kind="passed", taken=1, eligible=3)
    bad = Verdict(kind="hang", message="took longer")
    partial = Verdict(kind="passed", taken=9, eligible=9, is_compared=False)
    outcome = Outcome({1: good, 2: little, 3: bad, 4: partial}, findings=[Finding((3,), bad)])
    summary = summarize(outcome, target="cpu", seconds=1.0)
    assert (summary["graphs"], summary["passed"], summary["passed_and_counted"]) == (4, 3, 1)
    assert summary["seeds"] == [1, 5]
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


def test_a_planted_bug_leaves_a_small_model_and_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr("fuzz.hunt.Worker", partial(_worker, "fuzz_planted"))
    seed = next(
        s for s in range(1000) if _has(random_graph(s), "Tanh") and len(random_graph(s).graph.node) < 5
    )
    said: list[str] = []
    seeds = range(seed, seed + 1)
    command.fuzz(seeds, target="cpu", jobs=1, seconds=None, out=tmp_path, small=True, say=said.append)
    folder = tmp_path / f"crash-{seed}"
    # A dead process must leave nothing behind.
    assert {path.name for path in folder.iterdir()} == {
        "README",
        "graph.onnx",
        "small.onnx",
        "small.mlir",
        "stages",
    }
    assert [node.op_type for node in onnx.load(folder / "small.onnx").graph.node] == ["Tanh"]
    text = (folder / "small.mlir").read_text()
    assert Module.parse(text).to_text() and "math.tanh" in text
    [failure] = json.loads((tmp_path / "summary.json").read_text())["failures"]
    assert failure["reproducer"] in said[-1] and str(folder / "small.onnx") in failure["reproducer"]
    with pytest.raises(TilewrightError, match="crash"):
        command.replay(folder / "small.onnx", seed=seed, target="cpu", say=said.append)


def _worker(
    planted: str, folder: Path, *, module: str, search: Sequence[Path], limit_seconds: float
) -> Worker:
    """Starts a judge's process with the module `planted` instead of its own."""
    return Worker(folder, module=planted, search=search, limit_seconds=limit_seconds)


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


def test_lit_inputs_are_broken_the_same_way_every_time() -> None:
    folder = Path(__file__).resolve().parents[1]
    assert len(samples(folder)) > 150
    assert hostile_text(5, folder) == hostile_text(5, folder)
    assert len({hostile_text(seed, folder)[2] for seed in range(40)}) > 30
