"""Runs suites of workloads on our compiler and its peers and reports who is faster where (docs/guide/benchmarks.md)."""

from __future__ import annotations

import datetime
import json
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# For a script, the path has this file's folder instead of the checkout.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tilewright.records.targets import resolve_targets
from tilewright.system.cores import available_cores
from tilewright.system.workfolder import WorkFolder

from benchmarks import machine, policies, simulated
from benchmarks.alone import alone
from benchmarks.client import ROOT
from benchmarks.measure import Plan, Result, measure
from benchmarks.options import Options, parse
from benchmarks.peers import LIMITS, PEERS, Settings
from benchmarks.plot import plot
from benchmarks.report import Report, to_markdown
from benchmarks.rows import make_rows, summarize
from benchmarks.suites import MEMORY_BOUND, select
from benchmarks.workloads import Workload


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == "policies":
        return policies.main(given[1:])
    options = parse(arguments, description=__doc__)
    workloads = select(options.suite, dtypes=options.dtypes, pattern=options.workloads)
    if not workloads:
        return _error(
            f"no workload of {', '.join(options.suite)} in {', '.join(options.dtypes)} is called "
            f"'{options.workloads}'; python -m benchmarks.workloads --list names them"
        )
    try:
        return _simulate(workloads, options) if options.is_simulated else _measure(workloads, options)
    except ChildProcessError as error:
        return _error(str(error))
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _measure(workloads: Sequence[Workload], options: Options) -> int:
    settings = Settings(threads=options.threads, target=options.target)
    plan = Plan(
        rounds=options.rounds, seconds=options.seconds, prepare_limit=options.limit, alone=options.alone
    )
    report: Report | None = None
    with WorkFolder("benchmarks") as folder:
        with alone(plan.alone):
            width = resolve_targets(settings.target, threads=settings.threads)[-1].vector_bytes
            limits = machine.limits(folder, threads=settings.threads, vector_bytes=width)
        peers = {name: PEERS[name] for name in options.peers}
        if MEMORY_BOUND.issuperset(options.suite):
            peers |= LIMITS
        try:
            for results, versions in measure(workloads, peers, settings, plan, folder=folder, say=_say):
                report = _report(results, versions, settings, plan, limits)
                _write(options, report)
        finally:
            # An interrupted run writes the report, too.
            if report is not None and options.plot:
                plot(report, options.plot)
            if report is not None and not options.writes_files:
                print(to_markdown(report))
    return 0


def _simulate(workloads: Sequence[Workload], options: Options) -> int:
    """Runs GPU kernels on the simulated device, where there are no peers to compare with."""
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


def _report(
    results: Sequence[Result],
    versions: dict[str, str],
    settings: Settings,
    plan: Plan,
    limits: dict[str, Any] | None,
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


def _write(options: Options, report: Report) -> None:
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
    # Signals of `timeout` and similar tools end a run like Ctrl-C does: peers' processes end, and the report is
    # written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
