"""Bad input raises a one-line error of our own classes that says what is wrong, where, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import HIDDEN, ROWS, make_model, value
from onnx import TensorProto, helper
from tilewright.iree import versions

Array = np.ndarray[Any, Any]


def _message(error: pytest.ExceptionInfo[tilewright.TilewrightError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


# The model


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(tilewright.ModelError, match="no such file") as error:
        tilewright.compile(tmp_path / "nowhere.onnx")
    assert "nowhere.onnx" in _message(error)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(tilewright.ModelError, match="cannot be read"):
        tilewright.compile(tmp_path)


def test_an_empty_file_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    with pytest.raises(tilewright.ModelError, match="empty"):
        tilewright.compile(path)


@pytest.mark.parametrize("kept", [0.9, 0.5, 0.01])
def test_a_truncated_model_is_refused(model_path: Path, tmp_path: Path, kept: float) -> None:
    data = model_path.read_bytes()
    path = tmp_path / "cut.onnx"
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(tilewright.ModelError) as error:
        tilewright.compile(path)
    assert "cut.onnx" in _message(error)


def test_random_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "noise.onnx"
    path.write_bytes(np.random.default_rng(0).bytes(4096))
    with pytest.raises(tilewright.ModelError, match="not an ONNX model"):
        tilewright.compile(path)


def test_a_graph_that_breaks_onnx_rules_is_refused() -> None:
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "nothing"], ["b"])], "g", [value("a", [2])], [value("b", [2])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    with pytest.raises(tilewright.ModelError, match="nothing") as error:
        tilewright.compile(model)
    _message(error)


def test_an_operator_that_iree_does_not_know_is_named_with_its_place() -> None:
    node = helper.make_node("Magic", ["a"], ["b"], name="the_magic_node", domain="example.com")
    graph = helper.make_graph([node], "g", [value("a", [2])], [value("b", [2])])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("example.com", 1)]
    with pytest.raises(tilewright.TilewrightError) as error:
        tilewright.compile(helper.make_model(graph, opset_imports=opsets, ir_version=9))
    assert "Magic" in str(error.value) or "the_magic_node" in str(error.value)
    _message(error)


def test_weights_that_contradict_their_shape_are_refused(model: onnx.ModelProto) -> None:
    broken = onnx.ModelProto()
    broken.CopyFrom(model)
    broken.graph.initializer[0].raw_data = b"\0\0\0\0"
    with pytest.raises(tilewright.ModelError, match="initializer 'w'"):
        tilewright.compile(broken)


def test_text_that_is_no_mlir_is_refused_with_the_position() -> None:
    with pytest.raises(tilewright.IreeError, match="undeclared") as error:
        tilewright.compile("func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n return %b : tensor<2xf32> }")
    assert error.value.location == "model:2:9"
    _message(error)


@pytest.mark.parametrize("callee", ["f", "g"])
def test_a_function_that_calls_itself_is_refused(callee: str) -> None:
    """IREE would recurse forever."""
    source = f"""
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = func.call @{callee}(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}}"""
    with pytest.raises(tilewright.ModelError, match=r"a function calls itself: .*f -> .*scf.while"):
        tilewright.compile(source)


_KILLS_IREE = """
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "unknown.op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def test_an_input_that_kills_iree_leaves_us_alive() -> None:
    with pytest.raises(tilewright.IreeError, match="died by SIG") as error:
        tilewright.compile(_KILLS_IREE)
    _message(error)


