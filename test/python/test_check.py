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
from click.testing import CliRunner
from conftest import make_model, value
from onnx import TensorProto, helper
from tilewright import CompileOptions, ir
from tilewright.cli import main
from tilewright.compare import reproducer
from tilewright.compare.check import check
from tilewright.compare.windows import Windows, names_read, values_of
from tilewright.dialects import arith
from tilewright.errors import ModelError, OutputError, VerificationError
from tilewright.reference.judging import Judge

Array = np.ndarray[Any, Any]

_RNG = np.random.default_rng(0)
_WEIGHTS = {
    "w": _RNG.standard_normal((12, 20)).astype(np.float32),
    "b": _RNG.standard_normal(20).astype(np.float32),
}


def _chain() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
        helper.make_node("Tanh", ["m"], ["t"], name="bend"),
        helper.make_node("Add", ["t", "b"], ["a"], name="shift"),
        helper.make_node("Exp", ["a"], ["e"], name="grow"),
        helper.make_node("Softmax", ["e"], ["y"], name="share"),
    ]
    return make_model(nodes, [value("x", [7, 12])], [value("y", [7, 20])], _WEIGHTS)


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
    checked = check(_chain(), options=CompileOptions(threads=1, cache=None), runs=2)
    assert checked.is_right
    assert checked.runs == 2
    assert checked.kernels >= 1


@pytest.fixture(scope="module")
def found(faulty: CompileOptions) -> Any:
    return check(_chain(), options=faulty)


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
    assert tilewright.compile(_chain(), threads=1, verify=True, cache=False).kernels


def test_verify_refuses_a_wrong_program() -> None:
    with pytest.raises(VerificationError, match=r"output 'y' is off by .*at \[\d+, \d+\].*tilewright check"):
        tilewright.compile(_chain(), threads=1, verify=True, passes={"planned": [_faulty]})


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32> }", {}, "only ONNX"),
        (_chain(), {"target": "cuda:h200"}, "this machine does not run"),
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


# Judging


def _judge(outputs: list[str], nodes: list[onnx.NodeProto], x: Array) -> Judge:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    model = make_model(nodes, [value("x", x.shape, kind)], [value(name, x.shape, kind) for name in outputs])
    return Judge(model, [x])


def test_one_wrong_element_of_many_is_found() -> None:
    x = np.ones(100_000, np.float32)
    judge = _judge(["y"], [helper.make_node("Neg", ["x"], ["y"])], x)
    y = -x
    assert not judge.differences([y])
    y[777] = -1.001
    (difference,) = judge.differences([y])
    assert "at [777]: -1.001 instead of -1" in str(difference)


def test_a_lost_nan_is_found() -> None:
    x = np.array([np.nan, 1], np.float32)
    judge = _judge(["y"], [helper.make_node("Neg", ["x"], ["y"])], x)
    assert judge.differences([np.array([0, -1], np.float32)])
    assert not judge.differences([np.array([np.nan, -1], np.float32)])


def test_cancelling_sums_may_be_off_by_their_rounding() -> None:
    """(x + 1e6) - 1e6 has an error of half an ulp of 1e6, 0.03, in f32 and none in float64."""
    x = np.linspace(0.1, 0.9, 64).astype(np.float32)
    big = helper.make_node("Constant", [], ["c"], value_float=1e6)
    nodes = [big, helper.make_node("Add", ["x", "c"], ["s"]), helper.make_node("Sub", ["s", "c"], ["y"])]
    judge = _judge(["y"], nodes, x)
    assert not judge.differences([(x + np.float32(1e6)) - np.float32(1e6)])
    assert judge.differences([x + 1])


def test_other_shapes_are_different() -> None:
    judge = _judge(["y"], [helper.make_node("Neg", ["x"], ["y"])], np.ones((2, 3), np.float32))
    (difference,) = judge.differences([-np.ones((3, 2), np.float32)])
    assert "its shape is [3, 2] instead of [2, 3]" in str(difference)


# Windows


def test_a_window_reads_values_and_weights() -> None:
    model, x = _chain(), _RNG.standard_normal((7, 12)).astype(np.float32)
    windows = Windows(model, values_of(model, {"x": x}), ["x"])
    window, inputs = windows.window([2, 3])
    assert [v.name for v in window.graph.input] == ["t"]
    assert [t.name for t in window.graph.initializer] == ["b"]
    assert [v.name for v in window.graph.output] == ["e"]
    np.testing.assert_allclose(inputs[0], np.tanh(x @ _WEIGHTS["w"]), rtol=1e-5)
    onnx.checker.check_model(window)


def test_a_window_keeps_shapes_as_constants() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Reshape", ["n", "s"], ["y"]),
    ]
    model = make_model(nodes, [value("x", [2, 3])], [value("y", [2, 3])])
    windows = Windows(model, values_of(model, {"x": np.ones((2, 3), np.float32)}), ["x"])
    window, inputs = windows.window([2])
    assert [v.name for v in window.graph.input] == ["n"]
    assert [t.name for t in window.graph.initializer] == ["s"]
    assert len(inputs) == 1


def test_ops_with_bodies_read_what_their_bodies_read() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["outer", "c"], ["r"])],
        "body",
        [],
        [value("r", [2])],
        [onnx.numpy_helper.from_array(np.ones(2, np.float32), "c")],
    )
    node = helper.make_node("If", ["condition"], ["y"], then_branch=body, else_branch=body)
    assert names_read(node) == ["condition", "outer", "outer"]


def test_ancestors_leave_out_other_branches() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Abs", ["x"], ["b"]),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    model = make_model(nodes, [value("x", [2])], [value("y", [2]), value("b", [2])])
    windows = Windows(model, values_of(model, {"x": np.ones(2, np.float32)}), ["x"])
    assert windows.ancestors(2) == [0, 2]


# The command line


def _invoke(*arguments: str) -> Any:
    return CliRunner().invoke(main.cli, ["check", *arguments])


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "chain.onnx"
    onnx.save(_chain(), path)
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
