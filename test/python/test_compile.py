"""`tilewright.compile`, and calls of its programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import tilewright
from conftest import COLUMNS, HIDDEN, ROWS, make_model, value
from onnx import TensorProto, helper
from tilewright.api.stitch import UnreadableError, _run
from tilewright.errors import PassError
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING
from tilewright.worker.process import Worker

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


def test_takes_mlir_text() -> None:
    program = tilewright.compile(
        """
        func.func @scale(%x: tensor<?x5xf32>, %factor: f32) -> (tensor<?x5xf32>, f32) {
          %c0 = arith.constant 0 : index
          %n = tensor.dim %x, %c0 : tensor<?x5xf32>
          %empty = tensor.empty(%n) : tensor<?x5xf32>
          %f = linalg.fill ins(%factor : f32) outs(%empty : tensor<?x5xf32>) -> tensor<?x5xf32>
          %y = arith.mulf %x, %f : tensor<?x5xf32>
          return %y, %factor : tensor<?x5xf32>, f32
        }""",
        threads=1,
    )
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    y, factor = program(x, 2.0)
    np.testing.assert_array_equal(y, 2 * x)
    assert factor == 2.0


def test_takes_torch_text_whose_module_does_not_declare_its_types() -> None:
    program = tilewright.compile(
        """
        func.func @relu(%x: !torch.vtensor<[2,?],f32>) -> !torch.vtensor<[2,?],f32> {
          %y = torch.aten.relu %x : !torch.vtensor<[2,?],f32> -> !torch.vtensor<[2,?],f32>
          return %y : !torch.vtensor<[2,?],f32>
        }""",
        threads=1,
    )
    assert str(program.signature) == "(input0: float32[2x?]) -> (output0: float32[2x?])"
    x = np.array([[-1, 2, 3], [4, -5, 6]], dtype=np.float32)
    np.testing.assert_array_equal(program(x)[0], np.maximum(x, 0))


def test_takes_stablehlo_text() -> None:
    program = tilewright.compile(
        """
        func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
          %y = stablehlo.add %x, %x : tensor<3xf32>
          return %y : tensor<3xf32>
        }""",
        threads=1,
    )
    np.testing.assert_array_equal(program(np.ones(3, np.float32))[0], 2 * np.ones(3))


def test_constants_kept_as_resources_keep_their_values() -> None:
    program = tilewright.compile(
        """
        module {
          func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
            %c = arith.constant dense_resource<blob> : tensor<4xf32>
            %y = arith.addf %x, %c : tensor<4xf32>
            return %y : tensor<4xf32>
          }
        }
        {-# dialect_resources: { builtin: { blob: "0x040000000000803F000000400000404000008040" } } #-}
        """,
        threads=1,
    )
    assert program.runtime == "direct"
    np.testing.assert_array_equal(program(np.zeros(4, np.float32))[0], [1, 2, 3, 4])


ELEMENT_TYPES = [
    (TensorProto.FLOAT, np.dtype(np.float32)),
    (TensorProto.FLOAT16, np.dtype(np.float16)),
    (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
    (TensorProto.DOUBLE, np.dtype(np.float64)),
    (TensorProto.INT8, np.dtype(np.int8)),
    (TensorProto.UINT8, np.dtype(np.uint8)),
    (TensorProto.INT32, np.dtype(np.int32)),
    (TensorProto.INT64, np.dtype(np.int64)),
]


@pytest.mark.parametrize(("element", "dtype"), ELEMENT_TYPES, ids=lambda v: getattr(v, "name", None))
def test_arrays_keep_their_dtype(element: int, dtype: np.dtype[Any]) -> None:
    node = helper.make_node("Add", ["a", "b"], ["c"])
    model = make_model(
        [node], [value("a", [3, 5], element), value("b", [5], element)], [value("c", [3, 5], element)]
    )
    a = np.arange(15).reshape(3, 5).astype(dtype)
    b = np.arange(5).astype(dtype)
    (c,) = tilewright.compile(model, threads=1)(a, b)
    assert c.dtype == dtype
    np.testing.assert_array_equal(c.astype(np.float64), (a + b).astype(np.float64))


def test_booleans_go_in_and_come_out() -> None:
    node = helper.make_node("Not", ["a"], ["b"])
    model = make_model([node], [value("a", [3, 5], TensorProto.BOOL)], [value("b", [3, 5], TensorProto.BOOL)])
    a = np.random.default_rng(0).random((3, 5)) < 0.5
    (b,) = tilewright.compile(model, threads=1)(a)
    assert b.dtype == np.bool_
    np.testing.assert_array_equal(b, ~a)


def test_named_dims_take_any_size_but_the_same() -> None:
    node = helper.make_node("Add", ["a", "b"], ["c"])
    model = make_model([node], [value("a", ["n", 3]), value("b", ["n", 3])], [value("c", ["n", 3])])
    program = tilewright.compile(model, threads=1)
    for n in (1, 4):
        a = np.full((n, 3), 2, np.float32)
        np.testing.assert_array_equal(program(a, a)[0], a + a)
    with pytest.raises(tilewright.InputError, match=r"'n'.*is 4, but it is 2 in input 'a'"):
        program(np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32))


def test_arrays_of_no_elements_work() -> None:
    node = helper.make_node("Relu", ["a"], ["b"])
    model = make_model([node], [value("a", ["n", 3])], [value("b", ["n", 3])])
    (b,) = tilewright.compile(model, threads=1)(np.zeros((0, 3), np.float32))
    assert b.shape == (0, 3)


def test_arrays_need_not_be_contiguous(program: tilewright.Program, x: Array, expected: list[Array]) -> None:
    transposed = np.ascontiguousarray(x.T).T
    np.testing.assert_allclose(program(transposed)[0], expected[0], rtol=1e-5, atol=1e-6)


def test_a_bound_call_runs_again_on_the_same_inputs(
    program: tilewright.Program, x: Array, expected: list[Array]
) -> None:
    call = program.bind(x)
    call()
    first = call.outputs()
    call()
    for y, again, y64 in zip(first, call.outputs(), expected, strict=True):
        np.testing.assert_array_equal(y, again)
        np.testing.assert_allclose(y, y64, rtol=1e-5, atol=1e-6)


def test_outputs_belong_to_the_caller(program: tilewright.Program, x: Array) -> None:
    first = program(x)[0]
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(program(x)[0], kept)


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


def test_what_our_stage_cannot_read_is_left_to_iree_with_a_note(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, x: Array, expected: list[Array]
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise UnreadableError("unknown attribute")

    monkeypatch.setattr("tilewright.api.fuse.stitch", refuse)
    program = tilewright.compile(model_path, threads=1)
    assert program.kernels == ()
    assert "left to IREE, because our stage cannot read it (unknown attribute)" in program.explain()
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(tilewright.CompileError, match="unknown attribute"):
        tilewright.compile(model_path, threads=1, strict=True)


class _Refusing:
    """A stitching stage whose code exceeds the block memory a given number of times."""

    def __init__(self, times: int) -> None:
        self.pipelines: list[str] = []
        self._times = times

    def __call__(self, worker: Worker, text: str, pipeline: str, **rest: Any) -> str:
        self.pipelines.append(pipeline)
        if len(self.pipelines) > self._times:
            return _run(worker, text, pipeline, **rest)
        raise PassError(
            "a block needs 108928 bytes of shared memory; target 'cuda:rtx3090' has 101376: plan smaller tiles",
            numbers={"excess_block_bytes": 108928 - 101376},
        )


def test_a_plan_that_counts_too_little_memory_is_made_again_with_a_note(
    monkeypatch: pytest.MonkeyPatch, model_path: Path
) -> None:
    stage = _Refusing(times=2)
    monkeypatch.setattr("tilewright.api.stitch._run", stage)
    program = tilewright.compile(model_path, "cuda:rtx3090")
    assert ["block-bytes" in passes for passes in stage.pipelines] == [False, True, True]
    assert f"block-bytes={101376 - 2 * (108928 - 101376)}" in stage.pipelines[2]
    assert sum("planned again" in note for note in program.metadata.notes) == 2


def test_a_plan_that_always_counts_too_little_memory_is_an_error_if_strict(
    monkeypatch: pytest.MonkeyPatch, model_path: Path
) -> None:
    monkeypatch.setattr("tilewright.api.stitch._run", _Refusing(times=1000))
    with pytest.raises(PassError, match="a block needs 108928 bytes"):
        tilewright.compile(model_path, "cuda:rtx3090", strict=True)


def test_kernels_that_iree_cannot_take_are_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, x: Array, expected: list[Array]
) -> None:
    resume = IreeCompiler.resume

    def refuse(self: IreeCompiler, source: bytes, *arguments: Any, **options: Any) -> bytes:
        if b"flow.dispatch" in source:
            raise tilewright.IreeError("no kernels, please")
        return resume(self, source, *arguments, **options)

    monkeypatch.setattr(IreeCompiler, "resume", refuse)
    program = tilewright.compile(model_path, threads=1)
    assert program.kernels == ()
    assert "none of our kernels is in the program" in program.explain()
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(tilewright.IreeError, match="no kernels, please"):
        tilewright.compile(model_path, threads=1, strict=True)


def test_data_tiling_goes_off_where_iree_fails_with_it(
    monkeypatch: pytest.MonkeyPatch, model_path: Path, x: Array, expected: list[Array]
) -> None:
    resume = IreeCompiler.resume

    def refuse(self: IreeCompiler, source: bytes, *arguments: Any, flags: Any, **options: Any) -> bytes:
        if DATA_TILING in flags:
            raise tilewright.IreeError("no tiling, please")
        return resume(self, source, *arguments, flags=flags, **options)

    monkeypatch.setattr(IreeCompiler, "resume", refuse)
    program = tilewright.compile(model_path, threads=1)
    assert len(program.kernels) == 1
    assert DATA_TILING not in program.metadata.iree_flags
    assert "data tiling is off" in program.explain()
    np.testing.assert_allclose(program(x)[0], expected[0], rtol=1e-5, atol=1e-6)


def test_every_op_that_stays_with_iree_is_said() -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"]),
        helper.make_node("TopK", ["s", "k"], ["values", "places"], name="best"),
    ]
    outputs = [value("values", [8, 5]), value("places", [8, 5], TensorProto.INT64)]
    model = make_model(nodes, [value("x", [8, 64])], outputs, {"k": np.array([5])})
    program = tilewright.compile(model, threads=1)
    assert "iree_linalg_ext.sort: not a tensor expression (best)" in program.explain()


@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_gelu_by_tanh_of_torch_has_its_constant(element: str) -> None:
    """IREE 3.13 has only four digits of the constant, an error of 5e-5."""
    kind = f"!torch.vtensor<[64],{element}>"
    source = f"""
        func.func @gelu(%x: {kind}) -> {kind} {{
          %form = torch.constant.str "tanh"
          %y = torch.aten.gelu %x, %form : {kind}, !torch.str -> {kind}
          return %y : {kind}
        }}"""
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    x = np.random.default_rng().uniform(-4, 4, 64).astype(dtype)
    (y,) = tilewright.compile(source, threads=1)(x)
    wide = x.astype(np.float64)
    expected = wide / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    # Tolerance: the rounding of the result, or of f32 intermediates
    tolerance = {"f32": 2e-6, "f16": 2**-11, "bf16": 2**-8}[element]
    assert np.all(np.abs(y.astype(np.float64) - expected) <= tolerance * np.abs(expected) + 2e-6)
