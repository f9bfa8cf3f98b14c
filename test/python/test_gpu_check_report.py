"""The report of a GPU check: means by suite and peer, and the goals that they are held to."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.gpu_check.report import Row, to_json, to_markdown
from benchmarks.gpu_check.worker import OURS_BARE, OURS_IREE, TORCH


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
