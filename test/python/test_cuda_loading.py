"""Programs for GPUs where there is no GPU, or one that does not fit: they say so when they are loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tilewright
from conftest import make_model, value
from cuda_cases import on_h200 as on_h200
from fake_cuda import FakeCuda
from onnx import helper
from stand_in_cuda import StandInCuda
from tilewright.errors import ProgramError
from tilewright.runtime import cuda


def test_calling_it_without_a_gpu_says_so(on_h200: tilewright.Program) -> None:
    if _has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(ProgramError, match="no NVIDIA driver is installed"):
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
    fitting = StandInCuda(capability=(9, 0))
    monkeypatch.setattr(cuda, "open_driver", lambda: fitting)
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
    for smaller, message in (
        (FakeCuda(multiprocessors=8), r"on \d+ multiprocessors, but .* has 8; .*--no-grid-sync"),
        (FakeCuda(threads=1536), r"on 2048 threads of each multiprocessor, but .* has 1536"),
        (FakeCuda(shared_bytes=102400), r"on 233472 bytes of shared memory of each .*, but .* has 102400"),
    ):
        monkeypatch.setattr(cuda, "open_driver", lambda gpu=smaller: gpu)
        with pytest.raises(ProgramError, match=message):
            program.session()  # in IREE, which does not ask the driver
    path = program.save(tmp_path / "saved.vmfb")
    part = StandInCuda(multiprocessors=8)
    monkeypatch.setattr(cuda, "open_driver", lambda: part)
    with pytest.raises(
        ProgramError, match=r"wait for each other, but this GPU runs 8 at once .*--no-grid-sync"
    ):
        tilewright.load(path)
    whole = StandInCuda(multiprocessors=66, blocks_per_multiprocessor=2)
    monkeypatch.setattr(cuda, "open_driver", lambda: whole)
    assert tilewright.load(path).metadata.multiprocessors == program.metadata.multiprocessors
    alone = tilewright.compile(model, target=tmp_path / "half.json", strict=True, grid_sync=False)
    assert alone.metadata.multiprocessors == 0


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
