"""`tilewright.compile` of ONNX: threads, signatures, plans, dumps, and what goes to IREE with a note."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import COLUMNS, HIDDEN, ROWS

Array = np.ndarray[Any, Any]


def test_runs_a_model_from_a_path(program: tilewright.Program, x: Array, expected: list[Array]) -> None:
    outputs = program(x)
    assert [y.dtype for y in outputs] == [np.float32, np.float32]
    for y, y64 in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(y, y64, rtol=1e-5, atol=1e-6)


def test_takes_a_model_proto_and_leaves_it_as_it_was(
    model: onnx.ModelProto, x: Array, expected: list[Array]
) -> None:
    before = model.SerializeToString()
    program = tilewright.compile(model, threads=1)
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_runs_on_any_number_of_threads(
    model_path: Path, x: Array, expected: list[Array], threads: int
) -> None:
    program = tilewright.compile(model_path, threads=[threads])
    assert program.metadata.threads == threads
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)


def test_signature_has_the_names_of_the_model(program: tilewright.Program) -> None:
    signature = program.signature
    assert signature is not None
    assert [str(spec) for spec in signature.inputs] == [f"x: float32[{ROWS}x{HIDDEN}]"]
    assert [spec.name for spec in signature.outputs] == ["probabilities", "scores"]


def test_repr_says_what_it_is(program: tilewright.Program) -> None:
    assert "attention(x: float32" in repr(program)
    assert "fused kernels" in repr(program)


def test_the_softmax_is_one_kernel_of_ours(program: tilewright.Program) -> None:
    assert len(program.kernels) == 1
    kernel = program.kernels[0]
    assert kernel.predicted_bytes >= 2 * 4 * ROWS * COLUMNS
    assert kernel.predicted_seconds > 0
    assert any("normalise" in op.location for op in kernel.ops)


def test_explain_names_kernels_and_reasons(program: tilewright.Program) -> None:
    text = program.explain()
    assert program.kernels[0].name in text
    assert "left to IREE, and why" in text
    as_json = program.explain("json")
    assert len(as_json["kernels"]) == len(program.kernels)


def test_a_plan_of_the_compiler_is_carried_out_again(
    program: tilewright.Program, model_path: Path, x: Array, expected: list[Array]
) -> None:
    plan = program.plan
    assert plan is not None
    again = tilewright.compile(model_path, plan=plan, threads=[2])
    assert len(again.kernels) == len(program.kernels)
    np.testing.assert_allclose(again(x)[0], expected[0], rtol=1e-5, atol=1e-6)


def test_dumps_every_level(model_path: Path, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    tilewright.compile(model_path, dump_dir=dump, threads=1)
    names = {path.name for path in dump.iterdir()}
    assert {"1-input.mlir", "2-preprocessing.mlir", "3-stitched.mlir", "plan.json", "report.json"} <= names
    assert "torch" in (dump / "1-input.mlir").read_text()
    assert "flow.dispatch" in (dump / "3-stitched.mlir").read_text()
    assert any((dump / "passes").rglob("*.mlir"))


def test_flags_of_iree_pass_through(model_path: Path) -> None:
    program = tilewright.compile(model_path, threads=1, iree_flags=("--iree-opt-data-tiling=false",))
    assert not any("data-tiling" in flag for flag in program.metadata.iree_flags)


def test_progress_is_told(model_path: Path) -> None:
    steps: list[str] = []
    tilewright.compile(model_path, threads=1, progress=steps.append)
    expected = [
        "importing the model",
        "IREE: to the preprocessing phase",
        "fusing and generating kernels",
        "IREE: to the module",
        "storing weights in the layout that kernels read",
    ]
    assert [step for step in steps if step in expected] == expected


def test_entry_chooses_among_functions() -> None:
    text = """
    func.func @one(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }
    func.func @two(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = arith.addf %x, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    }"""
    with pytest.raises(tilewright.ProgramError, match="several functions: one, two"):
        tilewright.compile(text, threads=1)
    program = tilewright.compile(text, threads=1, entry="two")
    np.testing.assert_array_equal(program(np.ones(2, np.float32))[0], [2, 2])
