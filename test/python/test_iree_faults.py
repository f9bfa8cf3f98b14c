"""Workarounds keep IREE 3.13 from wrong results: f16 convolutions on CUDA, and dynamic shapes with data tiling."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper
from tilewright.api.stitch import UnreadableError, run_passes
from tilewright.errors import CompileError, IreeError, PassError
from tilewright.frontends import import_model
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.faults import DATA_TILING, has_dynamic_shapes, hide_constants, widen_convolutions
from tilewright.iree.flags import iree_flags
from tilewright.records.signature import Signature
from tilewright.records.targets import resolve_targets
from tilewright.reference.oracle import float64_reference, model_tolerance, relative_error
from tilewright.runtime.session import Session
from tilewright.worker.process import Worker, lend_worker

from benchmarks.workloads import WORKLOADS
from fuzz.contraction_table import contraction_table
from fuzz.merge import merge
from fuzz.op_table import OpCase

Array = np.ndarray[Any, Any]

# Block arguments of an op that reduces
_REDUCTION = re.compile(r'"linalg\.\w+"\([^\n]*iterator_type<reduction>[^\n]*\n\s*\^bb0\(([^)\n]*)\)')


def conv(
    *, element: int = TensorProto.FLOAT16, image: Sequence[int | str] = (1, 8, 14, 14), stride: int = 2
) -> onnx.ModelProto:
    """Returns a 1x1 convolution after a relu, which is ours; IREE computes the default one wrongly."""
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"]),
        helper.make_node("Conv", ["positive", "w"], ["y"], strides=[stride] * 2),
    ]
    result = helper.make_tensor_value_info("y", element, None)
    inputs = [value("x", list(image), element), value("w", [5, 8, 1, 1], element)]
    graph = helper.make_graph(nodes, "graph", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def convolutions(*types: str) -> list[OpCase]:
    return [
        case
        for case in contraction_table()
        if case.id.startswith(("conv-", "convtranspose-")) and case.id.split("-")[1] in types
    ]


def test_convolutions_of_narrow_floats_are_widened_on_cuda_with_a_note() -> None:
    program = tilewright.compile(conv(image=(1, 8, "height", 14)), "cuda:h200")
    assert "1 convolution in f16 or bf16 that IREE compiles is computed in f32" in program.explain()


def test_others_are_left_alone() -> None:
    """Convolutions in f32, and on CPUs, are right in IREE and stay unchanged."""
    for program in (
        tilewright.compile(conv(element=TensorProto.FLOAT, image=(1, 8, "height", 14)), "cuda:h200"),
        tilewright.compile(conv(), threads=1),
    ):
        assert not [note for note in program.metadata.notes if "convolution" in note]


@pytest.mark.parametrize("element", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_iree_does_not_narrow_them_again(element: int, tmp_path: Path) -> None:
    """IREE fuses all it can into a kernel; an extension before the product would make it a product of narrow floats."""
    program = tilewright.compile(
        conv(element=element, image=(1, 8, "height", 14)), "cuda:h200", dump_dir=tmp_path
    )
    assert any("computed in f32" in note for note in program.metadata.notes)
    with Worker(tmp_path) as worker:
        flow = IreeCompiler(worker).resume(
            (tmp_path / "3-stitched.mlir").read_bytes(),
            "preprocessing",
            stop="flow",
            flags=program.metadata.iree_flags,
        )
    products = _REDUCTION.findall(flow.decode())
    assert products and not [arguments for arguments in products if "f16" in arguments]


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_widened_convolutions_compute_the_same(dtype: str, tmp_path: Path) -> None:
    """The sample has every form; it runs on a CPU, which runs the same module."""
    cases = convolutions(dtype)
    model = merge({case.id: case.model for case in cases})
    flags = iree_flags(resolve_targets("cpu", threads=1)[-1], host=True)
    with lend_worker(tmp_path) as worker:
        iree = IreeCompiler(worker)
        imported = import_model(model, compiler=iree, directory=tmp_path)
        front = iree.compile_to(imported.source, "preprocessing", flags=flags)
        widened, count = widen_convolutions(front, functools.partial(run_passes, worker), tmp_path)
        (tmp_path / "widened.vmfb").write_bytes(iree.resume(widened.encode(), "preprocessing", flags=flags))
    assert count == len(cases)
    signature = imported.signature
    assert isinstance(signature, Signature)
    session = Session(tmp_path / "widened.vmfb", imported.parameters, entry=imported.entry, threads=1)
    outputs = session(signature.check_inputs([array for case in cases for array in case.inputs]), signature)
    for case, y in zip(cases, outputs, strict=True):
        [expected] = float64_reference(case.model, case.inputs)
        assert relative_error(y, expected) <= model_tolerance(case.model), case.id


def test_they_are_widened_where_iree_fails_with_our_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    resume = IreeCompiler.resume

    def refuse(self: IreeCompiler, source: bytes, *arguments: Any, **options: Any) -> bytes:
        if b"hal.executable.source" in source:
            raise tilewright.IreeError("no kernels, please")
        assert b"util.optimization_barrier" in source
        return resume(self, source, *arguments, **options)

    monkeypatch.setattr(IreeCompiler, "resume", refuse)
    program = tilewright.compile(conv(), "cuda:h200")
    assert program.kernels == ()
    assert sum("computed in f32" in note for note in program.metadata.notes) == 1


def refuse_to_read(*_: Any, **__: Any) -> None:
    raise UnreadableError("unknown attribute")


def test_a_module_that_cannot_be_read_is_refused_if_it_has_such_convolutions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilewright.api.fuse.stitch", refuse_to_read)
    monkeypatch.setattr("tilewright.api.fuse.run_passes", refuse_to_read)
    with pytest.raises(
        CompileError, match=r"IREE, which computes some of them wrongly on CUDA.*unknown attribute"
    ):
        tilewright.compile(conv(), "cuda:h200")
    relu = make_model(
        [helper.make_node("Relu", ["x"], ["y"])],
        [value("x", [7, 5], TensorProto.FLOAT16)],
        [value("y", [7, 5], TensorProto.FLOAT16)],
    )
    program = tilewright.compile(relu, "cuda:h200")
    assert any("cannot read it" in note for note in program.metadata.notes)


def test_a_convolution_that_is_spelled_out_is_found_in_text(tmp_path: Path) -> None:
    """The module cannot be parsed; a matmul in it is no convolution."""
    text = """"linalg.generic"(%x, %w, %s) <{{indexing_maps = [affine_map<(d0, d1) -> ({index})>, affine_map<(d0, d1) ->
 (d1)>, affine_map<(d0, d1) -> (d0)>]}}> ({{
    ^bb0(%a: {type}, %b: {type}, %c: f32):""".replace("\n (", " (")

    def fail(text: str, passes: str) -> str:
        raise PassError("cannot be read")

    with pytest.raises(CompileError, match="cannot be read"):
        widen_convolutions(text.format(index="d0 * 2 + d1", type="bf16"), fail, tmp_path)
    for index, type_ in (("d0 + d1", "f32"), ("d0", "f16")):
        plain = text.format(index=index, type=type_)
        assert widen_convolutions(plain, fail, tmp_path) == (plain, 0)


# Data tiling


SLICED = """
func.func @main(%x: tensor<7xf32>) -> tensor<7xf32> {
  %constant = arith.constant dense<[1.5, -2.5, 3.5, -4.5, 5.5, -6.5, 7.5, -8.5, 9.5, -10.5, 11.5]> : tensor<11xf32>
  %slice = tensor.extract_slice %constant[4] [7] [1] : tensor<11xf32> to tensor<7xf32>
  %sum = arith.addf %x, %slice : tensor<7xf32>
  return %sum : tensor<7xf32>
}
"""


def test_iree_compiles_slices_of_constants_for_cuda(tmp_path: Path) -> None:
    """A constant and a slice of it in one kernel are refused; the constant stays in memory, so they are not in one."""
    flags = iree_flags(resolve_targets("cuda:h200", threads=1)[-1], host=False)
    with lend_worker(tmp_path) as worker:
        iree = IreeCompiler(worker)
        text = iree.compile_to(SLICED.encode(), "preprocessing", flags=flags)
        with pytest.raises(IreeError, match="restricted to workgroup distributed contexts"):
            iree.resume(text.encode(), "preprocessing", flags=flags)
        hidden = hide_constants(text, functools.partial(run_passes, worker))
        assert iree.resume(hidden.encode(), "preprocessing", flags=flags)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_cells_compile_with_kernels_of_ours_on_cuda(dtype: str) -> None:
    """Halves of their biases, converted to f32, are slices of what is computed from a constant."""
    program = tilewright.compile(WORKLOADS[f"ops-sequence-{dtype}"].build(), "cuda:h200", strict=True)
    assert not [note for note in program.metadata.notes if "IREE fails" in note]


def attention(batch: int | str, rows: int | str) -> onnx.ModelProto:
    """Returns x + softmax(x·xᵀ)·x, which IREE computes wrongly with data tiling if both sizes are dynamic."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x"], ["mixed"]),
        helper.make_node("Add", ["mixed", "x"], ["y"]),
    ]
    return make_model(nodes, [value("x", [batch, rows, 16])], [value("y", [batch, rows, 16])])


