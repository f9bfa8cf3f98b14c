"""Grid scope for reductions with few results on GPUs: when it is chosen, what forbidding it costs, and what is
refused."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil, prod

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import helper, numpy_helper
from tilewright.errors import PlanError

from benchmarks.workloads.narrow import to_narrow
from benchmarks.workloads.transformers import BertOptions, bert

TARGET = "cuda:h200"


def long_rows(count: int, length: int) -> onnx.ModelProto:
    nodes = [axes(1), helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)]
    return make_model(nodes, [value("x", [count, length])], [value("y", [count])])


def one_long_row() -> onnx.ModelProto:
    return long_rows(1, 50_000_000)


def batch_statistics() -> onnx.ModelProto:
    """Returns mean and variance of every channel."""
    nodes = [
        axes(0, 1, 2),
        helper.make_node("ReduceMean", ["x", "axes"], ["m"], keepdims=1),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["s"]),
        helper.make_node("ReduceMean", ["s", "axes"], ["v"], keepdims=1),
    ]
    outputs = [value("m", [1, 1, 1, 64]), value("v", [1, 1, 1, 64])]
    return make_model(nodes, [value("x", [32, 56, 56, 64])], outputs)


def axes(*dims: int) -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["axes"], value=numpy_helper.from_array(np.array(dims)))


MODELS = {"one row of 50 M elements": one_long_row, "batch statistics": batch_statistics}


@pytest.mark.parametrize("name", MODELS)
def test_few_results_choose_grid_scope_and_forbidding_it_costs_time(name: str) -> None:
    model = MODELS[name]()
    joined = tilewright.compile(model, target=TARGET, strict=True)
    (kernel,) = (own for own in joined.kernels if "grid" in {edge.scope for edge in own.edges})
    assert max(part.phase for part in kernel.groups) >= 1
    assert kernel.workgroups >= 100
    code = joined.module_path.read_bytes()
    assert b"_grid_counter" in code
    assert b".minnctapersm" in code
    apart = tilewright.compile(model, target=TARGET, strict=True, grid_sync=False)
    assert len(apart.kernels) > len(joined.kernels)
    assert b"_grid_counter" not in apart.module_path.read_bytes()
    assert _seconds(apart) > _seconds(joined)
    reasons = [edge.reason for edge in apart.metadata.report.edges_at_launch]
    assert "scope launch and not grid: grid scope is forbidden" in reasons


def _seconds(program: tilewright.Program) -> float:
    return sum(kernel.predicted_seconds for kernel in program.kernels)


def test_the_form_is_declared() -> None:
    text = tilewright.compile(one_long_row(), target=TARGET).explain()
    assert "two-phase reduction instead of the model's algebra" in text
    assert re.search(r"two-phase reduction taken, .*\([\d.]+ us predicted, otherwise [\d.]+ us\)", text)
    assert "at grid" in text


def test_strict_numerics_keep_one_phase() -> None:
    program = tilewright.compile(one_long_row(), target=TARGET, numerics="strict")
    assert all(op.numerics.form == "as-is" for kernel in program.kernels for op in kernel.ops)


def test_a_plan_whose_blocks_cannot_all_be_resident_is_refused() -> None:
    model = long_rows(16, 3_000_000)
    plan = tilewright.compile(model, target=TARGET).plan
    assert plan is not None
    parts = plan.kernels[0].groups
    rows, pieces, _ = parts[0].extents
    tiles = [1, 1, parts[0].tiles[2]]
    parts[0] = replace(parts[0], tiles=tiles, workgroups=rows * pieces, threads=1024, group=1024)
    plan.kernels[0].resident_blocks = None  # it follows from the others
    with pytest.raises(
        PlanError, match=r"of 1024 threads, 64 registers a thread, that wait .*; target 'cuda:h200'"
    ):
        tilewright.compile(model, target=TARGET, plan=plan)


def test_a_plan_with_barriers_is_refused_where_they_are_forbidden() -> None:
    plan = tilewright.compile(batch_statistics(), target=TARGET).plan
    with pytest.raises(PlanError, match=r"has edges at scope grid, which is forbidden"):
        tilewright.compile(batch_statistics(), target=TARGET, plan=plan, grid_sync=False)


def test_contractions_side_by_side_have_the_tiles_of_their_share() -> None:
    """Queries, keys and values share a kernel.

    Each alone would have 96 small tiles on all SMs, which are three tiles per block, one after another.
    """
    model = to_narrow(bert(BertOptions(layers=1)), "f16")
    parts = [
        part for kernel in tilewright.compile(model, TARGET, tuning=False).kernels for part in kernel.groups
    ]
    projections = [part for part in parts if part.dims == (128, 768, 768)]
    beside = [part for part in projections if sum(other.phase == part.phase for other in projections) == 3]
    assert len(beside) == 3
    for part in beside:
        assert part.workgroups == prod(
            ceil(size / tile) for size, tile in zip(part.dims, part.tiles, strict=True)
        )
