"""Targets of GPU programs: several in one module, and GPUs of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tilewright
from tilewright.errors import TargetError
from tilewright.records.targets import Target, resolve_targets


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