has_data_tiling = pytest.mark.skipif(
    DATA_TILING not in iree_flags(resolve_targets("cpu", threads=1)[-1], host=True),
    reason="data tiling is off on this processor",
)


@has_data_tiling
def test_dynamic_shapes_are_right() -> None:
    program = tilewright.compile(attention("batch", "rows"), threads=1)
    assert DATA_TILING not in program.metadata.iree_flags
    assert (
        "data tiling is off, because IREE 3.13 computes dynamic shapes wrongly with it" in program.explain()
    )
    generator = np.random.default_rng(5)
    for shape in ((3, 7, 16), (2, 64, 16), (1, 67, 16), (3, 131, 16)):
        x = generator.standard_normal(shape).astype(np.float32)
        [expected] = float64_reference(attention(*shape[:2]), [x])
        assert relative_error(program(x)[0], expected) < 2e-5


@has_data_tiling
def test_static_shapes_keep_data_tiling() -> None:
    program = tilewright.compile(attention(3, 67), threads=1)
    assert DATA_TILING in program.metadata.iree_flags
    assert not [note for note in program.metadata.notes if "data tiling" in note]


@pytest.mark.parametrize("flag", [DATA_TILING, f"{DATA_TILING}=true"])
def test_data_tiling_stays_where_the_user_asks_for_it(flag: str) -> None:
    program = tilewright.compile(attention("batch", "rows"), threads=1, iree_flags=[flag])
    assert flag in program.metadata.iree_flags


def test_a_size_that_only_a_value_inside_does_not_know_is_dynamic() -> None:
    assert has_dynamic_shapes('%1 = "a"(%0) : (tensor<4x?xf32>) -> tensor<4xf32>')
    assert has_dynamic_shapes('%1 = "a"(%0) : (tensor<?xi64, #encoding>) -> i64')
    assert not has_dynamic_shapes('%1 = "a"(%0) {b = "tensor of ?"} : (tensor<4x2xf32>) -> vector<?xf32>')
