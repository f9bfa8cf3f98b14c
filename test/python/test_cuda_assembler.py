"""The assembler of GPU programs: what ptxas says of registers, and the machine code beside the PTX."""

from __future__ import annotations

from pathlib import Path

import pytest
import tilewright
from cuda_cases import on_h200 as on_h200
from tilewright.api.assemble import _make_image
from tilewright.errors import CompileError
from tilewright.records.targets import resolve_targets
from tilewright.system.deadline import Deadline
from tilewright.system.ptxas import KernelResources, assemble, find_ptxas, read_resources

_FATBIN = (0xBA55ED50).to_bytes(4, "little")
"""The first bytes of code in several forms, of which the driver chooses."""


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


_BOUND_PTX = """.visible .entry first(
\t.param .u64 first_param_0
)
.maxntid 256, 1, 1
.minnctapersm 2
{
.visible .entry second(
)
.maxntid 128, 1, 1
.minnctapersm 1
{
"""


@pytest.mark.parametrize(("registers", "spilled"), [(128, 0), (136, 8)])
def test_a_kernel_that_spills_is_assembled_without_bounds_if_it_keeps_them(
    registers: int, spilled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ptx = tmp_path / "kernels.ptx"
    ptx.write_text(_BOUND_PTX)

    def fake_assemble(ptx: Path, *, cubin: Path, **_: object) -> dict[str, KernelResources]:
        cubin.write_text(text := ptx.read_text())
        is_bound = ".minnctapersm 2" in text
        assert ".minnctapersm 1" in text  # the other kernel's
        first = KernelResources(128, 8, 0) if is_bound else KernelResources(registers, 0, 0)
        return {"first": first, "second": KernelResources(40, 0, 0)}

    monkeypatch.setattr("tilewright.api.assemble.assemble", fake_assemble)
    monkeypatch.setattr("tilewright.api.assemble.join", lambda *_, **__: True)
    resources = _make_image(ptx, resolve_targets("cuda:h200", threads=1)[0], "ptxas", Deadline(None))
    assert resources["first"].spill_bytes == spilled
    assert (".minnctapersm 2" in ptx.with_suffix(".cubin").read_text()) == (spilled > 0)


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
