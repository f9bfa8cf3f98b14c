"""Whole programs on the simulated device: `tilewright run --device=sim:…`, and GPU targets of the benchmark runner."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from tilewright.reference.oracle import float64_reference, random_inputs, relative_error, tolerance
from tilewright.runtime.tensors import LaunchTensors
from tilewright.simulator.programs import describe_launches, simulate_program

from benchmarks.workloads.builder import GraphBuilder

_SHAPE = [64, 96]


def _two_kernels() -> onnx.ModelProto:
    """Returns a softmax of rows and one of columns, scaled by weights, which leave nothing to IREE."""
    g = GraphBuilder("two_kernels")
    rows = g.op("Softmax", g.input("x", tuple(_SHAPE)), axis=1)
    g.output(g.op("Mul", g.op("Softmax", rows, axis=0), g.vector(_SHAPE[1], mean=1.0)), _SHAPE)
    return g.build()


def _running_sums(g: GraphBuilder, x: str) -> str:
    """Sums long rows of floats in order, which no kernel of ours does."""
    return g.op("CumSum", x, g.ints([1]))


def _sums_and_softmaxes() -> onnx.ModelProto:
    g = GraphBuilder("sums")
    rows = g.op("Softmax", _running_sums(g, g.input("x", (24, 157))), axis=1)
    g.output(g.op("Softmax", rows, axis=0), (24, 157))
    return g.build()


def test_kernels_hand_their_tensors_on(tmp_path: Path) -> None:
    model = _two_kernels()
    inputs = random_inputs(model, 3)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    run = simulate_program(program, tmp_path, inputs)
    assert len(run.kernels) == len(program.kernels)
    assert run.invented == ()
    assert run.outputs is not None
    (expected,) = float64_reference(model, inputs)
    assert relative_error(run.outputs[0], expected) <= tolerance(np.float32)


def test_strict_numerics_and_integer_divisions_are_simulated(tmp_path: Path) -> None:
    g = GraphBuilder("divisions")
    x, y = (g.input(name, (5, 64), TensorProto.INT32) for name in "xy")
    g.output(g.op("Div", x, y), (5, 64), TensorProto.INT32)
    model = g.build()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, numerics="strict")
    rng = np.random.default_rng(7)
    inputs = [rng.integers(-99, 99, (5, 64)).astype(np.int32), rng.integers(1, 9, (5, 64)).astype(np.int32)]
    run = simulate_program(program, tmp_path, inputs)
    assert run.outputs is not None
    np.testing.assert_array_equal(run.outputs[0], np.trunc(inputs[0] / inputs[1]).astype(np.int32))


def test_results_have_the_shapes_of_the_program(tmp_path: Path) -> None:
    """The reshape after the last kernel belongs to no kernel."""
    g = GraphBuilder("reshaped")
    g.output(g.op("Unsqueeze", g.op("Softmax", g.input("x", (6, 10))), g.ints([0, 2])), (1, 6, 1, 10))
    model = g.build()
    inputs = random_inputs(model, 1)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    run = simulate_program(program, tmp_path, inputs)
    assert run.outputs is not None
    assert run.outputs[0].shape == (1, 6, 1, 10)
    assert relative_error(run.outputs[0], float64_reference(model, inputs)[0]) <= tolerance(np.float32)


def test_an_input_may_be_a_result(tmp_path: Path) -> None:
    """An input is returned unchanged, without any kernel."""
    g = GraphBuilder("handed_on")
    x, y = g.input("x", (6, 10)), g.input("y", (3, 4))
    g.output(g.op("Transpose", y, perm=[0, 1]), (3, 4))
    g.output(g.op("Softmax", x), (6, 10))
    model = g.build()
    inputs = random_inputs(model, 2)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    run = simulate_program(program, tmp_path, inputs)
    assert run.outputs is not None
    for output, expected in zip(run.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= tolerance(np.float32)


def test_iree_computes_what_is_not_ours(tmp_path: Path) -> None:
    """IREE's ops lie between kernels, after them and before them."""
    g = GraphBuilder("sums")
    x = g.input("x", (24, 157))
    inner = g.op("Softmax", _running_sums(g, g.op("Softmax", x, axis=1)), axis=0)
    g.output(inner, (24, 157))
    g.output(_running_sums(g, inner), (24, 157))
    model = g.build()
    inputs = random_inputs(model, 4)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    run = simulate_program(program, tmp_path, inputs)
    assert len(run.kernels) == len(program.kernels) > 0
    assert run.invented == ()
    assert run.outputs is not None
    for output, expected in zip(run.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= tolerance(np.float32)


def test_without_iree_its_part_is_said_and_random(tmp_path: Path) -> None:
    """Without IREE, as on a machine that has only the kernels, its results are random, and a note says so."""
    model = _sums_and_softmaxes()
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    flow = describe_launches(tmp_path)
    tensors = LaunchTensors(flow["tensors"], random_inputs(model, 4), program.parameter_paths)
    made = {number for launch in flow["launches"] for number in launch["outputs"]}
    given = {number for launch in flow["launches"] for number in launch["inputs"]} - made
    shapes = {number: tensors.get(number).shape for number in given}
    (read,) = (number for number in given if not tensors.are_real([number]))
    assert shapes[read] == (24, 157)
    assert len(tensors.invented) == 1


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_the_command_line_shows_counts_and_outputs(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_two_kernels(), path)
    done = _command(
        "-m", "tilewright", "run", str(path), "--device=sim:h200", "-o", str(tmp_path / "out.npz")
    )
    assert done.returncode == 0, done.stderr
    assert "bytes in sectors" in done.stdout
    assert "on cuda:h200" in done.stdout
    assert "float32[64x96]" in done.stdout
    assert (tmp_path / "out.npz").exists()


@pytest.mark.parametrize(("device", "complaint"), [("h200", "sim:GPU"), ("sim:nothing", "nothing")])
def test_a_device_that_is_not_there(tmp_path: Path, device: str, complaint: str) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_two_kernels(), path)
    done = _command("-m", "tilewright", "run", str(path), f"--device={device}")
    assert done.returncode in (1, 2)
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


def test_the_benchmark_runner_simulates_gpus(tmp_path: Path) -> None:
    runner = Path(__file__).parents[2] / "benchmarks" / "run.py"
    out, page = tmp_path / "rows.json", tmp_path / "rows.md"
    options = ["--workloads", "softmax-77x77x5", "--target", "cuda:a100", "--dtypes", "f32"]
    done = _command(str(runner), "stitch", *options, "--json", str(out), "--markdown", str(page))
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(out.read_text())["rows"]
    assert (row["workload"], row["status"], row["median_s"]) == ("softmax-77x77x5", "ok", None)
    assert row["kernels"] == 1
    assert row["predicted_s"] > 0
    assert row["bytes_moved"] >= row["compulsory_bytes"] > 0
    assert "softmax-77x77x5" in page.read_text()
