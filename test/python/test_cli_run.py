"""`tilewright run`: inputs, outputs, and the comparison with peers."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from cli_cases import invoke, tilewright_process
from conftest import HIDDEN, ROWS
from onnx import TensorProto, helper
from tilewright.compare import comparison

Array = np.ndarray[Any, Any]


def test_run_makes_inputs_and_prints_outputs(model_path: Path) -> None:
    result = invoke("run", model_path, "--threads", "1")
    assert result.exit_code == 0, result.output
    assert "probabilities: float32[7x37], min" in result.stdout
    assert "scores: float32[7x37], min" in result.stdout


def test_run_takes_a_compiled_program_and_arrays(
    program: tilewright.Program, tmp_path: Path, x: Array, expected: list[Array]
) -> None:
    module = program.save(tmp_path / "a.vmfb")
    np.save(tmp_path / "x.npy", x)
    result = invoke("run", module, "--input", tmp_path / "x.npy", "-o", tmp_path / "y.npz")
    assert result.exit_code == 0, result.output
    saved = np.load(tmp_path / "y.npz")
    np.testing.assert_allclose(saved["probabilities"], expected[0], rtol=1e-5, atol=1e-6)


def test_run_takes_an_npz_by_name(program: tilewright.Program, tmp_path: Path, x: Array) -> None:
    module = program.save(tmp_path / "a.vmfb")
    np.savez(tmp_path / "in.npz", unused=np.zeros(3), x=x)
    result = invoke("run", module, "--input", tmp_path / "in.npz")
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def _compared_once() -> Iterator[None]:
    """Compares each model once, however many tests show the result."""
    compare, kept = comparison.compare, dict[str, comparison.Comparison]()

    def compare_once(model: str, *arguments: Any, **named: Any) -> comparison.Comparison:
        if model not in kept:
            kept[model] = compare(model, *arguments, **named)
        return kept[model]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "compare", compare_once)
        yield


@pytest.mark.usefixtures("_compared_once")
def test_run_compares_with_its_peers(model_path: Path) -> None:
    result = invoke("run", model_path, "--compare", "--seconds", "0.1", "--threads", "1", "--json")
    assert result.exit_code == 0, result.output
    rows = {row["name"]: row for row in json.loads(result.stdout)["rows"]}
    assert rows["Tilewright"]["kernels"] >= 1
    assert rows["IREE alone"]["kernels"] >= 2
    for row in rows.values():
        assert row["seconds"] > 0
        assert max(row["errors"]) < 1e-6
    low_to_high = rows["IREE alone"]["speedup"]
    assert low_to_high[1] <= low_to_high[0] <= low_to_high[2]


@pytest.mark.full
def test_the_comparison_leaves_out_a_peer_that_cannot_return_its_results(tmp_path: Path) -> None:
    """ONNX Runtime computes bf16, but cannot return it as a numpy array."""
    pytest.importorskip("onnxruntime")
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (8, 8))
    y = helper.make_tensor_value_info("y", TensorProto.BFLOAT16, (8, 8))
    model = helper.make_model(
        helper.make_graph([node], "cast", [x], [y]),
        opset_imports=[helper.make_opsetid("", 19)],
        ir_version=10,
    )
    path = tmp_path / "cast.onnx"
    path.write_bytes(model.SerializeToString())
    result = invoke("run", path, "--compare", "--seconds", "0.1", "--threads", "1", "--json")
    assert result.exit_code == 0, result.output
    assert [row["name"] for row in json.loads(result.stdout)["rows"]] == ["Tilewright", "IREE alone"]


@pytest.mark.usefixtures("_compared_once")
def test_the_comparison_is_a_table(model_path: Path) -> None:
    result = invoke("run", model_path, "--compare", "--seconds", "0.1", "--threads", "1")
    assert result.exit_code == 0, result.output
    for text in ("Tilewright", "IREE alone", "1 thread,", "kernels", "float64"):
        assert text in result.stdout


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1"])
def test_no_time_is_refused(seconds: str) -> None:
    result = invoke("run", "none.onnx", "--compare", "--seconds", seconds)
    assert result.exit_code == 2
    assert "give a number of seconds above 0" in result.stderr


def test_arrays_go_through_pipes(
    program: tilewright.Program, tmp_path: Path, x: Array, expected: list[Array]
) -> None:
    module, given = program.save(tmp_path / "a.vmfb"), io.BytesIO()
    np.save(given, x)
    done = tilewright_process("run", module, "-i", "-", "-o", "-", input=given.getvalue())
    assert done.returncode == 0, done.stderr
    with np.load(io.BytesIO(done.stdout)) as outputs:
        np.testing.assert_allclose(outputs[outputs.files[0]], expected[0], rtol=1e-5)


@pytest.mark.parametrize("shape", [f"({2**60},)", "(" * 9000])
def test_an_input_file_whose_header_lies_is_refused(
    program: tilewright.Program, tmp_path: Path, shape: str
) -> None:
    """numpy raises many kinds of errors for these, one of which is MemoryError."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    result = invoke("run", program.save(tmp_path / "a.vmfb"), "--input", path)
    assert result.exit_code == 1
    assert "not a .npy or .npz file, or a damaged one" in result.stderr


def test_a_compiled_program_is_not_simulated(program: tilewright.Program, tmp_path: Path) -> None:
    module = program.save(tmp_path / "a.vmfb")
    there = invoke("run", module, "--device", "sim:h200")
    assert there.stderr.endswith("no kernels to simulate; give the ONNX or MLIR file it was compiled from\n")
    missing = invoke("run", tmp_path / "b.vmfb", "--device", "sim:h200")
    assert missing.stderr == f"error: {tmp_path / 'b.vmfb'}: no such file; check the path of the model\n"


@pytest.mark.parametrize("option", [["--target", "cuda:a100"], ["--compare"], ["--seconds", "3"], ["--json"]])
def test_what_a_simulated_gpu_cannot_heed_is_refused(tmp_path: Path, option: list[str]) -> None:
    refused = invoke("run", tmp_path / "a.onnx", "--device", "sim:h200", *option)
    assert refused.exit_code == 2
    assert f"{option[0]} cannot be combined with --device" in refused.stderr


def test_outputs_do_not_replace_a_pipe(program: tilewright.Program, tmp_path: Path) -> None:
    """They do not replace a device either: /dev/full would become an ordinary file."""
    module = program.save(tmp_path / "a.vmfb")
    os.mkfifo(tmp_path / "pipe")
    result = invoke("run", module, "-o", tmp_path / "pipe")
    assert result.stderr.endswith("is a device or a pipe; give the name of a file\n")
    assert (tmp_path / "pipe").is_fifo()


def test_named_dims_are_sized(tmp_path: Path) -> None:
    text = "func.func @f(%x: tensor<?x5xf32>) -> tensor<?x5xf32> { return %x : tensor<?x5xf32> }"
    (tmp_path / "f.mlir").write_text(text)
    result = invoke("run", tmp_path / "f.mlir", "--threads", "1")
    assert result.exit_code == 0, result.output
    assert "output0: float32[1x5]" in result.stdout


def test_run_accepts_the_shape_it_asks_for(model_path: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((ROWS, HIDDEN + 1), np.float32))
    result = invoke("run", model_path, "--input", tmp_path / "x.npy", "--threads", "1")
    assert result.exit_code == 1
    assert "input 'x'" in result.stderr
