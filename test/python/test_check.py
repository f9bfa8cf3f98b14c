"""`tilewright check` and `compile(verify=True)`: differences from float64 are found, traced to an op and reproduced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from check_cases import chain
from click.testing import CliRunner
from conftest import make_model, value
from onnx import TensorProto, helper
from tilewright import CompileOptions, ir
from tilewright.cli import main
from tilewright.compare import reproducer
from tilewright.compare.check import check
from tilewright.dialects import arith
from tilewright.errors import ModelError, OutputError, VerificationError


@ir.pattern("math.exp")
def _exp_is_its_operand(op: Any) -> bool:
    op.replace(arith.addf(op.operand, op.operand))
    return True


def _faulty(op: Any) -> None:
    ir.apply_patterns(op, [_exp_is_its_operand])


@pytest.fixture(scope="module")
def faulty() -> CompileOptions:
    """Options under which every exp of our kernels is computed wrongly. A softmax has one, too."""
    return CompileOptions(threads=1, cache=None, passes={"planned": [_faulty]})


def test_a_right_model_is_right() -> None:
    checked = check(chain(), options=CompileOptions(threads=1, cache=None), runs=2)
    assert checked.is_right
    assert checked.runs == 2
    assert checked.kernels >= 1


@pytest.fixture(scope="module")
def found(faulty: CompileOptions) -> Any:
    return check(chain(), options=faulty)


def test_a_fault_is_traced_to_the_first_op_and_its_kernel(found: Any) -> None:
    assert not found.is_right
    assert found.seed == 0
    culprit = found.culprit
    assert (culprit.found.node, culprit.found.op) == ("grow", "Exp")
    assert culprit.found.ops == ("grow",)
    assert culprit.kernel
    assert culprit.is_wrong_unfused
    assert culprit.is_wrong_in_iree is False


def test_the_reproducer_shows_the_fault_and_says_when_it_is_gone(
    found: Any, faulty: CompileOptions, tmp_path: Path
) -> None:
    folder = reproducer.write_reproducer(found, tmp_path / "wrong", options=faulty, target="cpu")
    model = onnx.load(folder / "model.onnx")
    assert [node.op_type for node in model.graph.node] == ["Exp"]
    inputs, expected = np.load(folder / "inputs.npz")["0"], np.load(folder / "expected.npz")["0"]
    np.testing.assert_allclose(expected, np.exp(inputs.astype(np.float64)), rtol=1e-12)
    assert json.loads((folder / "report.json").read_text())["culprit"]["node"] == "grow"
    # The script has none of the caller's passes, so the fault is gone in it.
    right = subprocess.run([sys.executable, folder / "run.py"], capture_output=True, text=True)
    assert right.returncode == 0, right.stderr
    np.savez(folder / "expected.npz", **{"0": expected + 1})
    assert subprocess.run([sys.executable, folder / "run.py"], capture_output=True).returncode == 1


def test_a_folder_that_exists_is_kept(found: Any, faulty: CompileOptions, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        reproducer.write_reproducer(found, tmp_path, options=faulty, target="cpu")


@ir.pattern("arith.subf")
def _difference_is_a_sum(op: Any) -> bool:
    op.replace(arith.addf(op.lhs, op.rhs))
    return True


@pytest.mark.full
def test_a_fault_of_two_ops_together_keeps_both() -> None:
    """The faulty pass changes subtractions in kernels that also take a square root, so it needs both ops."""

    def pair(op: Any) -> None:
        if list(op.walk("math.sqrt")):
            ir.apply_patterns(op, [_difference_is_a_sum])

    nodes = [
        helper.make_node("Abs", ["x"], ["p"], name="first"),
        helper.make_node("Sqrt", ["p"], ["r"], name="root"),
        helper.make_node("Neg", ["r"], ["n"], name="turn"),
        helper.make_node("Sub", ["n", "x"], ["y"], name="difference"),
    ]
    model = make_model(nodes, [value("x", [5, 33])], [value("y", [5, 33])])
    checked = check(model, options=CompileOptions(threads=1, cache=None, passes={"planned": [pair]}), runs=1)
    assert checked.culprit is not None
    assert checked.culprit.found.node == "difference"
    assert set(checked.culprit.found.ops) == {"root", "turn", "difference"}


def test_verify_passes_a_right_program() -> None:
    assert tilewright.compile(chain(), threads=1, verify=True, cache=False).kernels


def test_verify_refuses_a_wrong_program() -> None:
    with pytest.raises(VerificationError, match=r"output 'y' is off by .*at \[\d+, \d+\].*tilewright check"):
        tilewright.compile(chain(), threads=1, verify=True, passes={"planned": [_faulty]})


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32> }", {}, "only ONNX"),
        (chain(), {"target": "cuda:h200"}, "this machine does not run"),
    ],
)
def test_verify_says_what_it_cannot_verify(model: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(VerificationError, match=said):
        tilewright.compile(model, verify=True, **options)


def test_random_results_are_not_compared() -> None:
    node = helper.make_node("RandomNormalLike", ["x"], ["y"], name="noise")
    with pytest.raises(VerificationError, match="RandomNormalLike 'noise' draws random numbers"):
        check(make_model([node], [value("x", [3])], [value("y", [3])]))


def test_other_models_have_no_reference() -> None:
    with pytest.raises(ModelError, match="only ONNX models"):
        check("func.func @f() {\n return }")


def _invoke(*arguments: str) -> Any:
    return CliRunner().invoke(main.cli, ["check", *arguments])


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "chain.onnx"
    onnx.save(chain(), path)
    return path


def test_the_command_says_right(model_file: Path) -> None:
    result = _invoke(str(model_file), "--runs", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("right: 1 outputs on 1 set of inputs")


def test_the_command_takes_inputs(model_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((7, 12), np.float32))
    result = _invoke(str(model_file), "-i", str(tmp_path / "x.npy"), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["right"] is True
    assert _invoke(str(model_file), "-i", str(tmp_path / "x.npy"), "--seed", "1").exit_code == 2


def test_the_command_writes_a_reproducer_and_exits_with_3(
    model_file: Path, found: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tilewright.compare.check.check", lambda *arguments, **options: found)
    monkeypatch.chdir(tmp_path)
    result = _invoke(str(model_file))
    assert result.exit_code == 3
    assert "WRONG: output 'y' is off by" in result.stdout
    assert "the first wrong op is Exp 'grow'" in result.stdout
    assert (tmp_path / "chain-wrong" / "run.py").is_file()


def test_a_compiled_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.vmfb").write_bytes(b"x")
    result = _invoke(str(tmp_path / "model.vmfb"))
    assert result.exit_code == 1
    assert "a compiled program has no reference" in result.output


def test_types_that_numpy_lacks_are_stored(tmp_path: Path) -> None:
    assert TensorProto.BFLOAT16  # the arrays of such tensors have a type of ml_dtypes
    import ml_dtypes

    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    reproducer._write_arrays(tmp_path / "a.npz", [array])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npz")["0"].view(ml_dtypes.bfloat16), array)
