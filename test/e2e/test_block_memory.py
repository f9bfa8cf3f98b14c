"""Tests that plans count all shared memory of a block: code generation refuses a kernel that exceeds the target's, and
then a graph would not compile at the first attempt."""

from __future__ import annotations

import dataclasses

import onnx
import pytest
import tilewright
from tilewright import Target

from benchmarks.workloads import WORKLOADS
from benchmarks.workloads.attention import windows


def _compiles(model: onnx.ModelProto, target: str, block_bytes: int) -> None:
    smaller = dataclasses.replace(Target.lookup(target), block_bytes=block_bytes)
    program = tilewright.compile(model, target=smaller)
    assert program.kernels
    assert not any("planned again" in note for note in program.metadata.notes)


@pytest.mark.parametrize("block_bytes", [50_000, 53_248])
def test_walked_heads(block_bytes: int) -> None:
    """A block has several heads, whose accumulators grow over the blocks of keys."""
    _compiles(windows(64, hidden=96, heads=3), "cuda:rtx3090", block_bytes)


def test_heads_of_a_projection() -> None:
    """The next contraction reads the accumulators of the heads."""
    _compiles(windows(16, hidden=192, heads=6), "cuda:rtx3090", 101_376)


def test_gated_products() -> None:
    """Two contractions share a fusion group, which keeps the accumulators of one for the other."""
    _compiles(WORKLOADS["llama-block"].build(), "cuda:rtx3090", 65_536)


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize("kibibytes", [16, 36, 100])
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_layers_in_little_memory(kind: str, kibibytes: int) -> None:
    _compiles(WORKLOADS["bert-small"].in_type(kind).build(), "cuda:h200", kibibytes * 1024)
