"""The order of a GPU check: most important results first, and compilers that take long at the end."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gpu_check import bundle
from benchmarks.gpu_check.run import Check, Options
from benchmarks.gpu_check.worker import TORCH


def test_what_compiles_longest_has_its_turn_last(tmp_path: Path) -> None:
    entries = [
        {"workload": "dense", "suite": "gemm", "is_all_ours": True},
        {"workload": "bert", "suite": "models", "is_all_ours": True},
    ]
    options = Options(tmp_path, tmp_path / "result", 1.0, 1.0, ())
    check = Check(options, {"workloads": entries}, tmp_path, seconds=1.0)
    order = [(name, entry["workload"]) for name, entry in check._order()]
    assert order[:4] == [("kernels", "dense"), ("kernels", "bert"), ("direct", "dense"), ("direct", "bert")]
    assert order[-2:] == [("torch-max-autotune", "dense"), ("torch-max-autotune", "bert")]
    assert [workload for name, workload in order if name == "triton"] == ["dense"]
    assert len(set(order)) == len(order)


def test_iree_begins_with_what_only_it_runs(tmp_path: Path) -> None:
    entries = [
        {"workload": name, "suite": "models", "is_all_ours": name != "topk"} for name in ("bert", "topk")
    ]
    options = Options(tmp_path, tmp_path / "result", 1.0, 1.0, ())
    order = Check(options, {"workloads": entries}, tmp_path, seconds=1.0)._order()
    assert [entry["workload"] for name, entry in order if name == "iree"] == ["topk", "bert"]


def test_attention_is_asked_of_chains_before_anything_compiles(tmp_path: Path) -> None:
    suites = {"dense": "gemm", "g1-softmax-chain": "chains", "attention": "chains", "bert": "models"}
    entries = [{"workload": name, "suite": suite, "is_all_ours": True} for name, suite in suites.items()]
    options = Options(tmp_path, tmp_path / "result", 1.0, 1.0, ())
    order = list(Check(options, {"workloads": entries}, tmp_path, seconds=1.0)._order())
    systems = [name for name, _ in order]
    first = systems.index("torch-sdpa")
    assert systems[first - len(entries) : first] == [TORCH] * len(entries)
    assert [entry["workload"] for name, entry in order if name == "torch-sdpa"] == [
        "g1-softmax-chain", "attention",
    ]  # fmt: skip
    assert systems[first + 2] == "triton"


def test_contractions_in_f16_count_most() -> None:
    names = [("softmax", "stitch", "f32"), ("dense", "gemm", "f32"), ("bert", "models", "f32")]
    names += [("softmax", "stitch", "bf16"), ("dense", "gemm", "f16"), ("bert", "models", "f16")]
    entries = [{"workload": name, "suite": suite, "dtype": dtype} for name, suite, dtype in names]
    order = [(entry["workload"], entry["dtype"]) for entry in sorted(entries, key=bundle._urgency)]
    assert order == [
        ("bert", "f16"), ("dense", "f16"), ("softmax", "f32"),
        ("bert", "f32"), ("dense", "f32"), ("softmax", "bf16"),
    ]  # fmt: skip
