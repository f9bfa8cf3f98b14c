"""Compiling for GPUs on a machine without one: content of the module, results of the assembler, refusals."""

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
from conftest import make_model, value
from fake_cuda import FakeCuda
from onnx import TensorProto, helper
from tilewright.errors import CompileError, ProgramError, TargetError
from tilewright.records.targets import Target, resolve_targets
from tilewright.runtime import cuda
from tilewright.runtime.interface import read_interface
from tilewright.system.ptxas import KernelResources, assemble, find_ptxas, read_resources

from benchmarks.gpu_kernels import count, to_markdown
from benchmarks.workloads import WORKLOADS, Workload
from fuzz.merge import merge
from fuzz.op_table import op_table

Array = np.ndarray[Any, Any]

_FATBIN = (0xBA55ED50).to_bytes(4, "little")
"""The first bytes of code in several forms, of which the driver chooses."""

CAPABILITIES = {"cuda:a100": "sm_80", "cuda:rtx3090": "sm_86", "cuda:h100": "sm_90", "cuda:h200": "sm_90"}


@pytest.fixture(scope="module")
def on_h200(model_path: Path) -> tilewright.Program:
    return tilewright.compile(model_path, target="cuda:h200")


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
    model = WORKLOADS["bert"].in_type("f16").build()
    program = tilewright.compile(model, "cuda:h200", tuning=False, dump_dir=tmp_path)
    layers = 12
    assert len(program.kernels) == layers + 1
    assert (tmp_path / "kernels.ptx").read_text().count(".entry") <= layers // 2
    reasons = [edge.reason for edge in program.metadata.report.edges_at_launch]
    assert any("the same code twice" in reason for reason in reasons)


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


def test_calling_it_without_a_gpu_says_so(on_h200: tilewright.Program) -> None:
    if _has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(ProgramError, match="no CUDA device can be used"):
        on_h200.load()


def _has_gpu() -> bool:
    return Path("/dev/nvidiactl").exists()


def test_an_older_gpu_is_refused_when_a_program_is_loaded(
    on_h200: tilewright.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = on_h200.save(tmp_path / "saved.vmfb")
    monkeypatch.setattr(cuda, "open_driver", lambda: FakeCuda(capability=(8, 6)))
    needs = r"need compute capability 9\.0, but this GPU \(a simulated GPU\) has 8\.6; compile it for target sm_86"
    with pytest.raises(ProgramError, match=needs):
        tilewright.load(path)
    with pytest.raises(ProgramError, match=needs):
        on_h200.load()
    monkeypatch.setattr(cuda, "open_driver", lambda: FakeCuda(capability=(9, 0)))
    assert tilewright.load(path).metadata.capability == "sm_90"


def test_a_gpu_too_small_for_a_barrier_of_the_grid_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = {"base": "cuda:h200", "name": "half-an-h200", "gpu": {"guaranteedSms": 66}}
    (tmp_path / "half.json").write_text(json.dumps(half))
    node = helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0)
    model = make_model([node], [value("x", [64, 65536])], [value("y", [])])
    program = tilewright.compile(model, target=tmp_path / "half.json", strict=True)
    (kernel,) = program.kernels
    assert kernel.has_grid_barrier and program.metadata.multiprocessors == min(kernel.workgroups, 66)
    path = program.save(tmp_path / "saved.vmfb")
    for smaller, message in (
        (FakeCuda(multiprocessors=8), r"on \d+ multiprocessors, but .* has 8; .*--no-grid-sync"),
        (FakeCuda(threads=1536), r"on 2048 threads of each multiprocessor, but .* has 1536"),
        (FakeCuda(shared_bytes=102400), r"on 233472 bytes of shared memory of each .*, but .* has 102400"),
    ):
        monkeypatch.setattr(cuda, "open_driver", lambda gpu=smaller: gpu)
        with pytest.raises(ProgramError, match=message):
            tilewright.load(path)
    monkeypatch.setattr(cuda, "open_driver", lambda: FakeCuda(multiprocessors=66))
    assert tilewright.load(path).metadata.multiprocessors == program.metadata.multiprocessors
    alone = tilewright.compile(model, target=tmp_path / "half.json", strict=True, grid_sync=False)
    assert alone.metadata.multiprocessors == 0


def test_survives_saving(on_h200: tilewright.Program, tmp_path: Path) -> None:
    path = on_h200.save(tmp_path / "saved.vmfb")
    again = tilewright.load(path)
    assert again.metadata.device == "cuda"
    assert again.metadata.resources == on_h200.metadata.resources
    assert again.explain() == on_h200.explain()


