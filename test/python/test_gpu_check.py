"""The GPU check on a machine without a GPU: the bundle's content, and a run on a fake driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fake_cuda import LAUNCH_SECONDS, FakeCuda
from tilewright.errors import ProgramError
from tilewright.runtime.cuda import Cuda, CudaError

from benchmarks.client import PeerError
from benchmarks.gpu_check import bundle, start
from benchmarks.gpu_check.ahead import compile_ahead
from benchmarks.gpu_check.attention import Attention, recognize
from benchmarks.gpu_check.bundle import BundleError, main, make_bundle
from benchmarks.gpu_check.case import Case, build_model
from benchmarks.gpu_check.prepare import prepare_all
from benchmarks.gpu_check.report import Row, to_json, to_markdown
from benchmarks.gpu_check.run import Check, Options
from benchmarks.gpu_check.run import main as run
from benchmarks.gpu_check.sketch import norm, relative_error, sketch
from benchmarks.gpu_check.worker import OURS_BARE, OURS_IREE, TORCH
from benchmarks.peers import UnsupportedError

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
    with pytest.raises(ProgramError, match="no CUDA device can be used"):
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


def test_a_wheel_is_for_its_python() -> None:
    here, older = f"cp3{sys.version_info[1]}", f"cp3{sys.version_info[1] - 1}"
    assert start._runs_here("py3", "none")
    assert start._runs_here(here, here)
    assert start._runs_here(older, "abi3")
    assert not start._runs_here(older, older)
    assert not start._runs_here("cp399", "abi3")


def test_what_compiles_longest_has_its_turn_last(tmp_path: Path) -> None:
    entries = [{"workload": "dense", "suite": "gemm"}, {"workload": "bert", "suite": "models"}]
    options = Options(tmp_path, tmp_path / "result", 1.0, 1.0, ())
    check = Check(options, {"workloads": entries}, tmp_path, seconds=1.0)
    order = [(name, entry["workload"]) for name, entry in check._order()]
    assert order[:4] == [("kernels", "dense"), ("kernels", "bert"), ("iree", "dense"), ("iree", "bert")]
    assert order[-2:] == [("torch-max-autotune", "dense"), ("torch-max-autotune", "bert")]
    assert [workload for name, workload in order if name == "triton"] == ["dense"]
    assert len(set(order)) == len(order)


def test_attention_is_asked_of_chains_before_anything_compiles(tmp_path: Path) -> None:
    suites = {"dense": "gemm", "g1-softmax-chain": "chains", "attention": "chains", "bert": "models"}
    entries = [{"workload": name, "suite": suite} for name, suite in suites.items()]
    options = Options(tmp_path, tmp_path / "result", 1.0, 1.0, ())
    order = list(Check(options, {"workloads": entries}, tmp_path, seconds=1.0)._order())
    systems = [name for name, _ in order]
    first = systems.index("torch-sdpa")
    assert systems[first - len(entries) : first] == [TORCH] * len(entries)
    assert [entry["workload"] for name, entry in order if name == "torch-sdpa"] == [
        "g1-softmax-chain", "attention",
    ]  # fmt: skip
    assert systems[first + 2] == "triton"


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("name", "size", "is_causal", "is_grouped"),
    [
        ("g6-softmax-chain", 80, False, False),
        ("g10-softmax-chain", 64, False, False),
        ("causal-attention-12x128x64", 64, True, False),
        ("grouped-attention-8x512x64", 64, False, True),
        ("causal-grouped-attention-32x256x128", 128, True, True),
    ],
)
def test_attentions_are_recognized(
    name: str, dtype: str, size: int, *, is_causal: bool, is_grouped: bool
) -> None:
    found = recognize(build_model(name, dtype))
    assert found == Attention(scale=found.scale, is_causal=is_causal, is_grouped=is_grouped)
    assert found.scale == pytest.approx(size**-0.5, rel=1e-6 if dtype == "f32" else 4e-3)


@pytest.mark.parametrize("name", ["g6-chain", "dense-512x768x2", "masked-softmax-77x77x5", "bert-small"])
def test_what_is_no_attention_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="not one attention"):
        recognize(build_model(name, "f16"))


def test_an_attention_with_anything_else_in_it_is_refused() -> None:
    """With another mask, softmax axis or operand, functions for attention would compute something else."""
    masked, turned, swapped = (build_model("causal-attention-12x128x64", "f16") for _ in range(3))
    [mask] = (tensor for tensor in masked.graph.initializer if tensor.name.startswith("causal_mask"))
    mask.raw_data = bytes(len(mask.raw_data))
    [softmax] = (node for node in turned.graph.node if node.op_type == "Softmax")
    softmax.attribute[0].i = -2
    swapped.graph.node[-1].input[1] = "key"
    for model in (masked, turned, swapped):
        with pytest.raises(UnsupportedError, match="not one attention"):
            recognize(model)


def report_of(times: dict[tuple[str, str, str], dict[str, tuple[float, float]]]) -> dict[str, Any]:
    """Returns a report on invented times: for suite, workload and dtype, each system's kernel and call microseconds."""
    entries = [
        {
            "suite": suite, "workload": workload, "dtype": dtype, "compulsory_bytes": 1, "predicted_s": 1e-6,
            "kernels": [], "is_all_ours": workload != "bert",
        }
        for suite, workload, dtype in times
    ]  # fmt: skip
    rows = [
        Row(workload=workload, dtype=dtype, system=system, status="ok", kernel_s=k * 1e-6 or None, call_s=c * 1e-6)
        for (_, workload, dtype), systems in times.items()
        for system, (k, c) in systems.items()
    ]  # fmt: skip
    manifest = {"workloads": entries, "target": "cuda:h200", "revision": "0", "bundled": "now"}
    return to_json(rows, manifest, gpu={}, versions={}, date="now")


