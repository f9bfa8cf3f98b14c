"""Targets whose micro kernels differ, and checks that kernels of ours ran."""

from __future__ import annotations

import pytest
import tilewright
from tilewright.runtime.processor import missing_features

TARGETS = [
    "cpu",
    "x86-64-v2",
    "x86-64-avx2",
    "x86-64-avx512",
    "x86-64-avx512bf16",
    "x86-64-avx512bf16,x86-64-avx2,x86-64-v2",
]


def skip_unless_here(target: str) -> None:
    narrowest = target.split(",")[-1]
    if missing := missing_features(tilewright.Target.lookup(narrowest).features):
        pytest.skip(f"this machine has no {missing[0]}")


def check_ours(program: tilewright.Program) -> None:
    left = [op.op for op in program.metadata.report.left_to_iree if "matmul" in op.op]
    assert not left, left
    assert any(op.micro_kernel for kernel in program.kernels for op in kernel.ops)
