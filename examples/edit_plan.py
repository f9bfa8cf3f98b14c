"""A plan edited by hand: read it, change it, compile with it, and see a wrong one refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tilewright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def main() -> None:
    from benchmarks.workloads import build

    model = build("bert-small")
    program = tilewright.compile(model, threads=[2])
    plan = program.plan
    assert plan is not None

    print("kernels:")
    for kernel in plan.kernels:
        for group in kernel.groups:
            print(f"  {kernel.name}: {len(group.ops)} ops over {group.extents}, tiles {group.tiles}")
    ours = {op.id for kernel in plan.kernels for group in kernel.groups for op in group.ops}
    print("edges between two of our kernels, and why they are not one:")
    for edge in plan.edges:
        if edge.scope == "launch" and {edge.producer, edge.consumer} <= ours:
            print(f"  op {edge.producer} -> op {edge.consumer}: {edge.reason}")

    # Halve the tile of the first dim that workgroups walk, in the largest group that has one.
    groups = [group for kernel in plan.kernels for group in kernel.groups if group.grid]
    largest = max(groups, key=lambda group: len(group.ops))
    dim = largest.grid[0]
    before = largest.tiles[dim]
    largest.tiles[dim] = max(1, before // 2)
    print(f"tile of dim {dim}: {before} -> {largest.tiles[dim]}")
    edited = tilewright.compile(model, threads=[2], plan=plan)

    hidden = np.random.default_rng(0).standard_normal((1, 32, 128), dtype=np.float32)
    mask = np.ones((1, 32), np.int64)
    np.testing.assert_allclose(edited(hidden, mask)[0], program(hidden, mask)[0], rtol=1e-4, atol=1e-5)
    print("the edited plan gives the same numbers")

    largest.tiles[dim] = 10**6
    try:
        tilewright.compile(model, threads=[2], plan=plan)
    except tilewright.PlanError as error:
        print(f"refused: {error}")
    else:
        raise AssertionError("a tile that does not fit was accepted")


if __name__ == "__main__":
    main()
