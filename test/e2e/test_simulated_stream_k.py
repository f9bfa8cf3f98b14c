"""Tests of workgroups that share the steps of tiles (stream-K), on the simulated device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tilewright
from simulated_products import (
    Edit,
    Product,
    by_warpgroups,
    run,
)
from tilewright.runtime.tensors import LaunchTensors
from tilewright.simulator.programs import describe_launches

pytestmark = pytest.mark.lands(one_in=6)


def _shared_by(workgroups: int, *, first: Edit | None = None) -> Edit:
    """Makes this many workgroups share the steps of all tiles, whose number follows from the contraction's layout."""

    def edit(plan: tilewright.Plan) -> None:
        if first:
            first(plan)
        (part,) = (part for kernel in plan.kernels for part in kernel.groups)
        (contraction,) = (op for op in part.ops if op.micro_kernel)
        part.steps, part.workgroups = 64, workgroups
        contraction.gemm = None  # chosen with the number of steps

    return edit


@pytest.mark.parametrize(
    ("product", "edit"),
    [
        (Product.of((64, 512, 96), "neither", element="f32"), _shared_by(5)),
        (Product.of((64, 512, 96), "neither", element="f16", then="gelu"), _shared_by(7)),
        (Product.of((37, 511, 53), "right", element="bf16", then="relu"), _shared_by(11)),
        (Product.of((5, 515, 64), "neither", element="f32"), _shared_by(9)),
        (Product.of((1, 1024, 64), "right", element="f16", then="relu"), _shared_by(3)),
        (
            Product.of((128, 584, 256), "neither", element="f16", then="gelu"),
            _shared_by(5, first=by_warpgroups(64, 128)),
        ),
        (
            Product.of((100, 777, 190), "left", element="f16"),
            _shared_by(23, first=by_warpgroups(64, 128)),
        ),
        (
            Product.of((296, 328, 256), "neither", element="bf16", then="gelu"),
            _shared_by(5, first=by_warpgroups(128, 256, threads=256)),
        ),
    ],
    ids=lambda value: f"{value.left} {value.right} {value.element}" if isinstance(value, Product) else "",
)
def test_workgroups_share_tiles(product: Product, edit: Edit, tmp_path: Path) -> None:
    """This is stream-K: a workgroup that adds to a tile begun by another one uses a buffer."""
    assert run(product, tmp_path, edit=edit).report.grid_barriers == 1


def test_sharing_tiles_is_chosen_where_waves_are_not_full() -> None:
    """288 tiles are three waves of 132 blocks, and the last wave is nearly empty."""
    model = Product(left=(3072, 3072), right=(3072, 3072), element="f16").build()
    program = tilewright.compile(model, "cuda:h200")
    assert "132 workgroups of 256 threads, which share the 48 steps of each tile" in program.explain()
    apart = tilewright.compile(model, "cuda:h200", grid_sync=False)
    assert "which share" not in apart.explain()
    assert program.kernels[0].predicted_seconds < 0.9 * apart.kernels[0].predicted_seconds


@pytest.mark.parametrize(
    ("steps", "workgroups", "grid_sync", "said"),
    [
        (-1, 4, True, "a tile has -1 steps"),
        (2, 1000, True, "1000 workgroups for "),
        (64, 5, False, "takes a barrier of the grid: that is forbidden"),
    ],
)
def test_sharing_that_cannot_be_is_refused(
    steps: int, workgroups: int, *, grid_sync: bool, said: str
) -> None:
    model = Product(left=(64, 512), right=(512, 96), element="f16").build()
    plan = tilewright.compile(model, "cuda:h200").plan
    assert plan is not None
    (part,) = plan.kernels[0].groups
    part.steps, part.workgroups = steps, workgroups
    for op in part.ops:
        op.gemm = None  # chosen with the number of steps
    with pytest.raises(tilewright.PlanError, match=said):
        tilewright.compile(model, "cuda:h200", plan=plan, grid_sync=grid_sync)


def test_a_missing_barrier_between_those_who_share_a_tile_is_found(tmp_path: Path) -> None:
    product = Product.of((64, 512, 96), "neither", element="f32")
    run(product, tmp_path, edit=_shared_by(5))
    flow = describe_launches(tmp_path)
    text, count = re.subn(r"llvm.call @tile_grid_barrier\(.*\n", "\n", flow["kernels"])
    assert count == 1
    (launch,) = flow["launches"]
    tensors = LaunchTensors(flow["tensors"], product.inputs(), {})
    report = tilewright.simulate(
        text,
        launch["kernel"],
        (launch["workgroups"],),
        [*product.inputs(), *(tensors.new(number) for number in launch["outputs"])],
        target="cuda:h200",
        empty=[2, 3],
        dynamic_shared_bytes=launch["dynamic_shared_bytes"],
    )
    assert re.match("race|never-written", str(report.faults[0])), str(report.faults[0])
