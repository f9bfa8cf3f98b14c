"""The real peers of the benchmarks compute what they are asked, at a small size."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from benchmark_cases import SETTINGS, SOFTMAX
from tilewright.reference.oracle import (
    Array,
    float64_reference,
    model_tolerance,
    random_inputs,
    relative_error,
)

from benchmarks import arrays
from benchmarks.client import Client, PeerError
from benchmarks.peers import PEERS, Facts
from benchmarks.repetition import repeat
from benchmarks.workloads import stitch
from benchmarks.workloads.recurrent import RecurrentOptions, recurrent

pytestmark = pytest.mark.usefixtures("fake_peers")


def _prepared(peer: str, model: onnx.ModelProto, count: int, folder: Path) -> tuple[list[Array], Facts]:
    """Returns the outputs of a workload and the facts of `count` repetitions."""
    inputs = random_inputs(model, 0)
    arrays.save(folder / "inputs", inputs)
    facts = Facts()
    with Client(PEERS[peer], SETTINGS, log=folder / "log") as client:
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


# Times of a peer count only if its results are right.
@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("peer", PEERS)
def test_peer_is_right(peer: str, tmp_path: Path) -> None:
    model = stitch.bias_residual_layer_norm((5, 37))
    outputs, _ = _prepared(peer, model, 1, tmp_path)
    expected = float64_reference(model, random_inputs(model, 0))
    for actual, wanted in zip(outputs, expected, strict=True):
        assert relative_error(actual, wanted) <= model_tolerance(model)


# Peers without bf16 in numpy's types still take and give bf16.
@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize(
    "peer", [peer for peer in PEERS if peer != "onnxruntime"]
)  # it has no bfloat16 softmax
def test_peer_is_right_in_bfloat16(peer: str, tmp_path: Path) -> None:
    model = SOFTMAX.in_type("bf16").build()
    [actual], _ = _prepared(peer, model, 1, tmp_path)
    [wanted] = float64_reference(model, random_inputs(model, 0))
    assert relative_error(actual, wanted) <= model_tolerance(model)


# The barrier between repetitions must stop a compiler from fusing them.
@pytest.mark.parametrize("peer", ["tilewright", "iree"])
def test_compilers_keep_repetitions_apart(peer: str, tmp_path: Path) -> None:
    _, facts = _prepared(peer, stitch.gelu_erf_chain((64, 96)), 4, tmp_path)
    assert facts.kernels == 4


def test_loops_that_iree_repeats_have_no_slope(tmp_path: Path) -> None:
    """A program of one LSTM runs without IREE, and one of several with barriers between them in its runtime."""
    options = RecurrentOptions(layers=1, steps=3, hidden=8)
    with pytest.raises(PeerError, match="runs repetitions, and another one the workload") as error:
        _prepared("tilewright", recurrent(options), 4, tmp_path)
    assert error.value.status == "unsupported"
