"""Compares the block-order model with the movement of generated code (Chimera 6.C), by simulating caches on its
accesses.

    python benchmarks/validate_movement.py --out benchmarks/results

The first part uses the chain C = A B, E = C D with M = N = K = L, scaled down together with its cache. Tile programs in
the orders mlkn and mlnk, and in mlkn without keeping C, are run for the requested number of tilings. The bytes that the
model predicts for each, into the cache and back, are compared with those that the accesses of the compiled kernel move.
The second part compares the movement of the chains of the paper's Tables IV and V as one kernel and as one kernel per
operator, both as the compiler builds them, at full size and with the target's caches.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from tilewright.ir.native import native
from tilewright.records.targets import Target
from tilewright.simulator.movement import Cache, compile_traced, simulate
from tilewright.system.lifeline import end_with_parent
from tilewright.system.workfolder import WorkFolder

from benchmarks import machine
from benchmarks.chain_models import (
    CHAINS,
    CONVOLUTION_CHAINS,
    Chain,
    ConvolutionChain,
    chains_named,
    convolutions_named,
)
from benchmarks.chain_movement import ChainMovement, chain_movement
from benchmarks.chain_programs import ChainBlocks, K, L, M, N, fused_chain, separate_chain

# The paper uses 2048 with 32 KiB of L1, 64-byte lines and vectors. Here cache lines are a quarter as long and the cache
# is a sixteenth of the size; the chain is a fourteenth, because otherwise hundreds of tilings would take an hour. A
# tensor is still 40 times as large as the cache.
EXTENT, CACHE = 144, Cache(capacity_bytes=2048, line_bytes=16)
# This target has four lanes, a quarter of the paper's sixteen.
TARGET = "x86-64-v2"
FLOAT = 4
# Usable share of the cache: replaced tiles stay until they are the least recently used, so live tiles cannot fill all
# of it.
USABLE = 0.75


@dataclass(frozen=True, kw_only=True)
class Case:
    """An order of the chain's loops, and whether the block of C is kept."""

    name: str
    order: tuple[int, ...]
    reuse: bool


CASES = (
    Case(name="mlkn", order=(M, L, K, N), reuse=True),
    Case(name="mlnk", order=(M, L, N, K), reuse=True),
    Case(name="mlkn without reuse", order=(M, L, K, N), reuse=False),
)


@dataclass(frozen=True, kw_only=True)
class Point:
    """Bytes that one tiling moves into the cache and back."""

    tiles: tuple[int, int, int, int]
    memory_bytes: float
    predicted: float
    observed: int


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """Results of one case.

    `r_squared` is that of the correlation, `of_identity` the share of the observed variance that y = x explains. `full`
    are further tilings, whose live tiles leave less than a quarter of the cache free.
    """

    case: str
    points: list[Point]
    full: list[Point]
    r_squared: float
    of_identity: float
    median_ratio: float
    full_ratio: float | None
    best: Point
    """The tiling with the least predicted movement."""


def tilings(
    case: Case, extent: int, cache: Cache, *, count: int, seed: int = 0
) -> list[tuple[int, int, int, int]]:
    """Returns tilings that divide the extents in whole lines and fit the cache: the one predicted best, and others."""
    line = cache.line_bytes // FLOAT
    rows = [size for size in range(1, extent + 1) if extent % size == 0]
    columns = [size for size in rows if size % line == 0]
    fitting = []
    for tiles in product(rows, columns, columns, columns):
        moved, _, memory = _predict(case, extent, tiles)
        if memory <= cache.capacity_bytes:
            fitting.append((memory > USABLE * cache.capacity_bytes, moved, tiles))
    best = min(fitting)[2]
    drawn = random.Random(seed).sample([tiles for _, _, tiles in fitting], min(count, len(fitting)))
    return [best, *(tiles for tiles in drawn if tiles != best)][:count]


def _predict(case: Case, extent: int, tiles: Sequence[int]) -> tuple[float, float, float]:
    return native.gemm_chain_movement([extent] * 4, list(case.order), list(tiles), case.reuse)