def test_means_are_by_suite_and_peer() -> None:
    report = report_of(
        {
            ("chains", "g1-chain", "f32"): {
                OURS_BARE: (2, 9), OURS_IREE: (0, 30), TORCH: (4, 10), "jax": (0, 60),
            },
            ("chains", "g1-chain", "f16"): {OURS_BARE: (8, 9), OURS_IREE: (0, 20), TORCH: (1, 5)},
            ("chains", "g2-chain", "f16"): {OURS_BARE: (8, 9)},
            ("models", "bert", "f16"): {OURS_BARE: (1, 9), OURS_IREE: (0, 20), TORCH: (1, 10)},
        }
    )  # fmt: skip
    means = report["summary"]["by_suite"]
    assert means["chains"].keys() == {TORCH, "jax"}
    assert means["chains"][TORCH] == pytest.approx(
        {"kernels": 2.0, "kernels_over": 2, "calls": 12**0.5, "calls_over": 2}
    )
    assert means["chains"]["jax"] == {"kernels": None, "kernels_over": 0, "calls": 0.5, "calls_over": 1}
    # If IREE computes a part, our kernels are not the workload, but the call is.
    assert means["models"][TORCH] == {"kernels": None, "kernels_over": 0, "calls": 2.0, "calls_over": 1}
    page = to_markdown(report)
    assert "| suite | torch | jax |" in page
    assert "| chains, kernels | 2.00 (2) |  |" in page
    assert "| chains, calls | 3.46 (2) | 0.50 (1) |" in page
    assert page.index("| chains, calls |") < page.index("| g1-chain f32 |")
    assert "by suite" not in page


