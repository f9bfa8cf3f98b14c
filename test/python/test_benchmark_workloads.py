"""Workloads of the benchmarks: their suites, models, flops, and the machine that is held for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import onnx
import pytest
from benchmark_cases import ROOT
from tilewright.reference.oracle import (
    float64_reference,
    model_tolerance,
    ort_reference,
    random_inputs,
    relative_error,
)

from benchmarks import suites
from benchmarks.alone import alone
from benchmarks.flops import contraction_flops
from benchmarks.repetition import NotRepeatableError, repeat
from benchmarks.workloads import SwinOptions, VitOptions, contractions, stitch, swin, vit
from benchmarks.workloads.contractions import AttentionOptions, ChainOptions
from benchmarks.workloads.recurrent import RecurrentOptions, recurrent

pytestmark = pytest.mark.usefixtures("fake_peers")


# The suites keep what earlier results were measured on.
def test_suite_has_both_types_and_the_random_stitches() -> None:
    chosen = suites.select(["stitch"], dtypes=["f32", "bf16"], pattern="*")
    assert sum(w.name.startswith("random-stitch-") and w.dtype == "bf16" for w in chosen) == 50
    assert {w.dtype for w in chosen if w.name == "softmax-6144x512"} == {"f32", "bf16"}


_SMALL_VIT = VitOptions(layers=1, hidden=32, heads=2, image=32, patch=8, classes=5)

_SMALL_SWIN = SwinOptions(depths=(2, 2), heads=(2, 4), hidden=16, image=56, classes=5)


# A bad path is the user's mistake and needs no traceback.
@pytest.mark.parametrize("name", ["softmax-77x77x5", "no-such"])
def test_workload_that_cannot_be_written_is_one_line(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.workloads", name, "-o", str(tmp_path / "no" / "such.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert done.returncode == 1


# The large models are built by the same code, which is too slow to run whole.
@pytest.mark.parametrize("build", [partial(vit, _SMALL_VIT), partial(swin, _SMALL_SWIN)])
def test_small_vision_model_is_valid_and_matches_float64(build: Callable[[], onnx.ModelProto]) -> None:
    model = build()
    onnx.checker.check_model(model, full_check=True)
    inputs = random_inputs(model, 0)
    for actual, wanted in zip(ort_reference(model, inputs), float64_reference(model, inputs), strict=True):
        assert relative_error(actual, wanted) <= model_tolerance(model)


_ATTENTION = AttentionOptions(heads=4, key_value_heads=2, sequence=5, head_size=3, is_causal=True)

_CHAIN = ChainOptions(batch=2, m=5, n=7, k=3, l=4)


# Rates in results are computed from these counts.
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


def test_sequences_are_at_least_half_as_long_as_their_steps() -> None:
    options = RecurrentOptions(layers=1, steps=9, hidden=8, batch=64, has_lengths=True)
    _, lengths = random_inputs(recurrent(options), 0)
    assert {4, 9} <= set(lengths) <= set(range(4, 10))


# PyTorch must be measured with its own fused attention, and not with its parts.
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


# Nothing else runs while times are taken, and the lock goes with the block.
def test_machine_is_held_for_the_block_alone(tmp_path: Path) -> None:
    held = tmp_path / "held"
    with alone(["sh", "-c", f"touch {held}; echo; cat; rm {held}"]):
        assert held.exists()
    assert not held.exists()
    with pytest.raises(ChildProcessError, match="before the machine was free"), alone(["true"]):
        pass
