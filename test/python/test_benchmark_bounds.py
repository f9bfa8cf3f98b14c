"""The resource that bounds a row of a benchmark."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.bounds import MULTIPLY_ADDS, Bound, bound_of
from benchmarks.rows import Row

LIMITS = {
    "fma_gflops": 100.0,
    "levels": [
        {"name": "L1", "bytes": 1000, "read_gb_per_s": 200.0},
        {"name": "L2", "bytes": 50_000, "read_gb_per_s": 50.0},
        {"name": "DRAM", "bytes": 0, "read_gb_per_s": 10.0},
    ],
}


def row(**fields: Any) -> Row:
    given = {"dtype": "f32", "compulsory_bytes": 0, "contraction_flops": 0, **fields}
    return Row(suite="s", workload="w", system="ours", status="ok", reason="", **given)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"contraction_flops": 10**9}, Bound(MULTIPLY_ADDS, 1e-2), id="multiply-adds"),
        pytest.param({"bytes_moved": 2 * 10**9}, Bound("L1", 1e-2), id="what kernels load and store"),
        pytest.param({"compulsory_bytes": 10_000}, Bound("L2", 2e-7), id="the innermost level with room"),
        pytest.param({"compulsory_bytes": 10**8}, Bound("DRAM", 1e-2), id="memory"),
    ],
)
def test_the_resource_that_needs_the_longest_time_bounds_a_row(
    fields: dict[str, int], expected: Bound
) -> None:
    least = {"compulsory_bytes": 1000, "bytes_moved": 1000, "contraction_flops": 1}
    bound = bound_of(row(**{**least, **fields}), LIMITS)
    assert bound.resource == expected.resource
    assert bound.seconds == pytest.approx(expected.seconds)


def test_products_of_narrow_types_are_not_bound_by_multiply_adds_of_f32() -> None:
    bound = bound_of(row(dtype="bf16", contraction_flops=10**12, compulsory_bytes=1000), LIMITS)
    assert bound.resource == "L1"