def measure(
    case: Case, extent: int, cache: Cache, tiles: tuple[int, int, int, int], target: str = TARGET
) -> Point:
    """Compiles one tiling and simulates its accesses."""
    blocks = ChainBlocks(extents=(extent,) * 4, tiles=tiles, order=case.order)
    program = fused_chain(blocks) if case.reuse else separate_chain(blocks)
    with WorkFolder("movement") as folder:
        kernels = compile_traced(program, folder, target=target)
        (level,) = simulate(kernels, [cache])
    _, predicted, memory = _predict(case, extent, tiles)
    return Point(tiles=tiles, memory_bytes=memory, predicted=predicted, observed=level.bytes)


def summarize(case: Case, cache: Cache, measured: Sequence[Point]) -> CaseResult:
    points = [point for point in measured if point.memory_bytes <= USABLE * cache.capacity_bytes]
    full = [point for point in measured if point not in points]
    predicted = np.array([point.predicted for point in points])
    observed = np.array([point.observed for point in points], dtype=float)
    residual = float(((observed - predicted) ** 2).sum())
    total = float(((observed - observed.mean()) ** 2).sum())
    return CaseResult(
        case=case.name,
        points=points,
        full=full,
        r_squared=float(np.corrcoef(predicted, observed)[0, 1] ** 2),
        of_identity=1 - residual / total,
        median_ratio=statistics.median(point.observed / point.predicted for point in points),
        full_ratio=statistics.median(point.observed / point.predicted for point in full) if full else None,
        best=min(points, key=lambda point: point.predicted),
    )


def _measure(task: tuple[Case, int, Cache, tuple[int, int, int, int]]) -> Point:
    return measure(*task)


def validate(*, count: int, jobs: int, extent: int = EXTENT, cache: Cache = CACHE) -> list[CaseResult]:
    with ProcessPoolExecutor(max_workers=jobs, initializer=end_with_parent) as pool:
        runs = [
            (
                case,
                pool.map(
                    _measure, [(case, extent, cache, t) for t in tilings(case, extent, cache, count=count)]
                ),
            )
            for case in CASES
        ]
        return [summarize(case, cache, list(points)) for case, points in runs]


