"""Measures which part of the compiler the speed of matmul chains comes from (Chimera, figure 10).

    python benchmarks/ablate_chains.py --cache /tmp/ablation --compile   # compiles and simulates
    python benchmarks/ablate_chains.py --cache /tmp/ablation             # measures, and writes the results

Every chain of two matmuls is built without any of three parts, with each of them alone, and with all of them:

- The cost model selects tiles by prediction; without it, they are 32 rows by 64 columns.
- Fusion makes one kernel; without it, each operator has a kernel.
- Micro kernels have register blocks; without them, contractions have the loop nest of other reductions.

Calls run one after another on one thread, and variants take turns. Movement is simulated
(benchmarks/chain_movement.py).
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import onnx
import tilewright
from tilewright.records.plan import Plan
from tilewright.records.targets import Target
from tilewright.reference.oracle import random_inputs
from tilewright.simulator.movement import traced_build
from tilewright.system.workfolder import WorkFolder

from benchmarks import machine
from benchmarks.chain_models import Chain, chains_named
from benchmarks.chain_movement import caches_of, simulate_in_order

_ROWS, _COLUMNS = 32, 64
_DEFAULT = ("G2", "G4", "G10", "G2-softmax")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Components of the compiler that are enabled."""

    name: str
    cost_model: bool = False
    fusion: bool = False
    micro_kernel: bool = False

    def change(self, plan: Plan) -> Plan:
        """Removes from the compiler's own plan what this variant lacks; the plan given decides what is fused."""
        for kernel in plan.kernels:
            for part in kernel.groups:
                contracts = any(op.micro_kernel for op in part.ops)
                if contracts and not self.cost_model:
                    part.tiles = _fixed_tiles(part.extents, part.tiles, part.grid, part.vector)
                    part.workgroups = 1
                if not self.micro_kernel:
                    for op in part.ops:
                        op.micro_kernel = ""
        return plan


VARIANTS = (
    Variant(name="nothing"),
    Variant(name="cost model", cost_model=True),
    Variant(name="fusion", fusion=True),
    Variant(name="micro kernel", micro_kernel=True),
    Variant(name="all", cost_model=True, fusion=True, micro_kernel=True),
)


def _fixed_tiles(extents: Sequence[int], tiles: Sequence[int], grid: Sequence[int], vector: int) -> list[int]:
    """Returns fixed tile sizes: columns are the vector dim, rows the last other grid dim, and non-grid dims stay
    whole."""
    rows = max((dim for dim in grid if dim != vector), default=-1)
    sizes = {vector: _COLUMNS, rows: _ROWS}
    return [
        min(sizes.get(dim, 1), extents[dim]) if dim in grid else tiles[dim] for dim in range(len(extents))
    ]


def _models(chain: Chain, variant: Variant) -> list[onnx.ModelProto]:
    return [chain.whole()] if variant.fusion else chain.operators()


def _path(cache: Path, chain: Chain, variant: Variant, number: int) -> Path:
    return cache / f"{chain.name}-{variant.name.replace(' ', '-')}-{number}.vmfb"


def compile_all(chains: Sequence[Chain], cache: Path, target: str) -> None:
    """Compiles the variants that are not in the cache and simulates their movement."""
    cache.mkdir(parents=True, exist_ok=True)
    for chain in chains:
        for variant in VARIANTS:
            facts = _path(cache, chain, variant, 0).with_suffix(".movement")
            if not facts.exists():
                facts.write_text(json.dumps(_compile(chain, variant, cache, target)))
                print(f"{chain.name}, {variant.name}: {facts.read_text()}", flush=True)


def _compile(chain: Chain, variant: Variant, cache: Path, target: str) -> dict[str, Any]:
    kernels = []
    for number, model in enumerate(_models(chain, variant)):
        plan = tilewright.compile(model, target, threads=1, cache=False).plan
        assert plan is not None
        plan = variant.change(plan)
        with WorkFolder("ablation") as folder:
            program = tilewright.compile(model, target, threads=1, plan=plan, dump_dir=folder)
            program.save(_path(cache, chain, variant, number))
            kernels += traced_build(folder)
    moved = simulate_in_order(kernels, caches_of(Target.lookup(target)))
    return {"kernels": len(kernels), "bytes": [level.bytes for level in moved]}


