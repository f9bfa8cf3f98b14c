"""Tests of contractions whose micro kernels are those of warpgroups, on the simulated device."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tilewright
from assembled import check_warpgroups
from simulated_products import (
    Product,
    by_warpgroups,
    run,
)
from tilewright.errors import PlanError
from tilewright.simulator.programs import describe_launches

pytestmark = pytest.mark.lands(one_in=6)


@pytest.mark.parametrize(
    ("shape", "transposed", "element", "then"),
    [
        ((128, 128, 256), "neither", "f16", ""),
        ((128, 128, 256), "both", "bf16", "gelu"),
        ((192, 72, 136), "right", "f16", "relu"),
        ((100, 77, 190), "left", "f16", ""),
        ((64, 584, 128), "neither", "f16", ""),
    ],
    ids=["whole tiles", "both transposed", "tails", "rows that are not aligned", "steps that overlap"],
)
def test_warpgroups(
    shape: tuple[int, int, int], transposed: str, element: str, then: str, tmp_path: Path
) -> None:
    """The planner uses wgmma for large products only; a modified plan forces it for these small ones."""
    product = Product.of(shape, transposed, element=element, then=then)
    assert run(product, tmp_path, edit=by_warpgroups(64, 128)).micro_kernel == "wgmma-64x8"


@pytest.mark.parametrize(
    ("tile", "threads", "transposed"),
    [((128, 256), 256, "neither"), ((64, 256), 128, "both"), ((256, 128), 256, "right")],
    ids=["128x256", "64x256", "256x128"],
)
def test_warpgroups_with_128_sums_a_thread(
    tile: tuple[int, int], threads: int, transposed: str, tmp_path: Path
) -> None:
    """Tiles have the size that products of thousands use, and the matrix ends within the second tile."""
    product = Product.of((tile[0] + 40, 328, tile[1]), transposed, element="f16", then="gelu")
    outcome = run(product, tmp_path, edit=by_warpgroups(*tile, threads=threads))
    assert outcome.micro_kernel == "wgmma-64x8"
    check_warpgroups(tmp_path)


@pytest.mark.parametrize(
    ("wait", "instead", "fault"),
    [
        (1, "2", "unfinished: .*writes byte .*wgmma.mma_async still reads"),
        (0, "", "unfinished: .*uses accumulators"),
    ],
    ids=["of the step before", "of the last step"],
)
def test_a_missing_wait_of_warpgroups_is_found(wait: int, instead: str, fault: str, tmp_path: Path) -> None:
    """The stage of a step may be refilled, and the accumulators stored, only when the products of that step are
    complete."""
    product = Product.of((64, 584, 128), "neither", element="f16")
    run(product, tmp_path, edit=by_warpgroups(64, 128))
    flow = describe_launches(tmp_path)
    asked = "nvvm.wgmma.wait.group.sync.aligned"
    line = f"{asked} {instead}\n" if instead else "\n"
    text, count = re.subn(rf"{asked} {wait}\b.*\n", line, flow["kernels"])
    assert count == 1
    (launch,) = flow["launches"]
    report = tilewright.simulate(
        text,
        launch["kernel"],
        (launch["workgroups"],),
        [*product.inputs(), np.zeros((64, 128), np.float16)],
        target="cuda:h200",
        empty=[2],
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    assert re.match(fault, str(report.faults[0])), str(report.faults[0])


def test_a_plan_that_names_warpgroups_elsewhere_is_refused() -> None:
    product = Product.of((64, 96, 128), "neither", element="f16")
    plan = tilewright.compile(product.build(), "cuda:a100").plan
    assert plan is not None
    by_warpgroups(64, 128)(plan)
    with pytest.raises(PlanError, match=r"'wgmma-64x8'; target 'cuda:a100' has .* mma_sync-16x8"):
        tilewright.compile(product.build(), "cuda:a100", plan=plan)


def test_strict_numerics_name_and_predict_what_is_taken() -> None:
    product = Product.of((2048, 2048, 2048), "neither", element="f16").build()
    quick = tilewright.compile(product, "cuda:h200").kernels[0]
    strict = tilewright.compile(product, "cuda:h200", numerics="strict").kernels[0]
    assert any(op.micro_kernel.startswith("wgmma") for op in quick.ops)
    assert any(op.micro_kernel.startswith("fma") for op in strict.ops)
    assert strict.predicted_seconds > 4 * quick.predicted_seconds
