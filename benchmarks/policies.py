"""Compares planning policies on models: predictions, kernels, planning times, simulated traffic, and measured times.

    python benchmarks/run.py policies --target cuda:h200 --json results.json
    python benchmarks/run.py policies --workloads 'bert*' --measure 5
    python benchmarks/run.py policies --target cpu,cuda:h200 --measure 5 --simulate --papers

Predictions need no machine of the target. With `--measure`, programs for a CPU run in turn on this machine, one call
after another, and the time of a policy is the median of its rounds; a round is the fastest of some calls. With
`--simulate`, programs for a GPU run on the simulated device, which counts the bytes that pass its L2. Both run the
programs of the policies in `--run` only. Below the table are the geometric mean of the times of `unified` to those of
`greedy`, the error of the predictions, and memory-intensive kernels as in FusionStitching's table 2. `--papers` adds
tables shaped like those of the papers, each beside the paper's own figures (benchmarks/papers.py).
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast, get_args

import onnx
import tilewright
from tilewright.api.policies import PolicyPlan, compare_policies
from tilewright.errors import TilewrightError
from tilewright.records.options import CompileOptions, Policy
from tilewright.records.targets import resolve_targets
from tilewright.reference.oracle import random_inputs
from tilewright.simulator.programs import simulate_program
from tilewright.system.cores import available_cores
from tilewright.system.workfolder import WorkFolder
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
    """One workload by all policies, for one target."""

    target: str
    workload: str
    dtype: str
    plans: tuple[PolicyPlan, ...] = ()
    rounds: dict[str, list[float]] = field(default_factory=dict)
    """Seconds of a call in each round, by policy."""
    simulated: dict[str, int] = field(default_factory=dict)
    """Bytes that pass the L2 of the simulated device, by policy."""
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
    evidence: dict[str, papers.Evidence] = {}
    for target in options.target.split(","):
        own = []
        for number, workload in enumerate(workloads, start=1):
            row = _row(workload.name, workload.build(), target, options)
            own.append(row)
            print(
                f"{target} {number}/{len(workloads)}: {workload.name} {row.error}",
                file=sys.stderr,
                flush=True,
            )
            _write([*rows, *own], evidence, options)
        rows += own
        if options.papers:
            known = [
                (row.workload, workload.build, row.plans)
                for row, workload in zip(own, workloads, strict=True)
                if row.plans
            ]
            evidence[target] = papers.gather(known, target, _compile_options(options))
            _write(rows, evidence, options)
    print(_pages(rows, evidence))
    return int(any(row.error for row in rows))


def _pages(rows: Sequence[Row], evidence: Mapping[str, papers.Evidence]) -> str:
    """Returns all tables, those of each target together."""
    parts = []
    for target in dict.fromkeys(row.target for row in rows):
        parts += [f"## {target}", to_markdown([row for row in rows if row.target == target])]
        if target in evidence:
            parts.append(papers.tables(evidence[target]))
    return "\n\n".join(parts)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py policies", description=__doc__)
    parser.add_argument("--suite", choices=list(SUITES), default="models")
    parser.add_argument("--workloads", default="*", help="names with * and ?, separated by commas")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--target", default="cpu", help="names or files, separated by commas")
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--plan-seconds", type=float, default=2.0)
    parser.add_argument(
        "--measure", type=int, default=0, metavar="ROUNDS", help="run programs for a CPU here"
    )
    parser.add_argument(
        "--simulate", action="store_true", help="run programs for a GPU on the simulated device"
    )
    parser.add_argument(
        "--run", default=",".join(get_args(Policy)), help="policies whose programs run, separated by commas"
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
    unknown = set(options.run.split(",")) - set(get_args(Policy))
    if unknown:
        parser.error(f"unknown policies: {', '.join(sorted(unknown))}; known: {', '.join(get_args(Policy))}")
    try:
        backends = {_backend(target, options) for target in options.target.split(",")}
    except TilewrightError as error:
        parser.error(str(error).splitlines()[0])
    for option, backend in (("measure", "cpu"), ("simulate", "cuda")):
        if getattr(options, option) and backend not in backends:
            kind = {"cpu": "a CPU", "cuda": "a GPU"}[backend]
            parser.error(f"--{option} runs programs for {kind}, and no target is one: {options.target}")
    return options


def _backend(target: str, options: argparse.Namespace) -> str:
    """Returns "cpu" or "cuda"."""
    return resolve_targets(target, threads=options.threads)[0].backend


def _row(name: str, model: onnx.ModelProto, target: str, options: argparse.Namespace) -> Row:
    row = Row(target=target, workload=name, dtype=options.dtype)
    is_gpu = _backend(target, options) == "cuda"
    try:
        row = replace(row, plans=compare_policies(model, target, _compile_options(options)))
        planned = {plan.policy for plan in row.plans if plan.declined is None}
        policies = [policy for policy in options.run.split(",") if policy in planned]
        if options.measure and not is_gpu:
            row = replace(row, rounds=_measure(model, target, policies, options))
        if options.simulate and is_gpu:
            row = replace(row, simulated=_simulate(model, target, policies, options))
    except TilewrightError as error:
        return replace(row, error=str(error).splitlines()[0])
    return row


def _compile_options(options: argparse.Namespace) -> CompileOptions:
    return CompileOptions(threads=options.threads, plan_seconds=options.plan_seconds, tuning=None, cache=None)


def _compiled(
    model: onnx.ModelProto,
    target: str,
    policy: str,
    options: argparse.Namespace,
    *,
    dump_dir: Path | None = None,
) -> tilewright.Program:
    return tilewright.compile(
        model,
        target,
        threads=[options.threads],
        policy=cast(Policy, policy),
        plan_seconds=options.plan_seconds,
        tuning=False,
        cache=False,
        dump_dir=dump_dir,
    )


def _simulate(
    model: onnx.ModelProto, target: str, policies: Sequence[str], options: argparse.Namespace
) -> dict[str, int]:
    """Returns the bytes that pass the L2 of the simulated device, by policy."""
    inputs = random_inputs(model, 3)
    traffic = {}
    for policy in policies:
        with WorkFolder("policies") as folder:
            program = _compiled(model, target, policy, options, dump_dir=folder)
            run = simulate_program(program, folder, inputs)
        traffic[policy] = sum(kernel.dram_bytes_read + kernel.dram_bytes_written for kernel in run.kernels)
    return traffic


def _measure(
    model: onnx.ModelProto, target: str, policies: Sequence[str], options: argparse.Namespace
) -> dict[str, list[float]]:
    """Returns the seconds of a call in each round by policy; programs take turns, so that all see the same machine."""
    inputs = random_inputs(model, 3)
    programs = {policy: _compiled(model, target, policy, options) for policy in policies}
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


def _write(rows: Sequence[Row], evidence: Mapping[str, papers.Evidence], options: argparse.Namespace) -> None:
    if options.json is None:
        return
    report = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "command": shlex.join(["benchmarks/run.py", *sys.argv[1:]]),
        "tilewright": machine.revision(ROOT),
        "machine": machine.describe(),
        "threads": options.threads,
        "papers": {target: own.to_json() for target, own in evidence.items()},
        "rows": [row.to_json() for row in rows],
    }
    options.json.write_text(json.dumps(report, indent=1) + "\n")


def to_markdown(rows: Sequence[Row]) -> str:
    """Returns a table with the predicted time and kernels of each workload by policy, one with all figures of each
    plan, and the ratios below them. The rows are for one target."""
    policies = [policy for policy in get_args(Policy) if policy != "exhaustive"]
    lines = [
        f"| workload | {' | '.join(policies)} | planning |",
        f"|---|{'---:|' * len(policies)}---:|",
    ]
    for row in rows:
        cells = [_cell(row.plan(policy)) for policy in policies]
        unified = row.plan("unified")
        planning = f"{unified.planning_seconds:.1f} s" if unified else row.error
        lines.append(f"| {row.workload} | {' | '.join(cells)} | {planning} |")
    return "\n".join([*lines, "", *_plans(rows), "", *_summary(rows)])


def _plans(rows: Sequence[Row]) -> list[str]:
    """Returns a table with a line for each plan."""
    lines = [
        "| workload | policy | predicted, us | measured, us | kernels | MB planned | MB simulated | planning, s |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        for plan in row.plans:
            if plan.seconds is None:
                continue
            rounds, simulated = row.rounds.get(plan.policy), row.simulated.get(plan.policy)
            measured = f"{statistics.median(rounds) * 1e6:.0f}" if rounds else ""
            moved = f"{simulated / 1e6:.2f}" if simulated is not None else ""
            lines.append(
                f"| {row.workload} | {plan.policy} | {plan.seconds * 1e6:.0f} | {measured} | {plan.kernels} | "
                f"{(plan.bytes or 0) / 1e6:.2f} | {moved} | {plan.planning_seconds:.2f} |"
            )
    return lines


def _read(path: Path) -> str:
    """Returns the tables of a report."""
    report = json.loads(path.read_text())
    rows = [
        Row(**{**row, "plans": tuple(PolicyPlan(**plan) for plan in row["plans"])}) for row in report["rows"]
    ]
    evidence = {
        target: papers.evidence_of(
            own, target, {row.workload: row.plans for row in rows if row.target == target and row.plans}
        )
        for target, own in report["papers"].items()
    }
    return _pages(rows, evidence)


def _cell(plan: PolicyPlan | None) -> str:
    return "" if plan is None or plan.seconds is None else f"{plan.seconds * 1e6:.0f} us, {plan.kernels}"


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
