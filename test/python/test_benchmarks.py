"""The benchmark runner survives failing peers, repeats workloads faithfully, and reports what it documents."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from tilewright.reference.oracle import (
    Array,
    float64_reference,
    model_tolerance,
    ort_reference,
    random_inputs,
    relative_error,
)

from benchmarks import arrays, run, suites
from benchmarks.alone import alone
from benchmarks.client import Client, PeerError
from benchmarks.expected import expected_repetitions, largest_error
from benchmarks.flops import contraction_flops
from benchmarks.measure import Plan, Record, Result, measure
from benchmarks.peers import LIMITS, OURS, PEERS, Facts, Settings, load_peer
from benchmarks.plot import plot
from benchmarks.repetition import COUNTS, NotRepeatableError, is_barrier, repeat
from benchmarks.report import Report, to_markdown
from benchmarks.rows import BEST_PEER, Row, make_rows, summarize
from benchmarks.workloads import SwinOptions, VitOptions, Workload, contractions, stitch, swin, vit
from benchmarks.workloads.builder import GraphBuilder
from benchmarks.workloads.contractions import AttentionOptions, ChainOptions

ROOT = Path(__file__).resolve().parents[2]
_SETTINGS = Settings(threads=1)
_QUICK = Plan(rounds=2, seconds=0.02, least_turns=1, prepare_limit=60.0, call_limit=60.0)
_SOFTMAX = Workload(
    name="softmax-7x13", build=partial(stitch.softmax, (7, 13)), description="softmax", suite="stitch"
)


@pytest.fixture(autouse=True)
def _fake_peers_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def _measured(peers: dict[str, str], folder: Path, *, plan: Plan = _QUICK) -> list[Result]:
    folder.mkdir(exist_ok=True)
    steps = measure([_SOFTMAX], peers, _SETTINGS, plan, folder=folder, say=lambda step: None)
    return [results for results, _ in steps][-1]


# Failing peers


@pytest.mark.parametrize(
    ("peer", "status", "reason"),
    [
        ("fake_peers:Crashing", "crashed", "SIGSEGV"),
        ("fake_peers:Refusing", "unsupported", "knows no such operator"),
        ("fake_peers:Wrong", "wrong", "relative error"),
        ("fake_peers:NotANumber", "wrong", "output 0 has NaN"),
        ("fake_peers:Misshapen", "wrong", "output 0 has the shape (6, 13), not (7, 13)"),
        ("fake_peers:Silent", "wrong", "0 outputs, not 1"),
        ("no_such_package:Peer", "not installed", "no_such_package"),
    ],
)
def test_failure_is_in_the_row_and_others_go_on(peer: str, status: str, reason: str, tmp_path: Path) -> None:
    [result] = _measured({"failing": peer, "honest": "fake_peers:Honest"}, tmp_path)
    failing, honest = make_rows([result])
    assert (failing.status, failing.median_s) == (status, None)
    assert reason in failing.reason
    assert honest.status == "ok"
    assert honest.turns >= _QUICK.rounds * _QUICK.least_turns
    assert honest.median_s is not None


@pytest.mark.parametrize("call", [1, 2, 4, 6])
def test_crash_in_any_call_is_in_the_row(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbered calls prepare, check, choose the number of calls per burst, and decide if kernels are timed
    apart."""
    monkeypatch.setenv("CRASH_AT", str(call))
    plan = replace(_QUICK, rounds=1)
    peers = {"crashing": "fake_peers:CrashingLater", "honest": "fake_peers:Honest"}
    [result] = _measured(peers, tmp_path, plan=plan)
    crashing, honest = make_rows([result])
    assert (crashing.status, honest.status) == ("crashed", "ok")
    assert "SIGKILL" in crashing.reason


def test_hanging_peer_is_ended_at_its_limit(tmp_path: Path) -> None:
    plan = Plan(rounds=1, seconds=0.02, least_turns=1, prepare_limit=3.0)
    [result] = _measured(
        {"hanging": "fake_peers:Hanging", "honest": "fake_peers:Honest"}, tmp_path, plan=plan
    )
    hanging, honest = make_rows([result])
    assert (hanging.status, honest.status) == ("timed out", "ok")
    assert "within 3 s" in hanging.reason


