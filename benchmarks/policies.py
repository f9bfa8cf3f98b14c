"""Compares planning policies on models: predictions, kernels, planning times, and on a CPU measured times.

    python benchmarks/run.py policies --target cuda:h200 --json results.json
    python benchmarks/run.py policies --workloads 'bert*' --measure 5

Predictions need no machine of the target. With `--measure`, the programs of all policies run in turn on this machine,
one call after another, and the time of a policy is the median of its rounds; a round is the fastest of some calls.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import shlex
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import onnx
import tilewright
from tilewright.api.policies import PolicyPlan, compare_policies
from tilewright.errors import TilewrightError
from tilewright.records.options import CompileOptions, Policy
from tilewright.reference.oracle import random_inputs
from tilewright.system.cores import available_cores

from benchmarks import machine
from benchmarks.client import ROOT
from benchmarks.suites import DTYPES, SUITES, select

_CALL_SECONDS = 0.2
"""Seconds of calls in a round of one policy."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workload by all policies."""

    workload: str
    dtype: str
    plans: tuple[PolicyPlan, ...] = ()
    measured: dict[str, float] = field(default_factory=dict)
    """Seconds of a call by policy."""
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "plans": [plan.to_json() for plan in self.plans]}


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    workloads = select([options.suite], dtypes=[options.dtype], pattern=options.workloads)
    if not workloads:
        print(f"error: no workload of {options.suite} is called '{options.workloads}'", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for workload in workloads:
        model = workload.build()
        row = _row(workload.name, model, options)
        rows.append(row)
        print(f"{len(rows)}/{len(workloads)}: {workload.name} {row.error}", file=sys.stderr, flush=True)
        _write(rows, options)
    print(to_markdown(rows))
    return int(any(row.error for row in rows))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py policies", description=__doc__)
    parser.add_argument("--suite", choices=list(SUITES), default="models")
    parser.add_argument("--workloads", default="*", help="names with * and ?, separated by commas")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--plan-seconds", type=float, default=2.0)
    parser.add_argument("--measure", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def _row(name: str, model: onnx.ModelProto, options: argparse.Namespace) -> Row:
    own = CompileOptions(threads=options.threads, plan_seconds=options.plan_seconds, tuning=None, cache=None)
    try:
        plans = compare_policies(model, options.target, own)
        measured = _measure(model, plans, options) if options.measure else {}
    except TilewrightError as error:
        return Row(workload=name, dtype=options.dtype, error=str(error).splitlines()[0])
    return Row(workload=name, dtype=options.dtype, plans=plans, measured=measured)


def _measure(
    model: onnx.ModelProto, plans: Sequence[PolicyPlan], options: argparse.Namespace
) -> dict[str, float]:
    """Returns the seconds of a call by policy; programs take turns, so that all see the same state of the machine."""
    inputs = random_inputs(model, 3)
    programs = {
        policy: tilewright.compile(
            model,
            options.target,
            threads=[options.threads],
            policy=policy,
            plan_seconds=options.plan_seconds,
            tuning=False,
            cache=False,
        )
        for policy in get_args(Policy)
        if any(plan.policy == policy and plan.declined is None for plan in plans)
    }
    rounds: dict[str, list[float]] = {policy: [] for policy in programs}
    for _ in range(options.measure):
        for policy, program in programs.items():
            fastest, ends = math.inf, time.perf_counter() + _CALL_SECONDS
            while fastest == math.inf or time.perf_counter() < ends:
                started = time.perf_counter()
                program(*inputs)
                fastest = min(fastest, time.perf_counter() - started)
            rounds[policy].append(fastest)
    return {policy: statistics.median(times) for policy, times in rounds.items()}


def _write(rows: Sequence[Row], options: argparse.Namespace) -> None:
    if options.json is None:
        return
    report = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "command": shlex.join(["benchmarks/run.py", *sys.argv[1:]]),
        "tilewright": machine.revision(ROOT),
        "target": options.target,
        "threads": options.threads,
        "rows": [row.to_json() for row in rows],
    }
    options.json.write_text(json.dumps(report, indent=1) + "\n")


def to_markdown(rows: Sequence[Row]) -> str:
    """Returns a table with the predicted time and kernels of each workload by policy, and measured times if any."""
    policies = [policy for policy in get_args(Policy) if policy != "exhaustive"]
    lines = [
        f"| workload | {' | '.join(policies)} | planning |",
        f"|---|{'---:|' * len(policies)}---:|",
    ]
    for row in rows:
        plans = {plan.policy: plan for plan in row.plans}
        cells = [_cell(plans.get(policy), row.measured.get(policy)) for policy in policies]
        planning = f"{plans['unified'].planning_seconds:.1f} s" if "unified" in plans else row.error
        lines.append(f"| {row.workload} | {' | '.join(cells)} | {planning} |")
    return "\n".join(lines)


def _cell(plan: PolicyPlan | None, measured: float | None) -> str:
    if plan is None or plan.seconds is None:
        return ""
    text = f"{plan.seconds * 1e6:.0f} us, {plan.kernels}"
    return text if measured is None else f"{text}, measured {measured * 1e6:.0f} us"