def test_without_ptxas_there_is_a_note(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.api.assemble.find_ptxas", lambda: None)
    program = tilewright.compile(model_path, target="cuda:a100")
    assert not program.metadata.resources
    assert any("ptxas is not installed" in note for note in program.metadata.notes)


def test_ptxas_says_what_kernels_take(on_h200: tilewright.Program) -> None:
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    resources = on_h200.metadata.resources[on_h200.kernels[0].name]
    assert 0 < resources.registers <= 255
    assert resources.spill_bytes == 0


def test_a_kernel_with_more_registers_than_the_target_is_refused(model_path: Path, tmp_path: Path) -> None:
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    path = tmp_path / "few.json"
    path.write_text('{"base": "cuda:h200", "name": "few", "gpu": {"registersPerThread": 8}}')
    with pytest.raises(CompileError, match=r"kernel \w+ takes \d+ registers a thread; target few has 8"):
        tilewright.compile(model_path, target=path)


def test_the_module_has_machine_code_beside_the_ptx(on_h200: tilewright.Program) -> None:
    if find_ptxas() is None:
        pytest.skip("no ptxas")
    code = on_h200.module_path.read_bytes()
    image = code[code.index(_FATBIN) :]
    assert b"\x7fELF" in image
    assert b".target sm_90" in image


def test_without_ptxas_the_module_has_ptx_alone(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.api.assemble.find_ptxas", lambda: None)
    program = tilewright.compile(model_path, target="cuda:h200")
    code = program.module_path.read_bytes()
    assert _FATBIN not in code
    assert b".target sm_90" in code
    assert any("ptxas is not installed" in note for note in program.metadata.notes)


def test_ptx_that_ptxas_refuses_is_an_error(tmp_path: Path) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("no ptxas")
    (tmp_path / "bad.ptx").write_text(".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n")
    with pytest.raises(CompileError, match="ptxas refuses the kernels"):
        assemble(tmp_path / "bad.ptx", capability="sm_80", ptxas=ptxas, cubin=tmp_path / "bad.cubin")


def test_the_log_of_ptxas_is_read() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90'
ptxas info    : Function properties for a
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 6528 bytes smem
ptxas info    : Compiling entry function 'b' for 'sm_90'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers
"""
    assert read_resources(log) == {"a": KernelResources(40, 20, 6528), "b": KernelResources(10, 0, 0)}


def test_one_module_has_variants_for_several_capabilities(model_path: Path, tmp_path: Path) -> None:
    targets = "cuda:h200,cuda:a100,cuda:rtx3090"
    program = tilewright.compile(model_path, target=targets, dump_dir=tmp_path)
    code = program.module_path.read_bytes()
    for capability in (b"sm_80", b"sm_86", b"sm_90"):
        assert code.count(b".target " + capability) >= 1
    assert b"compute_capability_major" in code
    assert program.metadata.target == targets
    assert program.metadata.capability == "sm_80"
    assert program.metadata.variants == {"cuda:h200": "sm_90", "cuda:rtx3090": "sm_86"}
    text = program.explain()
    assert (
        "3 variants of each fused kernel, the first that the GPU has the capability for: sm_90, sm_86, sm_80"
        in text
    )


def test_kernels_for_several_gpus_stay_within_the_limits_of_all() -> None:
    common, hopper, consumer = resolve_targets("cuda:h200,cuda:a100,cuda:rtx3090,cuda:h100", threads=1)
    known = [Target.lookup(name) for name in common.name.split(",")]
    assert (common.cpu, hopper.cpu, consumer.cpu) == ("sm_80", "sm_90", "sm_86")
    assert common.block_bytes == min(target.block_bytes for target in known) == consumer.block_bytes
    assert common.gpu.guaranteed_sms == min(target.gpu.guaranteed_sms for target in known)
    assert common.gpu.threads_per_sm == consumer.gpu.threads_per_sm
    assert common.levels == hopper.levels, "planned for the first that is named"


@pytest.mark.parametrize(
    ("targets", "reason"),
    [("cuda:a100,x86-64-avx2", "are not of the same kind"), ("cuda:a100,cuda:a100", "is given twice")],
)
def test_targets_that_cannot_go_together(model_path: Path, targets: str, reason: str) -> None:
    with pytest.raises(TargetError, match=reason):
        tilewright.compile(model_path, target=targets)


def test_a_gpu_of_ones_own_is_one_of_several(model_path: Path, tmp_path: Path) -> None:
    small = {"base": "cuda:a100", "name": "half-an-a100", "cores": 54, "gpu": {"guaranteedSms": 54}}
    path = tmp_path / "half.json"
    path.write_text(json.dumps(small))
    both = tilewright.compile(model_path, target=f"{path},cuda:h100")
    assert both.metadata.target == "half-an-a100,cuda:h100"
    assert resolve_targets([path, "cuda:h100"], threads=1)[0].gpu.guaranteed_sms == 54


def test_a_smaller_gpu_is_a_file(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text('{"base": "cuda:rtx3090", "name": "small", "gpu": {"threadsPerBlock": 64}}')
    program = tilewright.compile(model_path, target=path)
    assert all(part.threads <= 64 for kernel in program.kernels for part in kernel.groups)
    path.write_text('{"base": "cuda:rtx3090", "gpu": {"threadsPerBlok": 64}}')
    with pytest.raises(TargetError, match=r"gpu\.threadsPerBlok: unknown field"):
        tilewright.compile(model_path, target=path)


def test_element_types_of_kernels_are_the_models() -> None:
    """f16 and bf16 are read and written directly, eight elements per access."""
    for element in (TensorProto.FLOAT16, TensorProto.BFLOAT16):
        nodes = [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Mul", ["x", "t"], ["y"])]
        model = make_model(nodes, [value("x", [64, 256], element)], [value("y", [64, 256], element)])
        program = tilewright.compile(model, target="cuda:h200")
        code = program.module_path.read_bytes()
        assert b"ld.global.nc.v4.b32" in code
        assert b"st.global.v4.b32" in code


def test_memory_that_keeps_a_pool_goes_before_its_device() -> None:
    """The memory that keeps a pool mapped is released before its device.

    A local device stands in here; the other order would crash.
    """
    code = """
import weakref
from iree.runtime import _binding
from tilewright.runtime.devices import occupy_pool, release_pool

class Session: ...

device = _binding.create_hal_driver("local-sync").create_default_device()
for _ in range(2):  # one that goes, and one that stays until the end
    session = Session()
    kept = occupy_pool(device)
    weakref.finalize(session, release_pool, kept, device)
    assert len(kept) == 1
del device
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
