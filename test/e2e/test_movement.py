"""Movement alone, and movement around compute: one kernel that reads each element once and writes each once.

The fragment is ShuffleNet's: two tensors are put together, their channels shuffled, and the result split in two again. No op
of it computes anything, so that whatever is moved more than once is moved for nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from compiled import Launches, compiled
from onnx import TensorProto, helper, numpy_helper
from tilewright.oracle import random_inputs
from tilewright.simulated import simulate_program
from tilewright.traffic import compulsory_bytes

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


@pytest.mark.skipif(not hasattr(tilewright, "simulate"), reason="no simulated device")
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
