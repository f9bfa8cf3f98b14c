"""Compiling for GPUs on a machine without one: kernels, their blocks, and what fits."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import tilewright
from conftest import make_model, value
from cuda_cases import on_h200 as on_h200
from onnx import TensorProto, helper
from tilewright.runtime.interface import read_interface

from benchmarks.gpu_kernels import count, to_markdown
from benchmarks.workloads import BertOptions, Workload, bert
from benchmarks.workloads.narrow import to_narrow
from fuzz.merge import merge
from fuzz.op_table import op_table

CAPABILITIES = {"cuda:a100": "sm_80", "cuda:rtx3090": "sm_86", "cuda:h100": "sm_90", "cuda:h200": "sm_90"}


def softmax_of(*shape: int) -> onnx.ModelProto:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=-1)
    return make_model([node], [value("x", list(shape))], [value("y", list(shape))])


@pytest.mark.parametrize("target", CAPABILITIES)
def test_compiles_to_a_module_with_our_ptx(model_path: Path, target: str) -> None:
    program = tilewright.compile(model_path, target=target)
    assert len(program.kernels) == 1
    code = program.module_path.read_bytes()
    entry = code[code.index(f".visible .entry {program.kernels[0].name}(".encode()) :]
    assert b".maxntid" in entry[: entry.index(b"{")]
    assert f".target {CAPABILITIES[target]}".encode() in code
    assert read_interface(program.module_path, entry=None).entry == program.metadata.entry


def test_contractions_are_ours(on_h200: tilewright.Program) -> None:
    """The plan names the micro kernels of all contractions."""
    assert "micro kernel fma-8x8" in on_h200.explain()
    assert not [op for op in on_h200.metadata.report.left_to_iree if "matmul" in op.op]


def test_kernels_are_counted_beside_iree_alone(model: onnx.ModelProto) -> None:
    row = count(Workload(name="attention", build=lambda: model, description="", suite=""), target="cuda:h200")
    assert row.alone is not None and row.stitched is not None
    assert (row.alone.ours, row.alone.iree_contractions) == (0, 1)
    assert row.stitched.ours >= 1
    assert row.stitched.total <= row.alone.total
    assert row.predicted_s > 0
    assert "| attention |" in to_markdown(
        [row], {"target": "cuda:h200", "date": "", "command": "", "tilewright": ""}
    )


def test_explain_describes_blocks() -> None:
    text = tilewright.compile(softmax_of(512, 128), target="cuda:h200").explain()
    assert "for target cuda:h200, default numerics" in text
    assert "threads, " in text
    assert "composition)" in text


@pytest.mark.parametrize(
    ("shape", "scheme"),
    [((4096, 128), "warp"), ((512, 2048), "block"), ((64, 30522), "block")],
    ids=["short rows", "rows", "long rows"],
)
def test_the_length_of_rows_chooses_the_scheme(shape: tuple[int, ...], scheme: str) -> None:
    program = tilewright.compile(softmax_of(*shape), target="cuda:h200")
    assert f"({scheme} composition)" in str(program.kernels[0])


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("offset", range(4))
def test_every_operator_in_every_type_compiles(offset: int) -> None:
    """All of a sample of the CPU tests' table is in our kernels, which `ptxas` checks if it is available."""
    cases = list(op_table())[offset * 11 :: 44]
    program = tilewright.compile(
        merge({case.id: case.model for case in cases}), target="cuda:a100", strict=True
    )
    computing = [op for op in program.metadata.report.left_to_iree if "a view" not in op.reason]
    assert not computing
    assert all(len(kernel.groups) <= 16 for kernel in program.kernels)


def test_a_fusion_with_too_many_bindings_is_declined() -> None:
    names = [f"x{i}" for i in range(24)]
    node = helper.make_node("Sum", names, ["y"])
    model = make_model([node], [value(name, [5, 1024]) for name in names], [value("y", [5, 1024])])
    program = tilewright.compile(model, target="cuda:h200", strict=True)
    reasons = [edge.reason for edge in program.metadata.report.edges_at_launch]
    assert len(program.kernels) == 2
    assert any("bindings; the target has 16" in reason for reason in reasons)


def test_layers_of_a_model_share_a_kernel(tmp_path: Path) -> None:
    """Each layer is one kernel with more tensors than bindings, and most layers share the same kernel."""
    layers = 6
    model = to_narrow(bert(BertOptions(layers=layers)), "f16")
    program = tilewright.compile(model, "cuda:h200", tuning=False, dump_dir=tmp_path, deploy=False)
    assert len(program.kernels) == layers + 1
    assert (tmp_path / "kernels.ptx").read_text().count(".entry") <= layers // 2
    reasons = [edge.reason for edge in program.metadata.report.edges_at_launch]
    assert any("the same code twice" in reason for reason in reasons)


@pytest.mark.lands(one_in=5)
@pytest.mark.parametrize("target", ["cuda:rtx3090", "cuda:a100", "cuda:h200"])
@pytest.mark.parametrize("columns", [512, 1000, 1024, 2048, 4096])
def test_rows_of_a_matmul_with_a_softmax_fit_as_planned(columns: int, target: str) -> None:
    """No kernel is refused after it was planned; rows that fit a block are one kernel."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"], axis=-1),
    ]
    shapes = {"x": [256, 64], "w": [64, columns], "y": [256, columns]}
    x, w, y = (value(name, shape, TensorProto.FLOAT16) for name, shape in shapes.items())
    program = tilewright.compile(make_model(nodes, [x, w], [y]), target)
    assert len(program.kernels) == 1 or columns > 512


def test_scores_that_phases_hand_over_leave_room_for_operands() -> None:
    """Scores with their mask, and the product with the values, are phases of one block, which is nearly full."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Add", ["s", "mask"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    shapes = {"q": [3, 40, 197], "k": [3, 160, 197], "mask": [40, 160], "v": [3, 160, 129], "y": [3, 40, 129]}
    *inputs, y = (value(name, shape, TensorProto.BFLOAT16) for name, shape in shapes.items())
    assert tilewright.compile(make_model(nodes, inputs, [y]), "cuda:rtx3090").kernels


def test_attention_over_keys_of_one_element_compiles() -> None:
    """The scores are sums over a K of one, which only the operands' shapes show."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    inputs = [value("q", [16, 1]), value("k", [1, 768]), value("v", [768, 49])]
    assert tilewright.compile(make_model(nodes, inputs, [value("y", [16, 49])]), "cuda:a100").kernels


def test_survives_saving(on_h200: tilewright.Program, tmp_path: Path) -> None:
    path = on_h200.save(tmp_path / "saved.vmfb")
    again = tilewright.load(path)
    assert again.metadata.device == "cuda"
    assert again.metadata.resources == on_h200.metadata.resources
    assert again.explain() == on_h200.explain()


def test_element_types_of_kernels_are_the_models() -> None:
    """f16 and bf16 are read and written directly, eight elements per access."""
    for element in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["x", "t"], ["y"])]
        model = make_model(nodes, [value("x", [64, 256], element)], [value("y", [64, 256], element)])
        program = tilewright.compile(model, target="cuda:h200")
        code = program.module_path.read_bytes()
        assert b"ld.global.nc.v4.b32" in code
        assert b"st.global.v4.b32" in code
