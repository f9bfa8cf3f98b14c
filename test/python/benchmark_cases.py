"""Settings and results that the tests of the benchmark runner share."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.measure import Plan, Record, Result, measure
from benchmarks.peers import OURS, Facts, Settings
from benchmarks.repetition import COUNTS
from benchmarks.workloads import Workload, stitch

ROOT = Path(__file__).resolve().parents[2]

SETTINGS = Settings(threads=1)

QUICK = Plan(rounds=2, seconds=0.02, least_turns=1, prepare_limit=60.0, call_limit=60.0)

SOFTMAX = Workload(
    name="softmax-7x13", build=partial(stitch.softmax, (7, 13)), description="softmax", suite="stitch"
)


def measured(peers: dict[str, str], folder: Path, *, plan: Plan = QUICK) -> list[Result]:
    folder.mkdir(exist_ok=True)
    steps = measure([SOFTMAX], peers, SETTINGS, plan, folder=folder, say=lambda step: None)
    return [results for results, _ in steps][-1]


def samples(*, fixed: float, kernel: float) -> list[dict[int, float]]:
    return [{count: fixed + count * kernel for count in COUNTS} for _ in range(5)]


def sample_result() -> Result:
    records = {
        OURS: Record(samples=samples(fixed=4e-6, kernel=10e-6), facts=Facts(kernels=1), max_rel_error=1e-7),
        "fast": Record(samples=samples(fixed=30e-6, kernel=5e-6), facts=Facts()),
        "slow": Record(samples=samples(fixed=2e-6, kernel=40e-6), facts=Facts()),
        "broken": Record(status="crashed", reason="killed by SIGSEGV | at once"),
    }
    return Result(SOFTMAX, compulsory_bytes=728, contraction_flops=2000, records=records, is_short=True)
