"""Runs suites of workloads on our compiler and its peers, and reports who is faster where (docs/benchmarks.md)."""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# As a script, this file's folder is on the path instead of the checkout.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tilewright.cores import available_cores
from tilewright.targets import resolve_targets

from benchmarks import machine, simulated
from benchmarks.alone import alone
from benchmarks.client import ROOT
from benchmarks.measure import Plan, Result, measure
from benchmarks.peers import LIMITS, PEERS, Settings
from benchmarks.plot import plot
from benchmarks.report import Report, to_markdown
from benchmarks.rows import make_rows, summarize
from benchmarks.suites import MEMORY_BOUND, SUITES, select
from benchmarks.workloads import Workload


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    unknown = set(options.peers) - set(PEERS)
    if unknown:
        return _error(f"no peer is called '{min(unknown)}'; there are {', '.join(PEERS)}")
    workloads = select(options.suite, dtypes=options.dtypes, pattern=options.workloads)
    if not workloads:
        return _error(f"no workload of {', '.join(options.suite)} is called '{options.workloads}'")
    if resolve_targets(options.target, threads=1)[0].backend == "cuda":
        return _simulate(workloads, options)
    settings = Settings(threads=options.threads, target=options.target)
    plan = Plan(
        rounds=options.rounds,
        seconds=options.seconds,
        prepare_limit=options.limit,
        alone=tuple(shlex.split(options.alone)),
    )
    with tempfile.TemporaryDirectory(prefix="tilewright-benchmarks-") as folder:
        with alone(plan.alone):
            limits = machine.limits(Path(folder), threads=settings.threads)
        peers = {name: PEERS[name] for name in options.peers}
        if MEMORY_BOUND.issuperset(options.suite):
            peers |= LIMITS
        for results, versions in measure(workloads, peers, settings, plan, folder=Path(folder), say=_say):
            # After every workload, so that a run that is cut short leaves what it has.
            report = _report(results, versions, settings, plan, limits)
            _write(options, report)
    if options.plot:
        plot(report, options.plot)
    if not (options.json or options.markdown or options.plot):
        print(to_markdown(report))
    return 0


def _simulate(workloads: Sequence[Workload], options: argparse.Namespace) -> int:
    """Kernels for a GPU run on the simulated device; peers have nothing to compare there."""
    names = [(workload.name, workload.dtype) for workload in workloads]
    conditions = [
        f"`{shlex.join(['benchmarks/run.py', *sys.argv[1:]])}`",
        f"tilewright {machine.revision(ROOT)}, simulated {options.target}",
    ]
    date = datetime.datetime.now().astimezone().isoformat(timespec="minutes")
    rows: list[simulated.SimulatedRow] = []
    for row in simulated.simulate_workloads(names, target=options.target, jobs=available_cores()):
        _say(f"{len(rows) + 1}/{len(names)}: {row.workload} {row.dtype} {row.status} {row.reason}")
        rows.append(row)
        page = simulated.to_markdown(rows, title=f"Simulated, {date}", conditions=conditions)
        if options.json:
            report = {"date": date, "conditions": conditions, "rows": simulated.to_json(rows)}
            options.json.write_text(json.dumps(report, indent=1) + "\n")
        if options.markdown:
            options.markdown.write_text(page)
    if not (options.json or options.markdown):
        print(page)
    return int(any(row.status in ("failed", "wrong") for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__)
    parser.add_argument("suite", nargs="+", choices=SUITES)
    parser.add_argument("--peers", type=_list, default=list(PEERS), help=f"systems, of {','.join(PEERS)}")
    parser.add_argument("--target", default="cpu", help="what ours compiles for; a GPU is simulated")
    parser.add_argument("--threads", type=int, default=available_cores(), help="of every system")
    parser.add_argument("--workloads", default="*", metavar="PATTERN", help="names, with * and ?")
    parser.add_argument("--dtypes", type=_list, default=["f32", "bf16"], help="of f32,f16,bf16")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="of timing for a workload, all systems together"
    )
    parser.add_argument("--rounds", type=int, default=3, help="each in fresh processes, on fresh inputs")
    parser.add_argument(
        "--limit", type=float, default=180.0, help="seconds that preparing a program may take"
    )
    parser.add_argument(
        "--alone",
        default="",
        metavar="COMMAND",
        help="keeps others off the machine while times are taken: prints a line when it is free, ends with its input",
    )
    for form in ("json", "markdown", "plot"):
        parser.add_argument(f"--{form}", type=Path, metavar="FILE")
    return parser


def _list(text: str) -> list[str]:
    return text.split(",")


def _report(
    results: Sequence[Result],
    versions: dict[str, str],
    settings: Settings,
    plan: Plan,
    limits: dict[str, float] | None,
) -> Report:
    systems = list(results[0].records)
    return Report(
        date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        command=shlex.join(["benchmarks/run.py", *sys.argv[1:]]),
        machine=machine.describe(),
        limits=limits,
        versions={**versions, "tilewright": machine.revision(ROOT)},
        settings={
            "threads": settings.threads,
            "target": settings.target,
            "rounds": plan.rounds,
            "seconds": plan.seconds,
        },
        rows=make_rows(results),
        summary=summarize(results, systems),
    )


def _write(options: argparse.Namespace, report: Report) -> None:
    if options.json:
        options.json.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(to_markdown(report))


def _say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


def _error(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
