"""Implementation of `python -m fuzz`: printing, and writing of results."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tilewright.errors import ModelError, OutputError, TilewrightError
from tilewright.frontends.onnx import parse
from tilewright.system.workfolder import WorkFolder

from fuzz import hostile
from fuzz.hunt import Judge, Outcome, hunt
from fuzz.reproducer import write_reproducer
from fuzz.summary import as_text, summarize
from fuzz.tally import add_broken_inputs, add_graphs

Say = Callable[[str], None]


def fuzz(
    seeds: range,
    *,
    target: str,
    jobs: int | None,
    seconds: float | None,
    out: Path | None,
    small: bool,
    say: Say,
    kind: str = "all",
    tally: Path | None = None,
) -> dict[str, Any]:
    """Judges the random graphs of the seeds, of one of `kinds.KINDS`, writes reproducers of failures, and returns the
    summary, which is added to `tally`."""
    started = time.perf_counter()
    done = 0
    with _bar(len(seeds)) as advance:

        def progress(outcome: Outcome) -> None:
            nonlocal done
            advance(len(outcome.findings), len(outcome.verdicts) - done)
            done = len(outcome.verdicts)

        outcome = hunt(
            seeds, target=target, jobs=jobs or _cores(), progress=progress, seconds=seconds, kind=kind
        )
    summary = summarize(outcome, target=target, kind=kind, seconds=time.perf_counter() - started)
    say(as_text(summary))
    _keep(summary, out)  # reducing models takes minutes, and may be interrupted
    if tally is not None:
        together = add_graphs(tally, summary)
        say(
            f"{together['graphs']} graphs in all runs, {together['passed']} passed, {together['refused']} refused"
        )
    folder = out or Path(tempfile.mkdtemp(prefix="tilewright-findings-")) if outcome.findings else out
    for finding, entry in zip(outcome.findings, summary["failures"], strict=True):
        assert folder is not None
        say(f"{finding.verdict.kind}: {finding.verdict.message}")
        made = write_reproducer(finding, folder, target=target, small=small, kind=kind)
        entry["reproducer"] = made.command
        say(f"  {made.nodes} nodes: {made.command}")
        _keep(summary, out)
    return summary


def _keep(summary: dict[str, Any], out: Path | None) -> None:
    if out is not None:
        write_json(summary, out / "summary.json")


def feed_hostile(
    seeds: range,
    *,
    jobs: int | None,
    seconds: float | None,
    out: Path | None,
    corpus: Path | None,
    tally: Path | None,
    say: Say,
) -> int:
    """Feeds broken inputs, writes those that are not refused cleanly as they are found, adds the figures to `tally`,
    and returns the number of findings."""
    started = time.perf_counter()
    found: list[str] = []
    folder = out
    with _bar(len(seeds)) as advance:

        def progress(case: hostile.Case) -> None:
            nonlocal folder
            if case.is_finding:
                folder = folder or Path(tempfile.mkdtemp(prefix="tilewright-findings-"))
                path = folder / f"hostile-{case.seed}{case.suffix}"
                write(case.data, path)
                found.append(
                    f"{case.outcome}: {case.message}; {case.mutation}: {shlex.join([*case.command, str(path)])}"
                )
            advance(len(found))

        cases = hostile.feed(seeds, jobs=jobs or _cores(), corpus=corpus, progress=progress, seconds=seconds)
    summary = hostile.summarize(cases, seconds=time.perf_counter() - started)
    for kind, outcomes in summary["by_kind"].items():
        say(f"{kind}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    for line in found:
        say(line)
    if out is not None:
        write_json(summary, out / "hostile.json")
    if tally is not None:
        together = add_broken_inputs(tally, summary)
        say(f"{together['inputs']} broken inputs in all runs: {together['outcomes']}")
    return len(found)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def write_json(summary: dict[str, Any], path: Path) -> None:
    """Writes a summary as JSON."""
    write((json.dumps(summary, indent=2) + "\n").encode(), path)


def write(data: bytes, path: Path) -> None:
    """Writes a file, and makes its folder if necessary."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None


def replay(path: Path, *, seed: int, target: str, say: Say, kind: str = "all") -> None:
    """Judges one model again. Raises an error that says what is wrong with it."""
    try:
        model = parse(path.read_bytes(), name=str(path))
    except OSError as error:
        raise ModelError(f"cannot be read ({error.strerror})", where=str(path)) from None
    with WorkFolder("fuzz") as folder:
        judge = Judge(folder, target=target, kind=kind)
        verdict = judge.model(model, seed)
        judge.close()
    if verdict.kind != "passed":
        raise TilewrightError(f"{verdict.kind}: {verdict.message}", where=str(path))
    say(f"passed: {verdict.error:.1e} from float64, at most {verdict.tolerance:.1e}")


class _Advance(Protocol):
    def __call__(self, failed: int, by: int = 1) -> None: ...


@contextlib.contextmanager
def _bar(total: int) -> Iterator[_Advance]:
    """Shows a progress bar, on terminals only, with the number of judged and failed graphs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("0 failed", total=total)

        def advance(failed: int, by: int = 1) -> None:
            bar.update(task, advance=by, description=f"{failed} failed")

        yield advance