def plot(results: Sequence[CaseResult], path: Path) -> None:
    """Plots observed over predicted movement, with a panel per case; the point with the least prediction is red."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(results), figsize=(4 * len(results), 4), layout="constrained")
    for axes, result in zip(panels, results, strict=True):
        x, y = ([getattr(p, side) / 1e6 for p in result.points] for side in ("predicted", "observed"))
        axes.plot([min(x), max(x)], [min(x), max(x)], color="black", linewidth=0.8)
        full = [(point.predicted / 1e6, point.observed / 1e6) for point in result.full]
        axes.scatter(*zip(*full, strict=True), s=8, color="tab:gray", alpha=0.5)
        axes.scatter(x, y, s=8)
        axes.scatter([result.best.predicted / 1e6], [result.best.observed / 1e6], s=24, color="tab:red")
        axes.set(xscale="log", yscale="log", xlabel="predicted MB", ylabel="observed MB")
        axes.set_title(f"{result.case}: R² = {result.r_squared:.3f}")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _tilings_text(results: Sequence[CaseResult], facts: dict[str, Any]) -> str:
    lines = [
        "# Movement of tilings: predicted and observed",
        "",
        _where(facts),
        "",
        f"Chain of two matmuls, M = N = K = L = {EXTENT}, {CACHE.capacity_bytes} bytes of cache in lines of "
        f"{CACHE.line_bytes} (the paper: 2048, 32 KiB, 64), random tilings. Live tiles take at most "
        f"{USABLE:.0%} of the cache;",
        "*full* are tilings that take more, gray in the plot, for which the least recently used lines are not always",
        "those that the model evicts.",
        "",
        "| case | tilings | R² | R² of y = x | observed / predicted, median | predicted best: MB, observed "
        "| full: tilings, ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        best = f"{r.best.tiles}: {r.best.predicted / 1e6:.1f}, {r.best.observed / 1e6:.1f}"
        lines.append(
            f"| {r.case} | {len(r.points)} | {r.r_squared:.3f} | {r.of_identity:.3f} | {r.median_ratio:.3f} | {best} | "
            + (f"{len(r.full)}, {r.full_ratio:.2f} |" if r.full_ratio else "0 |")
        )
    return "\n".join(lines) + "\n"


def _chains_text(chains: Sequence[ChainMovement], facts: dict[str, Any]) -> str:
    lines = [
        "# Movement of chains: one kernel against one for each operator",
        "",
        _where(facts),
        "",
        f"Chains of Tables IV and V, f32, planned for {facts['target']} and two threads, through the caches of one",
        "core, from cold caches, all batches. MB between levels, both ways. Kernels: whole chain, and separate ones.",
        "Predicted bytes are those of the plan of the whole chain.",
        "",
        "| chain | kernels | L1-L2 | L2-L3 | L3-DRAM | predicted L1-L2 | L2-L3 | L3-DRAM "
        "| apart L1-L2 | L2-L3 | L3-DRAM | L2-L3 saved | DRAM saved |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for c in chains:
        predicted = [f"{b / 1e6:.1f}" for b in c.predicted] or ["-"] * len(c.fused)
        fused, apart = ([f"{b / 1e6:.1f}" for b in of] for of in (c.fused, c.apart))
        row = [*fused, *predicted, *apart, *(f"{s:.1%}" for s in c.saved[1:])]
        lines.append(f"| {c.name} | {c.kernels} of {c.operators} | " + " | ".join(row) + " |")
    lines.append("")
    for name, group in (
        ("without softmax", [c for c in chains if c.name.startswith("G") and "softmax" not in c.name]),
        ("with softmax", [c for c in chains if "softmax" in c.name]),
        ("of convolutions", [c for c in chains if c.name.startswith("C")]),
    ):
        if group:
            l3, dram = (statistics.mean(c.saved[level] for c in group) for level in (1, 2))
            paper = "" if name == "of convolutions" else " (the paper: -59.75%, -75.17%)"
            lines.append(f"- Mean {name}: L2-L3 {-l3:+.2%}, DRAM {-dram:+.2%}{paper}.")
    return "\n".join(lines) + "\n"


def _where(facts: dict[str, Any]) -> str:
    return (
        f"{facts['processor']}, {facts['date']}, revision {facts['revision']}; "
        "`python benchmarks/validate_movement.py`.\n"
        "Observed bytes are those of all accesses in the generated code, on simulated caches (fully associative,\n"
        "least recently used, write back). LLVM's spills, and values that it keeps in registers, are not observed."
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("tilings", "chains"), help="one of the two parts")
    parser.add_argument("--tilings", type=int, default=200, help="tilings of each case (default: 200)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of the results")
    parser.add_argument(
        "--chains",
        nargs="+",
        metavar="NAME",
        help="chains of Table IV and V: G2, G2-softmax, C3, C3-relu (default: all)",
    )
    arguments = parser.parse_args()
    try:
        names = arguments.chains or []
        convolutions = convolutions_named(names)
        matmuls = chains_named([name for name in names if name not in {c.name for c in convolutions}])
        chosen: list[Chain | ConvolutionChain] = [*matmuls, *convolutions]
        if not names:
            chosen = [*CHAINS, *CONVOLUTION_CHAINS]
    except ValueError as error:
        parser.error(str(error))
    arguments.out.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    facts = {
        **machine.describe(),
        "date": date,
        "revision": machine.revision(Path(__file__).resolve().parent.parent),
        "target": Target.lookup("cpu").name,
    }
    if arguments.only != "chains":
        results = validate(count=arguments.tilings, jobs=arguments.jobs)
        path = arguments.out / f"{date}-movement-tilings"
        _write(path, _tilings_text(results, facts), {"machine": facts, "cases": [asdict(r) for r in results]})
        plot(results, path.with_suffix(".png"))
    if arguments.only != "tilings":
        chains = chain_movement(jobs=arguments.jobs, chains=chosen)
        path = arguments.out / f"{date}-movement-chains"
        _write(path, _chains_text(chains, facts), {"machine": facts, "chains": [asdict(c) for c in chains]})


def _write(path: Path, text: str, data: dict[str, Any]) -> None:
    path.with_suffix(".md").write_text(text)
    path.with_suffix(".json").write_text(json.dumps(data) + "\n")
    print(text, f"{path}.md, .json", sep="\n", flush=True)


if __name__ == "__main__":
    main()
