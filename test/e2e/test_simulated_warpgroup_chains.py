"""Tests of several contractions by warpgroups (wgmma) in one kernel, on the simulated device.

A contraction reads from registers the lhs that the one before left in shared memory. The planner uses wgmma if
arithmetic bounds a kernel, as in long attentions on a whole GPU; the tests use a slice with four SMs, for which short
ones suffice.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import onnx
import pytest
import tilewright
from assembled import check_warpgroups
from tilewright.reference.oracle import float64_reference, model_tolerance, random_inputs, relative_error
from tilewright.runtime.tensors import LaunchTensors
from tilewright.simulator.device import SECTOR_BYTES
from tilewright.simulator.programs import describe_launches, simulate_program

from benchmarks.workloads import Workload, contractions
from benchmarks.workloads.contractions import AttentionOptions, ChainOptions

pytestmark = pytest.mark.lands(one_in=3)

_WHOLE = ChainOptions(batch=2, m=256, n=64, k=64, l=512)
_CUT = ChainOptions(batch=2, m=232, n=72, k=56, l=400)
_CAUSAL = AttentionOptions(heads=4, key_value_heads=4, sequence=256, head_size=64, is_causal=True)
_GROUPED = AttentionOptions(heads=8, key_value_heads=2, sequence=256, head_size=64, is_causal=False)
_LARGE = AttentionOptions(heads=4, key_value_heads=1, sequence=256, head_size=128, is_causal=True)
_LARGEST = AttentionOptions(heads=2, key_value_heads=1, sequence=256, head_size=256, is_causal=True)

_WORKLOADS = {
    "matmul, matmul": partial(contractions.gemm_chain, _WHOLE),
    "softmax between": partial(contractions.softmax_chain, _WHOLE),
    "softmax between, tiles that are cut": partial(contractions.softmax_chain, _CUT),
    "causal attention": partial(contractions.attention, _CAUSAL),
    "grouped attention": partial(contractions.attention, _GROUPED),
    "heads of 128": partial(contractions.attention, _LARGE),
    "heads of 256": partial(contractions.attention, _LARGEST),
}


def _slice() -> tilewright.Target:
    whole = tilewright.Target.lookup("cuda:h200")
    cores = 4
    return replace(
        whole,
        name="cuda:h200-slice",
        cores=cores,
        flops_per_second=whole.flops_per_second * cores / whole.cores,
        gpu=replace(whole.gpu, guaranteed_sms=cores),
    )


def _model(name: str, dtype: str) -> onnx.ModelProto:
    return Workload(name=name, build=_WORKLOADS[name], description="", suite="chains").in_type(dtype).build()


def _compile(name: str, dtype: str, folder: Path) -> tilewright.Program:
    program = tilewright.compile(_model(name, dtype), _slice(), dump_dir=folder)
    (kernel,) = program.kernels
    assert {op.micro_kernel for op in kernel.ops if op.micro_kernel} == {"wgmma-64x8"}
    return program


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", _WORKLOADS)
def test_chains_of_warpgroups(name: str, dtype: str, tmp_path: Path) -> None:
    program = _compile(name, dtype, tmp_path)
    model = _model(name, dtype)
    inputs = random_inputs(model, 0)
    ran = simulate_program(program, tmp_path, inputs)
    assert ran.outputs is not None
    for output, expected in zip(ran.outputs, float64_reference(model, inputs), strict=True):
        assert relative_error(output, expected) <= model_tolerance(model)
    (report,) = ran.kernels
    (kernel,) = program.kernels
    assert report.main_loop_conflicts == 0
    moved = SECTOR_BYTES * (report.global_reads.sectors + report.global_writes.sectors)
    assert 0.95 * kernel.l2_traffic_bytes <= moved <= 1.05 * kernel.l2_traffic_bytes


@pytest.mark.parametrize("name", ["softmax between, tiles that are cut", "heads of 128"])
def test_left_factors_come_from_registers(name: str, tmp_path: Path) -> None:
    _compile(name, "f16", tmp_path)
    products = re.findall(r"wgmma\.mma_async\S+ \{[^}]*\}, (.)", (tmp_path / "kernels.ptx").read_text())
    assert products.count("{") > 0, "of the second contraction"
    assert products.count("%") > 0, "of the first one descriptors say both factors"
    check_warpgroups(tmp_path)


def test_a_missing_wait_between_contractions_is_found(tmp_path: Path) -> None:
    """A softmax uses the scores as soon as they are complete."""
    _compile("softmax between", "f16", tmp_path)
    flow = describe_launches(tmp_path)
    text, count = re.subn(r"nvvm\.wgmma\.wait\.group\.sync\.aligned 0\b.*\n", "\n", flow["kernels"], count=1)
    assert count == 1
    (launch,) = flow["launches"]
    inputs = random_inputs(_model("softmax between", "f16"), 0)
    tensors = LaunchTensors(flow["tensors"], inputs, {})
    report = tilewright.simulate(
        text,
        launch["kernel"],
        (launch["workgroups"],),
        [*(tensors.get(number) for number in launch["inputs"]), *(tensors.new(n) for n in launch["outputs"])],
        target="cuda:h200",
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    (fault,) = report.faults
    assert re.match("unfinished: .*uses accumulators", str(fault)), str(fault)
