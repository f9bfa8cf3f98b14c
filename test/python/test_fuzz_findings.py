"""The fuzzer's findings: a failure shrinks to a small model with the command that shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto
from tilewright.errors import TilewrightError
from tilewright.ir.module import Module
from tilewright.worker.process import Worker

from fuzz import command
from fuzz.graphs import random_graph
from fuzz.shrink import shrink


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


@pytest.mark.full
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