def test_an_input_that_kills_iree_leaves_no_files(tmp_path: Path) -> None:
    # The process is a new one, because programs of earlier tests may be compiling in the background of this one.
    program = f"""
import contextlib, tilewright
with contextlib.suppress(tilewright.IreeError):
    tilewright.compile({_KILLS_IREE!r})
    raise SystemExit("it compiled")
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == []


def test_deep_nesting_leaves_us_alive() -> None:
    with pytest.raises(tilewright.IreeError) as error:
        tilewright.compile("module {\n" * 20000 + "}" * 20000)
    _message(error)


def test_a_model_of_another_type_is_refused() -> None:
    with pytest.raises(tilewright.ModelError, match="type int"):
        tilewright.compile(5)  # type: ignore[arg-type]


def test_a_type_at_the_boundary_that_numpy_lacks_is_refused() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2])
    node = helper.make_node("SequenceAt", ["s", "i"], ["b"])
    model = make_model([node], [sequence, value("i", [], TensorProto.INT64)], [value("b", [2])])
    with pytest.raises(tilewright.ModelError) as error:
        tilewright.compile(model)
    _message(error)


# Options


def test_an_unknown_target_is_refused_with_the_known_ones(model_path: Path) -> None:
    with pytest.raises(tilewright.TargetError, match="x86-64-avx512") as error:
        tilewright.compile(model_path, target="pdp11")
    assert "pdp11" in _message(error)


def test_a_missing_target_file_is_refused(model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(tilewright.TargetError, match=r"mine\.json"):
        tilewright.compile(model_path, target=tmp_path / "mine.json")


def test_a_program_for_another_processor_compiles_but_does_not_run(
    model_path: Path, tmp_path: Path, x: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = frozenset({"avx", "fma", "bmi1", "bmi2", "f16c"})
    monkeypatch.setattr("tilewright.runtime.processor._processor_flags", lambda: older)
    program = tilewright.compile(model_path, target="x86-64-avx2", threads=1)
    path = program.save(tmp_path / "a.vmfb")
    with pytest.raises(tilewright.ProgramError, match="this machine lacks avx2") as error:
        program(x)
    _message(error)
    with pytest.raises(tilewright.ProgramError, match="this machine lacks avx2"):
        tilewright.load(path)


def test_a_flag_that_iree_does_not_know_is_named(model_path: Path) -> None:
    with pytest.raises(tilewright.IreeError, match="no-such-flag"):
        tilewright.compile(model_path, iree_flags=("--no-such-flag",))


def test_numerics_of_gpus_are_refused_on_processors(model_path: Path) -> None:
    with pytest.raises(tilewright.CompileError, match="numerics='tf32' is only for GPUs") as error:
        tilewright.compile(model_path, numerics="tf32")
    _message(error)


def test_impossible_thread_counts_are_refused(model_path: Path) -> None:
    with pytest.raises(tilewright.CompileError, match="1 to 64"):
        tilewright.compile(model_path, threads=0)


def test_a_missing_plan_is_refused(model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(tilewright.PlanError, match="no such file"):
        tilewright.compile(model_path, plan=tmp_path / "plan.json")


def test_a_plan_that_is_no_plan_is_refused(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"kernels": 3}')
    with pytest.raises(tilewright.TilewrightError) as error:
        tilewright.compile(model_path, plan=path)
    _message(error)


def test_a_plan_for_another_graph_is_refused(program: tilewright.Program) -> None:
    node = helper.make_node("Relu", ["a"], ["b"])
    other = make_model([node], [value("a", [3])], [value("b", [3])])
    with pytest.raises(tilewright.TilewrightError) as error:
        tilewright.compile(other, plan=program.plan)
    _message(error)


def test_a_dump_folder_that_cannot_be_made_is_refused(model_path: Path, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.touch()
    with pytest.raises(tilewright.OutputError, match="file"):
        tilewright.compile(model_path, dump_dir=blocker / "dump")


# Calls


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "0 inputs were given but the program takes 1"),
        ([np.zeros((ROWS, HIDDEN), np.float32)] * 2, "2 inputs were given"),
        ([np.zeros((ROWS, HIDDEN), np.float64)], "dtype float64 was given but float32 is needed"),
        ([np.zeros((ROWS, HIDDEN + 1), np.float32)], r"is needed \(dim 1\)"),
        ([np.zeros(HIDDEN, np.float32)], "shape"),
        ([np.zeros((ROWS, HIDDEN), np.complex64)], "complex64"),
        (["text"], "dtype"),
        ([None], "dtype"),
    ],
)
def test_wrong_arrays_are_refused(program: tilewright.Program, arrays: list[Any], message: str) -> None:
    with pytest.raises(tilewright.InputError, match=message) as error:
        program(*arrays)
    _message(error)


# The installation


@pytest.mark.parametrize("package", versions.PACKAGES)
def test_another_iree_is_refused_with_both_versions(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, package: str
) -> None:
    installed = versions.installed_version
    monkeypatch.setattr(versions, "installed_version", lambda p: "3.99.0" if p == package else installed(p))
    with pytest.raises(tilewright.VersionError) as error:
        tilewright.compile(model_path)
    message = _message(error)
    assert "3.99.0" in message
    assert versions.PINNED_IREE in message


def test_a_missing_iree_is_named(monkeypatch: pytest.MonkeyPatch, model_path: Path) -> None:
    monkeypatch.setattr(versions, "installed_version", lambda _: None)
    with pytest.raises(tilewright.VersionError, match="is not installed"):
        tilewright.compile(model_path)


def test_the_pinned_version_is_the_one_of_the_package() -> None:
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    for package in versions.PACKAGES:
        assert f'"{package}=={versions.PINNED_IREE}"' in project


def test_a_full_temporary_folder_is_an_error(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(tilewright.OutputError, match="TMPDIR"):
        tilewright.compile(model_path)
