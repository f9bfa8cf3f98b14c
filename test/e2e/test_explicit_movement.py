"""Tests of data movement alone and around compute: one kernel reads each element once and writes each once.

The fragment is ShuffleNet's: two tensors are concatenated, their channels shuffled, and the result split in two. None
of its ops computes anything, so every second copy of an element would be useless.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from compiled import Launches, compiled
from onnx import TensorProto, helper, numpy_helper
from tilewright.pipelines import pass_text, pipeline
from tilewright.reference.oracle import random_inputs
from tilewright.simulator.programs import simulate_program
from tilewright.simulator.traffic import compulsory_bytes

from benchmarks.workloads import stitch

_PASS_TESTS = Path(__file__).resolve().parents[1] / "passes" / "program" / "movement"

_CASES = pytest.mark.parametrize(
    ("shape", "activate"), [((1, 58, 28, 28), False), ((2, 3, 5, 7), True)], ids=["moves", "activates"]
)


def shuffle_channels(shape: tuple[int, ...], *, activate: bool) -> onnx.ModelProto:
    """Concatenate, shuffle and split; `activate` has a ReLU between the two movements."""
    batch, channels, *image = shape
    groups = numpy_helper.from_array(np.array([batch, 2, channels, *image], np.int64), "groups")
    joined = numpy_helper.from_array(np.array([batch, 2 * channels, *image], np.int64), "joined")
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        *([helper.make_node("Relu", ["c"], ["d"])] if activate else []),
        helper.make_node("Reshape", ["d" if activate else "c", "groups"], ["e"]),
        helper.make_node("Transpose", ["e"], ["f"], perm=[0, 2, 1, *range(3, len(shape) + 1)]),
        helper.make_node("Reshape", ["f", "joined"], ["g"]),
        helper.make_node("Split", ["g"], ["p", "q"], axis=1, num_outputs=2),
    ]
    graph = helper.make_graph(
        nodes,
        "shuffle",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "ab"],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "pq"],
        [groups, joined],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def shuffled(a: np.ndarray, b: np.ndarray, *, activate: bool) -> list[np.ndarray]:
    batch, channels, *image = a.shape
    together = np.concatenate([a, b], axis=1)
    if activate:
        together = np.maximum(together, 0)
    groups = together.reshape(batch, 2, channels, *image).swapaxes(1, 2)
    return np.split(groups.reshape(together.shape), 2, axis=1)


@_CASES
def test_shuffled_channels_move_once_on_cpu(shape: tuple[int, ...], *, activate: bool) -> None:
    model = shuffle_channels(shape, activate=activate)
    inputs = random_inputs(model, 0)
    expected = shuffled(*inputs, activate=activate)
    with compiled(model) as result:
        outputs = result.program(*inputs)
        assert all(np.array_equal(got, want) for got, want in zip(outputs, expected, strict=True))
        assert result.launches() == Launches(ours=1, others=0, copies=0, fills=0)
        moved = sum(kernel.loaded + kernel.stored for kernel in result.traffic())
        assert moved == compulsory_bytes(model, inputs, outputs)


@_CASES
def test_shuffled_channels_move_once_on_a_gpu(
    shape: tuple[int, ...], *, activate: bool, tmp_path: Path
) -> None:
    model = shuffle_channels(shape, activate=activate)
    inputs = random_inputs(model, 0)
    expected = shuffled(*inputs, activate=activate)
    program = tilewright.compile(model, target="cuda:h200", dump_dir=tmp_path, strict=True)
    run = simulate_program(program, tmp_path, inputs)
    assert len(run.kernels) == 1
    assert run.outputs is not None, "IREE moves a part"
    assert all(np.array_equal(got, want) for got, want in zip(run.outputs, expected, strict=True))
    (report,) = run.kernels
    must = sum(array.nbytes for array in inputs)
    assert (report.global_reads.bytes, report.global_writes.bytes) == (must, must)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


@dataclass(frozen=True)
class _Rewritten:
    """A program of test/passes/rewrite-movement*.mlir with one op for each phase, and the expected results."""

    shapes: tuple[tuple[int, ...], ...]
    compute: Callable[..., Sequence[np.ndarray]]
    moves_once: bool = True


_REWRITTEN = {
    "swaps_then_merges": _Rewritten(((37, 53),), lambda x: [np.exp(x)]),
    "shuffles_channels": _Rewritten(
        ((5, 784), (5, 784)),
        lambda a, b: np.split(np.stack([a, b], axis=1).reshape(10, 784), 2),
    ),
    "sigmoid_and_add_alike": _Rewritten(((64, 256), (64, 256)), lambda x, z: [_sigmoid(x) + z]),
    "sigmoid_and_add_apart": _Rewritten(((64, 256), (64, 256)), lambda x, z: [_sigmoid(x) + z]),
    "add_and_sigmoid": _Rewritten(((64, 256), (64, 256)), lambda x, z: [np.tanh(x + z) * z]),
    "rows_stay_in_their_block": _Rewritten(
        ((64, 256),), lambda x: [x / x.sum(axis=1, keepdims=True)], moves_once=False
    ),
    "independent_phases": _Rewritten(((96,),), lambda x: [np.exp(x), np.tanh(x)], moves_once=False),
    "sums_cross_blocks": _Rewritten(((64, 64),), lambda x: [x / x.sum(axis=1)], moves_once=False),
}


def _text_of(name: str) -> str:
    """Returns the program in a module of kernels, with the function that launches it."""
    for file in sorted(_PASS_TESTS.glob("rewrite-movement*.mlir")):
        for case in file.read_text().split("// -----\n"):
            if f"\ntile.program @{name} " in case:
                program = case.index("\ntile.program"), case.index("\nfunc.func")
                kernels = f"\nmodule @tilewright_kernels {{\n{case[slice(*program)]}}}\n"
                caller = case[program[1] :].replace("tile.launch @", "tile.launch @tilewright_kernels::@")
                return case[: program[0]] + kernels + caller
    raise KeyError(name)


@pytest.mark.parametrize("name", _REWRITTEN)
def test_rewritten_programs_compute_the_same(name: str, tmp_path: Path) -> None:
    case = _REWRITTEN[name]
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(0.5, 2, shape).astype(np.float32) for shape in case.shapes]
    expected = case.compute(*(x.astype(np.float64) for x in inputs))
    module = tilewright.Module.parse(_text_of(name))
    module.run_unrecorded(pipeline(pass_text("tilewright-cuda-kernels", {"target": "cuda:h200"})))
    path = tmp_path / "launches.json"
    module.run_unrecorded(pipeline(pass_text("tile-print-launches", {"output": str(path)})))
    flow = json.loads(path.read_text())
    (launch,) = flow["launches"]
    outputs = [np.zeros(flow["tensors"][number]["shape"], np.float32) for number in launch["outputs"]]
    report = tilewright.simulate(
        flow["kernels"],
        launch["kernel"],
        (launch["workgroups"],),
        [*inputs, *outputs],
        empty=range(len(inputs), len(inputs) + len(outputs)),
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    report.check()
    # Hand-overs that remain precede the results.
    for got, want in zip(outputs[-len(expected) :], expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    if case.moves_once:
        assert report.global_reads.bytes == sum(x.nbytes for x in inputs)
        assert report.global_writes.bytes == sum(y.nbytes for y in outputs)


def test_planned_rows_have_nothing_left_to_rewrite(tmp_path: Path) -> None:
    """The planner's programs are merged already: only passes that change something leave a dump."""
    tilewright.compile(stitch.softmax((96, 768)), target="cuda:h200", dump_dir=tmp_path, strict=True)
    passes = [path.name for path in (tmp_path / "passes").rglob("*.mlir")]
    assert any("tile-lower-to-program" in name for name in passes)
    assert not any("tile-rewrite-movement" in name for name in passes)