def measure(chain: Chain, cache: Path, *, seconds: float) -> dict[str, float]:
    """Returns the median seconds of each variant, which take turns for `seconds`."""
    calls = {variant.name: _calls(chain, variant, cache) for variant in VARIANTS}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or any(len(taken) < 3 for taken in samples.values()):
        for name, steps in calls.items():
            start = time.perf_counter()
            for step in steps:
                step()
            samples[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def _calls(chain: Chain, variant: Variant, cache: Path) -> list[Callable[[], object]]:
    calls: list[Callable[[], object]] = []
    for number, model in enumerate(_models(chain, variant)):
        program = tilewright.load(_path(cache, chain, variant, number))
        calls.append(program.bind(*random_inputs(model, 0)))
        calls[-1]()
    return calls


def _markdown(rows: Sequence[dict[str, Any]], facts: dict[str, Any]) -> str:
    lines = [
        "# Ablation of matmul chains",
        "",
        f"{facts['processor']}, {facts['date']}, revision {facts['revision']}, {facts['target']}, one thread, f32. "
        "`python benchmarks/ablate_chains.py`;",
        "its docstring describes the variants. MB are simulated bytes past L1, L2 and L3, both ways, from cold caches.",
        "",
        "| chain | with | kernels | median ms | speed-up | L1-L2 MB | L2-L3 MB | DRAM MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        moved = " | ".join(f"{size / 1e6:.1f}" for size in row["bytes"])
        lines.append(
            f"| {row['chain']} | {row['with']} | {row['kernels']} | {row['seconds'] * 1e3:.2f} | "
            f"{row['speedup']:.2f} | {moved} |"
        )
    lines.append(
        "\nGeometric means of the speed-up over no part (in the paper, each alone: 2.37, 1.89 and 1.61):\n"
    )
    for variant in VARIANTS[1:]:
        mean = statistics.geometric_mean(row["speedup"] for row in rows if row["with"] == variant.name)
        lines.append(f"- {variant.name}: {mean:.2f}")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--chains", nargs="+", default=_DEFAULT, metavar="NAME", help="chains of Table IV: G2, G2-softmax"
    )
    parser.add_argument(
        "--cache", type=Path, required=True, help="folder of compiled variants, made if it is missing"
    )
    parser.add_argument("--compile", action="store_true", help="compile and simulate only")
    parser.add_argument("--target", default="cpu", help="target name or JSON file")
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="seconds of turns for each chain (default: 4)"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of the results")
    arguments = parser.parse_args()
    try:
        chains = chains_named(arguments.chains)
    except ValueError as error:
        parser.error(str(error))
    compile_all(chains, arguments.cache, arguments.target)
    if arguments.compile:
        return
    rows = []
    for chain in chains:
        seconds = measure(chain, arguments.cache, seconds=arguments.seconds)
        for variant in VARIANTS:
            moved = json.loads(_path(arguments.cache, chain, variant, 0).with_suffix(".movement").read_text())
            own = {"seconds": seconds[variant.name], "speedup": seconds["nothing"] / seconds[variant.name]}
            rows.append({"chain": chain.name, "with": variant.name, **moved, **own})
    root = Path(__file__).resolve().parent.parent
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    facts = {
        **machine.describe(),
        "date": date,
        "revision": machine.revision(root),
        "target": Target.lookup(arguments.target).name,
    }
    text = _markdown(rows, facts)
    path = arguments.out / f"{date}-ablation"
    path.with_suffix(".md").write_text(text)
    path.with_suffix(".json").write_text(json.dumps({"machine": facts, "rows": rows}) + "\n")
    print(text)


if __name__ == "__main__":
    main()
