"""Shows the progress and results of tuning on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from tilewright.system.cores import spell_threads
from tilewright.tuning.database import Decision
from tilewright.tuning.tuner import Progress, Step, Tuning


@contextlib.contextmanager
def tuning_progress() -> Iterator[Progress]:
    """Shows two bars on a terminal, for the subprograms and for the steps of one; elsewhere a line per subprogram."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        whole, part = bar.add_task("subprograms", total=None), bar.add_task("", total=None)

        def show(step: Step) -> None:
            bar.update(whole, completed=step.subprogram - 1, total=step.subprograms)
            bar.update(
                part, description=f"{step.doing}: {step.name}", completed=step.done, total=step.of or None
            )

        yield show


class _Lines:
    def __init__(self) -> None:
        self._last = 0

    def __call__(self, step: Step) -> None:
        if step.subprogram != self._last:
            self._last = step.subprogram
            print(f"{step.subprogram}/{step.subprograms}: {step.name}", file=sys.stderr, flush=True)


def print_tuning(model: str, tuning: Tuning) -> None:
    """Prints a row for every form whose opposite won, for every distinct region in which another plan won, and for
    every distinct subprogram, and the sum."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(f"{model}, {spell_threads(tuning.threads)}")
    forms = [form for form in tuning.forms if form.is_changed]
    if tuning.forms:
        console.print(f"forms: the opposite choice won for {len(forms)} of {len(tuning.forms)}")
    if forms:
        table = _table("form")
        for form in forms:
            outcome = f"{form.decision.region_ops} ops"
            _add(table, form.decision, form.count, is_new=form.is_new, outcome=outcome)
        console.print(table)
    changed = [region for region in tuning.regions if region.taken]
    console.print(f"regions: other kernels won in {len(changed)} of {len(tuning.regions)}")
    if changed:
        table = _table("region")
        for region in changed:
            decision = region.decision
            outcome = f"{decision.region_ops} ops in {_kernels(len(decision.plan.kernels))}"
            _add(table, decision, region.taken, is_new=region.is_new, outcome=outcome)
        console.print(table)
    table = _table("subprogram")
    for tuned in tuning.subprograms:
        decision = tuned.decision
        cut = "" if decision.is_fused else f"cut into {_kernels(len(decision.plan.kernels))}"
        _add(table, decision, tuned.count, is_new=tuned.is_new, outcome=cut)
    console.print(table)
    if tuning.subprograms:
        share = tuning.seconds / tuning.unmeasured_seconds
        console.print(f"all kernels: {_microseconds(tuning.seconds)}, {share:.3f} of the unmeasured plan")
    console.print(f"stored in {tuning.database}")


def _table(kind: str) -> Table:
    table = Table()
    for heading in (kind, "times", "time", "of unmeasured", "unfused", "plans", ""):
        table.add_column(heading, justify="left" if heading in (kind, "") else "right")
    return table


def _add(table: Table, decision: Decision, count: int, *, is_new: bool, outcome: str) -> None:
    table.add_row(
        decision.name,
        str(count),
        _microseconds(decision.seconds),
        f"{decision.ratio:.3f}",
        _microseconds(decision.unfused_seconds),
        str(decision.candidates),
        ", ".join(
            filter(None, [outcome, "measured now" if is_new else f"known since {decision.measured_at}"])
        ),
    )


def _kernels(count: int) -> str:
    return f"{count} kernel{'s' if count != 1 else ''}"


def decision_line(decision: Decision) -> str:
    """Formats a decision as one line."""
    return (
        f"{decision.key[:12]} {decision.target} {decision.name}: {_microseconds(decision.seconds)}, "
        f"{decision.ratio:.3f} of the unmeasured plan, {decision.candidates} plans, {decision.measured_at}, "
        f"{decision.machine}"
    )


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f} µs"
