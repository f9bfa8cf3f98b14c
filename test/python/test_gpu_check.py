"""The GPU check on a machine without a GPU: a bundle's content, and a run of it on a fake driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fake_cuda import LAUNCH_SECONDS
from tilewright.errors import ProgramError

from benchmarks.client import PeerError
from benchmarks.gpu_check import bundle
from benchmarks.gpu_check.ahead import compile_ahead
from benchmarks.gpu_check.bundle import BundleError, main, make_bundle
from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.prepare import prepare_all
from benchmarks.gpu_check.run import Check, Options
from benchmarks.gpu_check.run import main as run
from benchmarks.gpu_check.worker import OURS_BARE, OURS_IREE, TORCH

NAMES = [
    ("rms-norm-1x4096", "bf16"),
    ("batch-statistics-129x77", "f32"),
    ("bert-small", "f32"),
    ("dense-512x768x2", "f16"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheels = tmp_path_factory.mktemp("wheels")
    (wheels / "iree_base_runtime-3.13.0-cp312-abi3-manylinux_2_28_x86_64.whl").write_bytes(b"")
    made = tmp_path_factory.mktemp("bundle") / "made"
    make_bundle(made, target="cuda:h200", names=NAMES, wheels=wheels, jobs=1)
    return made


@pytest.fixture(scope="module")
def manifest(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return read


def check(folder: Path, manifest: dict[str, Any], output: Path, **systems: str) -> dict[str, Any]:
    names = {name.replace("_", "-"): reference for name, reference in systems.items()}
    with zipfile.ZipFile(folder / "programs.zip") as archive:
        archive.extractall(output)
    options = Options(folder, output / "result", 300.0, 120.0, tuple(names), references=names)
    return Check(options, manifest, output, seconds=300.0).run()


def only(manifest: dict[str, Any], *names: str) -> dict[str, Any]:
    return {**manifest, "workloads": [w for w in manifest["workloads"] if w["workload"] in names]}


def test_a_bundle_has_all_that_is_needed_there(folder: Path, manifest: dict[str, Any]) -> None:
    assert [w["workload"] for w in manifest["workloads"]] == [
        "dense-512x768x2", "batch-statistics-129x77", "bert-small", "rms-norm-1x4096",
    ]  # fmt: skip
    with zipfile.ZipFile(folder / "programs.zip") as archive:
        held = set(archive.namelist())
    for entry in manifest["workloads"]:
        for name in ("model.vmfb", "kernels.ptx", "launches.json", "program.json", "recipes.json"):
            assert f"{entry['folder']}/{name}" in held
        assert entry["predicted_s"] > 0
    assert not any(name.endswith(".irpa") for name in held)
    assert not list(folder.rglob("_native*"))
    assert (folder / "run.py").is_file()


def test_our_part_of_a_bundle_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 3e6


def test_kernels_are_checked_and_timed(folder: Path, manifest: dict[str, Any], tmp_path: Path) -> None:
    report = check(folder, manifest, tmp_path, kernels="fake_cuda:SimulatedKernels")
    assert report["gpu"]["gpu"] == "a simulated GPU"
    assert report["gpu"]["copy_gb_per_s"] > 0
    by_name = {w["workload"]: w for w in report["workloads"]}
    for name in ("rms-norm-1x4096", "batch-statistics-129x77", "dense-512x768x2"):
        assert by_name[name]["status"] == {OURS_BARE: "ok"}
        assert by_name[name]["errors"][OURS_BARE] < 0.1
        launches = len(by_name[name]["kernels"])
        assert by_name[name]["kernel_s"][OURS_BARE] == pytest.approx(launches * LAUNCH_SECONDS, rel=1e-3)
        assert by_name[name]["measured_over_predicted"] > 0
    # If IREE computes a part, our kernels are timed, and nothing is compared.
    model = by_name["bert-small"]
    is_all_ours = next(w for w in manifest["workloads"] if w["workload"] == "bert-small")["is_all_ours"]
    assert model["status"] == {OURS_BARE: "ok"}
    assert bool(model["errors"]) == is_all_ours
    assert (model["measured_over_predicted"] is not None) == is_all_ours
    assert all(kernel["measured_s"] > 0 for kernel in model["kernels"])
    page = (tmp_path / "result.md").read_text()
    assert "batch-statistics-129x77 f32" in page
    assert json.loads((tmp_path / "result.json").read_text())["workloads"] == report["workloads"]


def test_wrong_kernels_are_found(folder: Path, manifest: dict[str, Any], tmp_path: Path) -> None:
    report = check(folder, only(manifest, "rms-norm-1x4096"), tmp_path, kernels="fake_cuda:IdleKernels")
    assert [row["status"] for row in report["rows"]] == ["wrong"]


def run_programs(
    folder: Path, output: Path, monkeypatch: pytest.MonkeyPatch, system: str, *arguments: str
) -> tuple[int, str]:
    """Runs the command with a fake for whole programs; returns its exit status and the page."""
    monkeypatch.setattr("benchmarks.gpu_check.run.open_driver", lambda: None)
    monkeypatch.setattr("benchmarks.gpu_check.run.SYSTEMS", {OURS_IREE: f"fake_cuda:{system}"})
    status = run([str(folder), "--output", str(output / "found"), *arguments])
    return status, (output / "found.md").read_text()


def test_right_programs_pass(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, page = run_programs(folder, tmp_path, monkeypatch, "Oracle")
    assert status == 0
    assert f"Whole programs: {len(NAMES)} right, 0 wrong, 0 not checked." in page


def test_a_wrong_program_fails_the_check(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kernel may be right by itself, but the parts that IREE computes are compared with float64, too."""
    status, page = run_programs(folder, tmp_path, monkeypatch, "WrongOracle")
    assert status == 1
    assert "**WRONG** (relative error): dense-512x768x2 f16 (5.0e-01)" in page and "bert-small f32 (" in page
    assert "WRONG as a whole program: bert-small f32" in capsys.readouterr().err
    report = json.loads((tmp_path / "found.json").read_text())
    assert len(report["programs"]["wrong"]) == len(NAMES)