def test_large_matmuls_are_held_to_the_speed_of_cublas_and_flat_ones_apart() -> None:
    report = report_of(
        {
            ("gemm-square", "dense-1024x1024x1024", "f16"): {OURS_BARE: (10, 1), TORCH: (9, 1)},
            ("gemm-square", "matmul-4096x4096x4096", "f16"): {OURS_BARE: (10, 1), TORCH: (8, 1)},
            ("gemm-square", "matmul-2048x2048x2048", "bf16"): {OURS_BARE: (10, 1), TORCH: (1, 1)},
            ("gemm", "dense-128x4096x4096", "f16"): {OURS_BARE: (10, 1), TORCH: (2, 1)},
            ("gemm", "dense-16x4096x11008", "f32"): {OURS_BARE: (10, 1), TORCH: (5, 1)},
            ("gemm", "matmul-1x768x768", "f16"): {OURS_BARE: (10, 1), TORCH: (20, 1), "triton": (1, 1)},
        }
    )
    summary = report["summary"]
    assert summary["least_share_of_cublas_speed_f16_from_1024"] == pytest.approx(0.8)
    assert summary["mean_ratio_to_cublas_up_to_16_rows"] == pytest.approx(1.0)
    assert summary["worst_ratio_to_cublas_up_to_16_rows"] == pytest.approx(2.0)


def test_without_peers_there_are_no_means() -> None:
    report = report_of({("gemm", "matmul-1x768x768", "f16"): {OURS_BARE: (10, 1)}})
    assert report["summary"]["by_suite"] == {"gemm": {}}
    assert report["summary"]["worst_ratio_to_cublas_up_to_16_rows"] is None
    assert "No peer was timed." in to_markdown(report)


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


def test_contractions_in_f16_count_most() -> None:
    names = [("softmax", "stitch", "f32"), ("dense", "gemm", "f32"), ("bert", "models", "f32")]
    names += [("softmax", "stitch", "bf16"), ("dense", "gemm", "f16"), ("bert", "models", "f16")]
    entries = [{"workload": name, "suite": suite, "dtype": dtype} for name, suite, dtype in names]
    order = [(entry["workload"], entry["dtype"]) for entry in sorted(entries, key=bundle._urgency)]
    assert order == [
        ("bert", "f16"), ("dense", "f16"), ("softmax", "f32"),
        ("bert", "f32"), ("dense", "f32"), ("softmax", "bf16"),
    ]  # fmt: skip


def test_out_of_time_is_said(folder: Path, manifest: dict[str, Any], tmp_path: Path) -> None:
    options = Options(folder, tmp_path / "result", 0.0, 1.0, (OURS_IREE,))
    rows = Check(options, manifest, tmp_path, seconds=0.0).run()["rows"]
    assert {row["status"] for row in rows} == {"no time"}


@pytest.mark.parametrize("scale", [0.0, 1e-5, 1e-2])
@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16])
def test_a_sketch_tells_how_far_a_result_is(scale: float, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    expected = rng.standard_normal((77, 321)).astype(dtype).astype(np.float64)
    noise = rng.standard_normal(expected.shape) * scale
    found = relative_error(expected + noise, sketch(expected), norm(expected))
    assert found == pytest.approx(norm(noise) / norm(expected), rel=0.15)


def test_a_sketch_tells_one_wrong_row_and_what_is_no_number() -> None:
    expected = np.random.default_rng(1).standard_normal((512, 768))
    swapped = expected.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    true = norm(swapped - expected) / norm(expected)
    assert relative_error(swapped, sketch(expected), norm(expected)) == pytest.approx(true, rel=0.2)
    swapped[0, 0] = np.nan
    assert relative_error(swapped, sketch(expected), norm(expected)) == np.inf


def test_ptx_of_a_newer_gpu_is_refused_with_the_drivers_words() -> None:
    cuda = Cuda(FakeCuda(capability=(8, 0)))
    with pytest.raises(CudaError, match=r"CUDA_ERROR_INVALID_IMAGE: unsupported \.target"):
        cuda.load(b".version 8.0\n.target sm_90\n")


def test_no_driver_is_a_clear_error() -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    with pytest.raises(ProgramError, match=r"no NVIDIA driver is installed"):
        Cuda()


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