@pytest.fixture
def _all_calls_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes all calls count as short, even on a busy machine."""
    monkeypatch.setattr("benchmarks.measure.SHORT_SECONDS", math.inf)


@pytest.mark.usefixtures("_all_calls_are_short")
def test_peer_without_repetitions_is_timed_by_calls(tmp_path: Path) -> None:
    [result] = _measured({"single": "fake_peers:NotRepeating", "honest": "fake_peers:Honest"}, tmp_path)
    single, honest = make_rows([result])
    assert (single.status, single.kernel_s, single.reason) == ("ok", None, "too long")
    assert single.median_s is not None
    assert honest.kernel_s is not None


@pytest.mark.usefixtures("_all_calls_are_short")
def test_outputs_of_repetitions_are_checked(tmp_path: Path) -> None:
    [result] = _measured({"dropping": "fake_peers:Dropping", "honest": "fake_peers:Honest"}, tmp_path)
    dropping, honest = make_rows([result])
    assert (dropping.status, honest.status) == ("wrong", "ok")
    assert dropping.reason.startswith("4 repetitions: relative error")


@pytest.mark.usefixtures("_all_calls_are_short")
def test_fewer_kernels_than_repetitions_have_no_slope(tmp_path: Path) -> None:
    [result] = _measured({"merging": "fake_peers:Merging", "honest": "fake_peers:Honest"}, tmp_path)
    merging, honest = make_rows([result])
    assert (merging.status, merging.kernel_s, merging.reason) == ("ok", None, "fuses repetitions")
    assert honest.kernel_s is not None


def test_client_starts_again_after_a_crash(tmp_path: Path) -> None:
    with Client("fake_peers:Crashing", _SETTINGS, log=tmp_path / "log") as client:
        for _ in range(2):
            arrays.save(tmp_path, [])
            with pytest.raises(PeerError, match="SIGSEGV"):
                client.ask("prepare", limit=10.0, model="", inputs=str(tmp_path), repetitions=1, cache="")


# Repetitions


def _evaluated(model: onnx.ModelProto, inputs: list[Array]) -> list[Array]:
    names = [value.name for value in model.graph.input]
    return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))]


@pytest.mark.parametrize(
    "build",
    [
        partial(stitch.softmax, (5, 7)),
        partial(stitch.masked_softmax, (3, 5)),
        partial(stitch.silu_product, (3, 5)),
        partial(stitch.rotary, (2, 3, 8)),
    ],
)
def test_repetition_is_composition(build: Callable[[], onnx.ModelProto]) -> None:
    model = build()
    inputs = random_inputs(model, 0)
    [last] = _evaluated(repeat(model, 3), inputs)
    value = inputs[0]
    for _ in range(3):
        [value] = _evaluated(model, [value, *inputs[1:]])
    np.testing.assert_allclose(last, value, rtol=1e-6, atol=1e-7)


def test_outputs_that_are_not_read_are_outputs_of_every_repetition() -> None:
    """bias-residual-layer-norm feeds both of its outputs back; batch statistics feeds back only the first of three."""
    model = stitch.batch_statistics((5, 3, 2))
    inputs = random_inputs(model, 0)
    outputs = _evaluated(repeat(model, 2), inputs)
    first = _evaluated(model, inputs)
    second = _evaluated(model, [first[0]])
    expected = [*first[1:], *second]
    assert len(outputs) == len(expected)
    for actual, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


def test_link_depends_on_the_last_repetition_and_changes_nothing() -> None:
    model = stitch.transpose_cast((3, 5, 4))
    inputs = random_inputs(model, 0)
    repeated = repeat(model, 3)
    [expected] = _evaluated(model, inputs)
    for output in _evaluated(repeated, inputs):
        np.testing.assert_array_equal(output, expected)
    producers = {name: node for node in repeated.graph.node for name in node.output}
    waiting, reached = [repeated.graph.output[-1].name], set()
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += [i for i in producers[name].input if i not in reached] if name in producers else []
    assert {output.name for output in repeated.graph.output} <= reached


@pytest.mark.parametrize(
    "build",
    [
        partial(stitch.softmax, (5, 7)),
        partial(stitch.bias_residual_layer_norm, (3, 5)),
        partial(stitch.batch_statistics, (5, 3, 2)),
        partial(stitch.transpose_cast, (3, 5, 4)),
        partial(stitch.rotary, (2, 3, 8)),
    ],
)
def test_repetitions_are_expected_as_the_repeated_model_computes_them(
    build: Callable[[], onnx.ModelProto],
) -> None:
    """The cases feed back both outputs, the first or none, and one settles long before the last repetition."""
    model = build()
    inputs = random_inputs(model, 0)
    expected = expected_repetitions(model, inputs, COUNTS[1:])
    assert list(expected) == list(COUNTS[1:])
    for count, outputs in expected.items():
        wanted = float64_reference(repeat(model, count), inputs)
        assert len(outputs) == len(wanted)
        for one, values in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(one.values, values, rtol=1e-9, atol=1e-12)


def test_repetitions_are_held_to_the_magnitude_of_the_first() -> None:
    """The mean of a normalised value is zero except for rounding."""
    model = stitch.batch_statistics((129, 7))
    inputs = random_inputs(model, 0)
    outputs = ort_reference(repeat(model, 4), inputs)
    expected = expected_repetitions(model, inputs, [4])[4]
    assert largest_error(outputs, expected) < model_tolerance(model)
    assert max(relative_error(y, one.values) for y, one in zip(outputs, expected, strict=True)) > 0.1


def test_numbers_beyond_the_type_are_not_expected() -> None:
    g = GraphBuilder("thousandfold")
    x = g.input("x", (3, 5))
    g.output(g.op("Mul", x, g.scalar(1000.0)), (3, 5))
    model = g.build()
    assert list(expected_repetitions(model, random_inputs(model, 0), COUNTS[1:])) == [4]


def test_workload_that_cannot_be_repeated_says_so() -> None:
    with pytest.raises(NotRepeatableError, match="no output fits an input"):
        repeat(stitch.argmax((3, 5)), 4)


@pytest.mark.parametrize("count", COUNTS)
def test_repeated_model_is_valid(count: int) -> None:
    model = repeat(stitch.gelu_erf_chain((3, 5)), count)
    onnx.checker.check_model(model, full_check=True)
    assert sum(map(is_barrier, model.graph.node)) == count - 1


# Real peers, at a small size


def _prepared(peer: str, model: onnx.ModelProto, count: int, folder: Path) -> tuple[list[Array], Facts]:
    """Returns the outputs of a workload and the facts of `count` repetitions."""
    inputs = random_inputs(model, 0)
    arrays.save(folder / "inputs", inputs)
    facts = Facts()
    with Client(PEERS[peer], _SETTINGS, log=folder / "log") as client:
        (folder / "cache").mkdir()
        for repetitions in sorted({1, count}):
            path = folder / f"{repetitions}.onnx"
            onnx.save(repeat(model, repetitions), path)
            arguments = {"model": str(path), "inputs": str(folder / "inputs"), "cache": str(folder / "cache")}
            try:
                answer = client.ask("prepare", limit=300.0, repetitions=repetitions, **arguments)
            except PeerError as error:
                if error.status == "not installed":
                    pytest.skip(f"{peer} is not installed: {error.reason}")
                raise
            facts = Facts(**answer["facts"])
        client.ask("outputs", limit=60.0, repetitions=1, folder=str(folder / "outputs"))
    return arrays.load(folder / "outputs"), facts


@pytest.mark.parametrize("peer", PEERS)
def test_peer_is_right(peer: str, tmp_path: Path) -> None:
    model = stitch.bias_residual_layer_norm((5, 37))
    outputs, _ = _prepared(peer, model, 1, tmp_path)
    expected = float64_reference(model, random_inputs(model, 0))
    for actual, wanted in zip(outputs, expected, strict=True):
        assert relative_error(actual, wanted) <= model_tolerance(model)


@pytest.mark.parametrize(
    "peer", [peer for peer in PEERS if peer != "onnxruntime"]
)  # it has no bfloat16 softmax
def test_peer_is_right_in_bfloat16(peer: str, tmp_path: Path) -> None:
    model = _SOFTMAX.in_type("bf16").build()
    [actual], _ = _prepared(peer, model, 1, tmp_path)
    [wanted] = float64_reference(model, random_inputs(model, 0))
    assert relative_error(actual, wanted) <= model_tolerance(model)


@pytest.mark.parametrize("peer", ["tilewright", "iree"])
def test_compilers_keep_repetitions_apart(peer: str, tmp_path: Path) -> None:
    _, facts = _prepared(peer, stitch.gelu_erf_chain((64, 96)), 4, tmp_path)
    assert facts.kernels == 4


# Rows and reports


def _samples(*, fixed: float, kernel: float) -> list[dict[int, float]]:
    return [{count: fixed + count * kernel for count in COUNTS} for _ in range(5)]


def _result() -> Result:
    records = {
        OURS: Record(samples=_samples(fixed=4e-6, kernel=10e-6), facts=Facts(kernels=1), max_rel_error=1e-7),
        "fast": Record(samples=_samples(fixed=30e-6, kernel=5e-6), facts=Facts()),
        "slow": Record(samples=_samples(fixed=2e-6, kernel=40e-6), facts=Facts()),
        "broken": Record(status="crashed", reason="killed by SIGSEGV | at once"),
    }
    return Result(_SOFTMAX, compulsory_bytes=728, contraction_flops=2000, records=records, is_short=True)


def test_kernels_are_timed_apart_from_the_fixed_cost() -> None:
    ours, fast, _, _ = make_rows([_result()])
    assert ours.median_s == pytest.approx(14e-6)
    assert ours.kernel_s == pytest.approx(10e-6)
    assert (ours.ratio_of, ours.best_peer, fast.best_peer) == ("kernel", "fast", "fast")
    assert ours.ratio_to_best_peer == pytest.approx(2.0)
    assert fast.ratio_to_best_peer == pytest.approx(1.0)


def test_long_calls_are_compared_whole() -> None:
    result = _result()
    result.is_short = False
    ours, *_ = make_rows([result])
    assert (ours.ratio_of, ours.best_peer) == ("call", "fast")
    assert ours.ratio_to_best_peer == pytest.approx(14 / 35)


def test_summary_has_the_strongest_peer_first() -> None:
    best, *peers = summarize([_result()], [OURS, "slow", "fast", "broken"])
    assert (best.system, best.ours_loses) == (BEST_PEER, 1)
    assert best.ours_over_it == pytest.approx(2.0)
    assert [mean.system for mean in peers] == ["fast", "slow", "broken"]
    assert (peers[-1].workloads, peers[-1].failed, peers[-1].ours_over_it) == (0, 1, None)


def test_limit_is_no_peer() -> None:
    result = _result()
    result.records["copy"] = Record(samples=_samples(fixed=0.0, kernel=1e-6), facts=Facts())
    assert {row.best_peer for row in make_rows([result])} == {"fast"}
    means = {mean.system: mean for mean in summarize([result], list(result.records))}
    assert means["copy"].ours_over_it == pytest.approx(10.0)
    assert means[BEST_PEER].ours_over_it == pytest.approx(2.0)


def test_copy_loop_takes_turns_and_copies(tmp_path: Path) -> None:
    [result] = _measured(LIMITS, tmp_path / "runner")
    assert result.records["copy"].status == "ok"
    assert len(result.records["copy"].samples) >= _QUICK.rounds
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
        rows=make_rows([_result()]),
        summary=summarize([_result()], list(_result().records)),
    )


def test_report_is_json_with_every_promised_field() -> None:
    report = json.loads(json.dumps(_report().to_json(), allow_nan=False))
    assert set(report) == {
        *("date", "command", "machine", "limits", "versions", "settings", "rows", "summary"),
    }
    assert all(set(row) == {field.name for field in fields(Row)} for row in report["rows"])


def test_markdown_shows_losses_and_failures() -> None:
    text = to_markdown(_report())
    assert "| softmax-7x13 f32 | 2.00 [2.00, 2.00] | kernel | fast | 10.0 | 5.0 |" in text
    assert "| broken | crashed | killed by SIGSEGV \\| at once | softmax-7x13 f32 |" in text


def test_plot_is_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    plot(_report(), tmp_path / "plot.svg")
    assert "softmax-7x13" in (tmp_path / "plot.svg").read_text()


def test_document_explains_every_field() -> None:
    _, _, text = (ROOT / "docs" / "guide" / "benchmarks.md").read_text().partition("## Fields of a row")
    explained = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert {field.name for field in fields(Row)} == explained


def _blocks_of_document() -> list[str]:
    text = (ROOT / "docs" / "guide" / "benchmarks.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_workload_of_the_document_is_valid() -> None:
    names: dict[str, Callable[[tuple[int, int]], onnx.ModelProto]] = {}
    exec(_blocks_of_document()[0], names)
    onnx.checker.check_model(names["hard_swish"]((3, 5)), full_check=True)


def test_peer_of_the_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peer_of_document.py").write_text(_blocks_of_document()[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    [row] = make_rows(_measured({"reference": "peer_of_document:OnnxReference"}, tmp_path / "run"))
    assert (row.status, row.reason) == ("ok", "")


# The command line, and workloads that are too large to be tested whole


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
    yield [_result()], {"onnx": "1"}
    raise KeyboardInterrupt


def test_interrupted_run_keeps_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert _run_with(monkeypatch, _interrupted(), "--report", str(tmp_path / "out")) == 130
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert {row["workload"] for row in rows} == {"softmax-7x13"}
    assert "softmax-7x13" in (tmp_path / "out.md").read_text()
    assert "softmax-7x13" in (tmp_path / "out.svg").read_text()


def test_interrupted_run_without_files_prints_what_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run_with(monkeypatch, _interrupted()) == 130
    printed = capsys.readouterr()
    assert "| softmax-7x13 f32 |" in printed.out
    assert printed.err == "interrupted\n"


def test_suite_has_both_types_and_the_random_stitches() -> None:
    chosen = suites.select(["stitch"], dtypes=["f32", "bf16"], pattern="*")
    assert sum(w.name.startswith("random-stitch-") and w.dtype == "bf16" for w in chosen) == 50
    assert {w.dtype for w in chosen if w.name == "softmax-6144x512"} == {"f32", "bf16"}


_SMALL_VIT = VitOptions(layers=1, hidden=32, heads=2, image=32, patch=8, classes=5)
_SMALL_SWIN = SwinOptions(depths=(2, 2), heads=(2, 4), hidden=16, image=56, classes=5)


@pytest.mark.parametrize("name", ["softmax-77x77x5", "no-such"])
def test_workload_that_cannot_be_written_is_one_line(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.workloads", name, "-o", str(tmp_path / "no" / "such.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert done.returncode == 1


@pytest.mark.parametrize("build", [partial(vit, _SMALL_VIT), partial(swin, _SMALL_SWIN)])
def test_small_vision_model_is_valid_and_matches_float64(build: Callable[[], onnx.ModelProto]) -> None:
    model = build()
    onnx.checker.check_model(model, full_check=True)
    inputs = random_inputs(model, 0)
    for actual, wanted in zip(ort_reference(model, inputs), float64_reference(model, inputs), strict=True):
        assert relative_error(actual, wanted) <= model_tolerance(model)


# Contractions


_ATTENTION = AttentionOptions(heads=4, key_value_heads=2, sequence=5, head_size=3, is_causal=True)
_CHAIN = ChainOptions(batch=2, m=5, n=7, k=3, l=4)


@pytest.mark.parametrize(
    ("build", "flops"),
    [
        (partial(contractions.dense, 3, 5, 7), 2 * 3 * 5 * 7),
        (partial(contractions.softmax_chain, _CHAIN), 2 * 2 * 5 * 4 * (3 + 7)),
        (partial(contractions.attention, _ATTENTION), 2 * 4 * 5 * 5 * (3 + 3)),
        (partial(stitch.softmax, (3, 5)), 0),
    ],
)
def test_flops_are_those_of_contractions(build: Callable[[], onnx.ModelProto], flops: int) -> None:
    assert contraction_flops(build()) == flops


def test_small_input_beside_weights_links_repetitions() -> None:
    """An addition to it costs little beside the product; without the link, a token's matmul would have no slope."""
    model = contractions.dense(1, 64, 48)
    repeat(model, 4)
    with pytest.raises(NotRepeatableError):
        repeat(contractions.dense(64, 64, 48), 4)


@pytest.mark.parametrize("is_causal", [False, True])
def test_torch_calls_attention_by_its_name(*, is_causal: bool) -> None:
    torch = pytest.importorskip("torch")
    from benchmarks.peers.onnx_to_torch import to_module, to_tensor

    model = contractions.attention(replace(_ATTENTION, is_causal=is_causal))
    inputs = random_inputs(model, 0)
    module = to_module(model, barrier=lambda x: x)
    [call] = [n for n in module.graph.nodes if n.target is torch.nn.functional.scaled_dot_product_attention]
    assert call.kwargs["is_causal"] == is_causal
    [expected] = float64_reference(model, inputs)
    [actual] = module(*(to_tensor(array) for array in inputs))
    assert relative_error(actual.numpy(), expected) <= model_tolerance(model)


def test_machine_is_held_for_the_block_alone(tmp_path: Path) -> None:
    held = tmp_path / "held"
    with alone(["sh", "-c", f"touch {held}; echo; cat; rm {held}"]):
        assert held.exists()
    assert not held.exists()
    with pytest.raises(ChildProcessError, match="before the machine was free"), alone(["true"]):
        pass