def test_a_program_that_does_not_load_fails_the_check(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, page = run_programs(folder, tmp_path, monkeypatch, "FailingOracle")
    assert status == 1
    assert "Not checked: " in page and "cannot be loaded" in page


def test_a_program_without_its_turn_fails_the_check(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, page = run_programs(folder, tmp_path, monkeypatch, "Oracle", "--seconds", "0")
    assert status == 1
    assert f"Whole programs: 0 right, 0 wrong, {len(NAMES)} not checked." in page


def test_after_a_crash_the_next_workload_has_its_turn(
    folder: Path, manifest: dict[str, Any], tmp_path: Path
) -> None:
    two = only(manifest, "rms-norm-1x4096", "batch-statistics-129x77")
    report = check(folder, two, tmp_path, kernels="fake_cuda:DyingKernels")
    assert [row["status"] for row in report["rows"]] == ["crashed"] * 2
    assert "exit status 3" in report["rows"][0]["reason"]


def test_without_a_gpu_everything_says_why(folder: Path, manifest: dict[str, Any], tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    report = check(
        folder,
        manifest,
        tmp_path,
        iree="benchmarks.gpu_check.through_iree:ThroughIree",
        torch="benchmarks.gpu_check.through_torch:TorchEager",
    )
    rows = {row["system"]: row for row in report["rows"]}
    assert rows[OURS_IREE]["status"] == "failed" and "no NVIDIA driver" in rows[OURS_IREE]["reason"]
    assert rows[TORCH]["status"] == "not installed"


def test_programs_of_a_bundle_are_for_the_runtime(
    folder: Path, manifest: dict[str, Any], tmp_path: Path
) -> None:
    """The programs run with newly drawn weights and only lack a GPU."""
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with zipfile.ZipFile(folder / "programs.zip") as archive:
        archive.extractall(tmp_path)
    [entry] = only(manifest, "bert-small")["workloads"]
    case = Case(tmp_path / entry["folder"], entry)
    assert case.program.signature is not None
    assert len(case.program.parameter_paths) == 1
    with pytest.raises(ProgramError, match=r"no CUDA device can be used|no NVIDIA driver is installed"):
        case.program(*case.inputs)


def test_what_was_drawn_is_kept_for_the_next(
    folder: Path, manifest: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with zipfile.ZipFile(folder / "programs.zip") as archive:
        archive.extractall(tmp_path)
    entries = only(manifest, "bert-small", "rms-norm-1x4096")["workloads"]
    failures = sorted(prepare_all(tmp_path, entries, seconds=120.0))
    assert [f.partition(":")[0] for f in failures] == ["bert-small-f32", "rms-norm-1x4096-bf16"]
    assert all("no NVIDIA driver" in failure for failure in failures)
    monkeypatch.setattr("benchmarks.gpu_check.case.build_model", None)
    case = Case(tmp_path / entries[0]["folder"], entries[0])
    assert case.program.parameter_paths.keys() == case.parameters.keys()
    assert all(path.is_file() for path in case.parameters.values())
    assert case.model.graph.node


def test_a_bundle_starts_and_says_that_there_is_no_driver(folder: Path, tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    command = [sys.executable, str(folder / "run.py"), "--output", "found"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: no NVIDIA driver is installed") and done.stderr.count("\n") == 1


def test_what_runs_there_needs_no_compiler(folder: Path) -> None:
    """The bundle's own copy of the package has no native module."""
    modules = [f"benchmarks.gpu_check.{name}" for name in ("run", "worker", "bare", "through_iree")]
    command = [sys.executable, "-c", f"import {', '.join(modules)}, tilewright; print(tilewright.__file__)"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(folder)}, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(folder)


def test_what_compiles_for_long_does_so_ahead(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    class Compiler:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> Compiler:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def stop(self) -> None:
            pass

        def ask(self, request: str, *, limit: float, folder: str, entry: dict[str, Any]) -> None:
            asked.append((self.name, Path(folder).name))
            if entry["folder"] == "b":
                raise PeerError("crashed", "")

    work = [(name, {"folder": folder, "suite": "chains"}) for name in ("x", "y") for folder in "abc"]
    compile_ahead(work, processes=3, client=Compiler, folder=tmp_path, limit=lambda: 1.0)  # type: ignore[arg-type]
    assert sorted(asked) == [(name, folder) for name in ("x", "y") for folder in "abc"]


def test_out_of_time_is_said(folder: Path, manifest: dict[str, Any], tmp_path: Path) -> None:
    options = Options(folder, tmp_path / "result", 0.0, 1.0, (OURS_IREE,))
    rows = Check(options, manifest, tmp_path, seconds=0.0).run()["rows"]
    assert {row["status"] for row in rows} == {"no time"}


def test_a_bundle_is_refused_with_the_reason(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, reason in (
        ([str(tmp_path / "new"), "--workloads", "nothing*"], "no workload has such a name"),
        ([str(tmp_path / "new"), "--target", "x86-64-avx2"], "is for cpu; name a GPU"),
        ([str(folder)], "is not empty"),
        ([str(tmp_path / "new"), "--wheels", str(tmp_path)], "has no wheels"),
    ):
        assert main([*arguments, "--suites", "stitch"]) == 1
        assert reason in capsys.readouterr().err
    assert not (tmp_path / "new").exists()  # a retry has another name


def test_without_a_network_the_wheels_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setattr(bundle, "_WHEELS", {"iree-base-runtime": "3.13.0"})
    with pytest.raises(BundleError, match="is there a network"):
        make_bundle(tmp_path / "new", target="cuda:h200", names=NAMES, wheels=None, jobs=1)


def test_weights_that_differ_there_are_noticed(
    folder: Path, manifest: dict[str, Any], tmp_path: Path
) -> None:
    entries = [{**manifest["workloads"][0], "inputs_digest": "0" * 64}]
    report = check(folder, {**manifest, "workloads": entries}, tmp_path, kernels="fake_cuda:SimulatedKernels")
    assert "draws other inputs here" in report["rows"][0]["reason"]
