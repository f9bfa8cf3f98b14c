"""Compares planning policies on models: predictions, kernels, planning times, and on a CPU measured times.

    python benchmarks/run.py policies --target cuda:h200 --json results.json
    python benchmarks/run.py policies --workloads 'bert*' --measure 5

Predictions need no machine of the target. With `--measure`, the programs of the policies in `--measured` run in turn on
this machine, one call after another, and the time of a policy is the median of its rounds; a round is the fastest of
some calls. Below the table are the geometric mean of the times of `unified` to those of `greedy`, the error of the
predictions, and memory-intensive kernels as in FusionStitching's table 2. `--papers` adds tables shaped like those of
the papers, each beside the paper's own figures (benchmarks/papers.py).
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
from tilewright.tuning.paired import Interval, paired_ratio

from benchmarks import machine, papers
from benchmarks.client import ROOT
from benchmarks.suites import DTYPES, SUITES, select

_CALL_SECONDS = 0.2
"""Seconds of calls in a round of one policy."""
_TIE = 1e-4
"""Predicted times differ if they do so by more than this part (PlanScore.h)."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One workload by all policies."""

    workload: str
    dtype: str
    plans: tuple[PolicyPlan, ...] = ()
    rounds: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of a call in each round, by policy."""
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "plans": [plan.to_json() for plan in self.plans]}

    def plan(self, policy: str) -> PolicyPlan | None:
        """Returns the plan of a policy; None if it has none."""
        return next((plan for plan in self.plans if plan.policy == policy and plan.declined is None), None)

    def gain(self) -> Interval | None:
        """Returns the measured time of `unified` relative to that of `greedy`; None if either was not measured."""
        if not {"unified", "greedy"} <= self.rounds.keys():
            return None
        return paired_ratio(self.rounds["unified"], self.rounds["greedy"])


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    if options.read is not None:
        print(_read(options.read))
        return 0
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
    text = to_markdown(rows)
    if options.papers:
        evidence = papers.gather(
            [
                (row.workload, workload.build, row.plans)
                for row, workload in zip(rows, workloads, strict=True)
                if row.plans
            ],
            options.target,
            _compile_options(options),
        )
        _write(rows, options, evidence.to_json())
        text = f"{text}\n\n{papers.tables(evidence)}"
    print(text)
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
    parser.add_argument(
        "--measured", default=",".join(get_args(Policy)), help="policies, separated by commas"
    )
    parser.add_argument("--papers", action="store_true", help="add tables shaped like those of the papers")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--from",
        dest="read",
        type=Path,
        help="print the tables of a file that --json wrote, and plan nothing",
    )
    options = parser.parse_args(arguments)
    unknown = set(options.measured.split(",")) - set(get_args(Policy))
    if unknown:
        parser.error(f"unknown policies: {', '.join(sorted(unknown))}; known: {', '.join(get_args(Policy))}")
    return options


def _row(name: str, model: onnx.ModelProto, options: argparse.Namespace) -> Row:
    try:
        plans = compare_policies(model, options.target, _compile_options(options))
        rounds = _measure(model, plans, options) if options.measure else {}
    except TilewrightError as error:
        return Row(workload=name, dtype=options.dtype, error=str(error).splitlines()[0])
    return Row(workload=name, dtype=options.dtype, plans=plans, rounds=rounds)


def _compile_options(options: argparse.Namespace) -> CompileOptions:
    return CompileOptions(threads=options.threads, plan_seconds=options.plan_seconds, tuning=None, cache=None)


def _measure(
    model: onnx.ModelProto, plans: Sequence[PolicyPlan], options: argparse.Namespace
) -> dict[str, list[float]]:
    """Returns the seconds of a call in each round by policy; programs take turns, so that all see the same machine."""
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
        for policy in options.measured.split(",")
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
    return rounds


def _write(rows: Sequence[Row], options: argparse.Namespace, evidence: dict[str, Any] | None = None) -> None:
    if options.json is None:
        return
    report = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "command": shlex.join(["benchmarks/run.py", *sys.argv[1:]]),
        "tilewright": machine.revision(ROOT),
        "machine": machine.describe(),
        "target": options.target,
        "threads": options.threads,
        **({"papers": evidence} if evidence else {}),
        "rows": [row.to_json() for row in rows],
    }
    options.json.write_text(json.dumps(report, indent=1) + "\n")


def to_markdown(rows: Sequence[Row]) -> str:
    """Returns a table with the predicted time and kernels of each workload by policy, with measured times if there are
    any, and the ratios below it."""
    policies = [policy for policy in get_args(Policy) if policy != "exhaustive"]
    lines = [
        f"| workload | {' | '.join(policies)} | planning |",
        f"|---|{'---:|' * len(policies)}---:|",
    ]
    for row in rows:
        cells = [_cell(row.plan(policy), row.rounds.get(policy)) for policy in policies]
        unified = row.plan("unified")
        planning = f"{unified.planning_seconds:.1f} s" if unified else row.error
        lines.append(f"| {row.workload} | {' | '.join(cells)} | {planning} |")
    return "\n".join([*lines, "", *_summary(rows)])


def _read(path: Path) -> str:
    """Returns the tables of a report."""
    report = json.loads(path.read_text())
    rows = [
        Row(**{**row, "plans": tuple(PolicyPlan(**plan) for plan in row["plans"])}) for row in report["rows"]
    ]
    text = to_markdown(rows)
    if "papers" in report:
        evidence = papers.evidence_of(report, {row.workload: row.plans for row in rows if row.plans})
        text = f"{text}\n\n{papers.tables(evidence)}"
    return text


def _cell(plan: PolicyPlan | None, rounds: Sequence[float] | None) -> str:
    if plan is None or plan.seconds is None:
        return ""
    text = f"{plan.seconds * 1e6:.0f} us, {plan.kernels}"
    return text if rounds is None else f"{text}, measured {statistics.median(rounds) * 1e6:.0f} us"


def _summary(rows: Sequence[Row]) -> list[str]:
    lines = [
        *_predicted_gain(rows),
        *_below_seeds(rows),
        *_measured_gain(rows),
        *_accuracy(rows),
        *_memory_intensive(rows, "kernels", "xla"),
        *_memory_intensive(rows, "bytes", "unfused"),
    ]
    return [f"- {line}" for line in lines]


def _predicted_gain(rows: Sequence[Row]) -> list[str]:
    pairs = [(row.plan("unified"), row.plan("greedy")) for row in rows]
    ratios = [
        own.seconds / other.seconds for own, other in pairs if own and other and own.seconds and other.seconds
    ]
    if not ratios:
        return []
    return [
        f"predicted, unified / greedy: {statistics.geometric_mean(ratios):.3f} over {len(ratios)} workloads"
    ]


def _below_seeds(rows: Sequence[Row]) -> list[str]:
    """Returns for which workloads `unified` is predicted to take less time than every policy that it starts from."""
    below: list[str] = []
    equal: list[str] = []
    for row in rows:
        unified = row.plan("unified")
        seeds = [
            plan.seconds
            for plan in row.plans
            if plan.policy not in ("unified", "exhaustive") and plan.seconds is not None
        ]
        if unified is None or unified.seconds is None or not seeds:
            continue
        (below if unified.seconds < min(seeds) * (1 - _TIE) else equal).append(row.workload)
    if not below and not equal:
        return []
    return [
        f"unified is strictly below its best seed for {len(below)} of {len(below) + len(equal)} workloads; equal to it "
        f"for {', '.join(equal) or 'none'}"
    ]


def _measured_gain(rows: Sequence[Row]) -> list[str]:
    gains = {row.workload: gain for row in rows if (gain := row.gain()) is not None}
    if not gains:
        return []
    mean = statistics.geometric_mean(gain.value for gain in gains.values())
    slower = [f"{workload} {gain}" for workload, gain in gains.items() if gain.low > 1]
    return [
        f"measured, unified / greedy: {mean:.3f} over {len(gains)} workloads; slower beyond the interval: "
        f"{', '.join(slower) or 'none'}"
    ]


def _accuracy(rows: Sequence[Row]) -> list[str]:
    errors = [
        abs(plan.seconds / statistics.median(rounds) - 1)
        for row in rows
        for policy, rounds in row.rounds.items()
        if (plan := row.plan(policy)) is not None and plan.seconds is not None
    ]
    if not errors:
        return []
    return [
        f"predicted against measured: off by {statistics.median(errors):.0%} in the median of {len(errors)}"
    ]


def _memory_intensive(rows: Sequence[Row], what: str, baseline: str) -> list[str]:
    """Returns how many memory-intensive kernels, or bytes that these move, `fusionstitching` has of the baseline's."""
    own = other = 0.0
    for row in rows:
        plan, base = row.plan("fusionstitching"), row.plan(baseline)
        if plan and base:
            own += getattr(plan, f"memory_intensive_{what}") or 0
            other += getattr(base, f"memory_intensive_{what}") or 0
    if other == 0:
        return []
    return [f"memory-intensive {what}, fusionstitching / {baseline}: {own / other:.0%}"]
