"""Tuning for GPUs with a fake of the driver's library: bundle, run, import, compile."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from click.testing import CliRunner
from fake_cuda import FakeCuda
from tilewright.cli.main import cli
from tilewright.runtime.cuda import Cuda
from tilewright.tuning import on_gpu
from tilewright.tuning.bundle import make_bundle, take_results
from tilewright.tuning.database import Database

from benchmarks.workloads.builder import GraphBuilder

TARGET = "cuda:h200"
ILLEGAL_ADDRESS = 700


class RatedCuda(FakeCuda):
    """A fake whose kernels do nothing; those with as many blocks as the unmeasured plan take three times as long."""

    def __init__(self, disliked: int) -> None:
        super().__init__()
        self._disliked = disliked

    def cuLaunchKernel(self, function: Any, *arguments: Any) -> int:
        if not all(ctypes.c_uint64.from_address(place).value in self._memory for place in arguments[8]):
            return ILLEGAL_ADDRESS
        self.seconds += 30e-6 if arguments[0].value == self._disliked else 10e-6
        return 0


class FaultyCuda(RatedCuda):
    """The same fake, but the driver fails at certain kernels."""

    def __init__(self, disliked: int) -> None:
        super().__init__(disliked)
        self._state = 0

    def cuLaunchKernel(self, function: Any, *arguments: Any) -> int:
        if arguments[0].value == self._disliked:
            self._state = ILLEGAL_ADDRESS
        return self._state or super().cuLaunchKernel(function, *arguments)

    def cuCtxSynchronize(self) -> int:
        return self._state

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        self._state = 0  # it runs in another process
        return super().cuDevicePrimaryCtxRetain(context, device)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A softmax over rows, which can be distributed over blocks in many ways."""
    g = GraphBuilder("rows")
    g.output(g.op("Softmax", g.input("x", (512, 96)), axis=-1), (512, 96))
    path = tmp_path_factory.mktemp("model") / "rows.onnx"
    onnx.save(g.build(), path)
    return path


