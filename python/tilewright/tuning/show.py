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
    """Prints a row for every distinct subprogram, and the sum."""
    table = Table(title=f"{model}, {spell_threads(tuning.threads)}", title_justify="left")
    for heading in ("subprogram", "times", "time", "of unmeasured", "unfused", "plans", ""):
        table.add_column(heading, justify="left" if heading in ("subprogram", "") else "right")
    for tuned in tuning.subprograms:
        decision = tuned.decision
        table.add_row(
            decision.name,
            str(tuned.count),
            _microseconds(decision.seconds),
            f"{decision.ratio:.3f}",
            _microseconds(decision.unfused_seconds),
            str(decision.candidates),
            " ".join(
                ["measured now" if tuned.is_new else f"known since {decision.measured_at}"]
                + ([] if decision.is_fused else [f"cut into {len(decision.plan.kernels)} kernels"])
            ),
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    if tuning.subprograms:
        share = tuning.seconds / tuning.unmeasured_seconds
        console.print(f"all kernels: {_microseconds(tuning.seconds)}, {share:.3f} of the unmeasured plan")
    console.print(f"stored in {tuning.database}")


def decision_line(decision: Decision) -> str:
    """Formats a decision as one line."""
    return (
        f"{decision.key[:12]} {decision.target} {decision.name}: {_microseconds(decision.seconds)}, "
        f"{decision.ratio:.3f} of the unmeasured plan, {decision.candidates} plans, {decision.measured_at}, "
        f"{decision.machine}"
    )


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f} µs"