@pytest.fixture(scope="module")
def folder(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bundle") / "made"
    assert make_bundle(model, TARGET, made, candidates=6) == 1
    return made


def results_of(folder: Path, output: Path) -> Path:
    manifest = json.loads((folder / "manifest.json").read_text())
    [subprogram] = manifest["subprograms"]
    own = subprogram["plans"][0]["launches"]["launches"][0]["workgroups"]
    results = output / "results.json"
    assert on_gpu.main([str(folder), "--output", str(results)], library=RatedCuda(own)) == 0
    return results


def test_what_won_there_is_compiled_here(model: Path, folder: Path, tmp_path: Path) -> None:
    before = tilewright.compile(model, TARGET, tuning=False)
    results = results_of(folder, tmp_path)
    database = tmp_path / "tuned.db"
    done = CliRunner().invoke(cli, ["tuning", "import", str(results), "--database", str(database)])
    assert done.exit_code == 0 and "1 decisions" in done.output
    with Database(database) as kept:
        [decision] = kept.decisions()
    assert decision.ratio == pytest.approx(1 / 3, rel=1e-3)
    assert decision.machine.startswith("a simulated GPU")
    after = tilewright.compile(model, TARGET, tuning=database)
    assert before.plan is not None and after.plan is not None
    assert after.plan.kernels[0].groups[0].tiles != before.plan.kernels[0].groups[0].tiles
    assert after.kernels[0].measured and not before.kernels[0].measured
    without = tilewright.compile(model, TARGET, tuning=database, grid_sync=False)
    assert not without.kernels[0].measured


def test_plans_of_warpgroups_are_among_those_that_are_timed(tmp_path: Path) -> None:
    g, half = GraphBuilder("product"), onnx.TensorProto.FLOAT16
    g.output(g.op("MatMul", g.input("x", (128, 64), half), g.input("y", (64, 128), half)), (128, 128), half)
    path = tmp_path / "product.onnx"
    onnx.save(g.build(), path)
    made = tmp_path / "made"
    assert make_bundle(path, TARGET, made, candidates=40) == 1
    [subprogram] = json.loads((made / "manifest.json").read_text())["subprograms"]
    kernels = {op["microKernel"] for plan in subprogram["plans"] for op in _ops(plan["plan"])}
    assert {"mma_sync-16x8", "wgmma-64x8"} <= kernels


def _ops(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kernel in plan["kernels"]:
        for part in kernel["groups"]:
            yield from part["ops"]


def test_plans_that_do_not_run_are_no_candidates(folder: Path, tmp_path: Path) -> None:
    old = FakeCuda(capability=(8, 0))
    results = tmp_path / "results.json"
    assert on_gpu.main([str(folder), "--output", str(results)], library=old) == 0
    [subprogram] = json.loads(results.read_text())["subprograms"]
    assert all("unsupported .target" in plan["problem"] for plan in subprogram["plans"])
    with Database(tmp_path / "tuned.db") as kept:
        assert take_results(results, kept) == 0


def test_a_plan_that_breaks_the_gpu_takes_no_other_with_it(folder: Path, tmp_path: Path) -> None:
    [subprogram] = json.loads((folder / "manifest.json").read_text())["subprograms"]
    blocks = [plan["launches"]["launches"][0]["workgroups"] for plan in subprogram["plans"]]
    results = tmp_path / "results.json"
    assert on_gpu.main([str(folder), "--output", str(results)], library=FaultyCuda(blocks[0])) == 0
    [measured] = json.loads(results.read_text())["subprograms"]
    assert 0 < blocks.count(blocks[0]) < len(blocks)
    for own, plan in zip(blocks, measured["plans"], strict=True):
        assert ("problem" in plan) == (own == blocks[0])
        assert ("seconds" in plan) == (own != blocks[0])


def test_without_a_driver_it_says_so(folder: Path, tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    command = [sys.executable, str(folder / "run.py")]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no NVIDIA driver is installed") and done.stderr.count("\n") == 1


def test_what_cannot_be_bundled_or_imported_is_refused(model: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(tilewright.TuningError, match="is not a GPU"):
        make_bundle(model, "x86-64-avx2", tmp_path / "new")
    with pytest.raises(tilewright.OutputError, match="is not empty"):
        make_bundle(model, TARGET, folder)
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(tilewright.OutputError, match="cannot be made"):
        make_bundle(model, TARGET, tmp_path / "other.json")
    with (
        Database(tmp_path / "tuned.db") as kept,
        pytest.raises(tilewright.TuningError, match="not the results of a tuning bundle"),
    ):
        take_results(tmp_path / "other.json", kept)


def test_the_later_results_stay(folder: Path, tmp_path: Path) -> None:
    results = results_of(folder, tmp_path)
    earlier = {**json.loads(results.read_text()), "measured_at": "2001-01-01T00:00:00+00:00"}
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    with Database(tmp_path / "tuned.db") as kept:
        assert take_results(results, kept) == 1
        assert take_results(tmp_path / "earlier.json", kept) == 0
        assert not kept.decisions()[0].measured_at.startswith("2001")


def test_results_with_no_place_are_refused_at_once(folder: Path, tmp_path: Path) -> None:
    assert on_gpu.main([str(folder), "--output", str(tmp_path / "none" / "r.json")], library=FakeCuda()) == 2


@pytest.mark.parametrize("arguments", [["--entry", "f"], ["--jobs", "2"]])
def test_options_of_this_machine_do_not_go_with_a_bundle(
    arguments: list[str], model: Path, tmp_path: Path
) -> None:
    command = ["tune", str(model), "--target", TARGET, "--bundle", str(tmp_path / "new"), *arguments]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 2 and "cannot be combined with --bundle" in done.output


def test_buffers_hold_numbers_that_harm_nobody() -> None:
    fake = FakeCuda()
    cuda = Cuda(fake)
    floats = on_gpu._filled({"element": "f16", "shape": [3]}, 6, cuda).read(np.empty(3, np.float16))
    places = on_gpu._filled({"element": "i64", "shape": [3]}, 24, cuda).read(np.empty(3, np.int64))
    assert (floats > 0).all() and (floats < 2).all() and not places.any()
