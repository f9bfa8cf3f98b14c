"""Choice of the number of threads of a program: one, or as many as allowed.

More threads share the workgroups of a kernel, but each call and each kernel costs more: little where a program runs
without IREE, much on IREE's `local-task`.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

from tilewright.errors import CompileError
from tilewright.records.report import LeftOp, Report
from tilewright.records.targets import Target

# Seconds per call from Python with arrays, on one thread and on several: of IREE 3.13 (`local-sync`, `local-task`), and
# of programs that run without it. Those take about 5 us (benchmarks/call_costs.py); on several threads 10 more are
# charged, as a choice, because threads sleep if calls are more than 100 us apart and then come late. On Zen 3
# (2026-11-28) short ones then take 5 to 12 us longer than on one thread, and those of 100 us are no faster; without
# pauses short calls take 0.3 to 1 us longer, and two threads pay from 12 us on.
# Seconds per kernel besides its work, on one thread and on several, in IREE (Zen 4, 2026-11-28), and on one thread
# without it (Zen 3 and Zen 4, 0.03 to 0.16 us, 2026-11-28), where several take the target's launch time.
_CALL_SECONDS_IREE = (15e-6, 105e-6)
_CALL_SECONDS_DIRECT = (5e-6, 15e-6)
_KERNEL_SECONDS_IREE = (0.43e-6, 0.59e-6)
_KERNEL_SECONDS_DIRECT_ALONE = 0.1e-6

Threads = int | Sequence[int]
"""The most threads, or the numbers of threads to choose from."""


def checked_threads(threads: object) -> Threads:
    """Converts a caller's threads to Python integers. Raises `CompileError` for invalid values."""
    try:
        return index(threads)  # type: ignore[arg-type]
    except TypeError:
        pass
    try:
        return tuple(index(count) for count in threads)  # type: ignore[attr-defined]
    except TypeError as error:
        raise CompileError(
            f"threads is {threads!r}", hint="give the most threads, or a list of numbers to choose from"
        ) from error


def thread_choices(threads: Threads) -> tuple[int, ...]:
    """Returns the numbers of threads that a program may use, fewest first."""
    return tuple(sorted({1, threads} if isinstance(threads, int) else set(threads)))


def choose_threads(report: Report, target: Target, choices: Sequence[int]) -> int:
    """Returns the choice that is predicted fastest, or the target's cores if nothing is known of the program; 1, if it
    is a choice, for programs that IREE runs on one thread."""
    if not report.raw:
        return target.cores
    if 1 in choices and _computed_by_iree(report) and threads_in_iree(report, max(choices)) == 1:
        return 1
    return min(choices, key=lambda threads: predicted_seconds(report, target, threads=threads))


def predicted_seconds(report: Report, target: Target, *, threads: int) -> float:
    """Returns the predicted time in seconds of a call of a program that was planned for `target`.

    Tilewright's kernels take the time that the plan predicts. IREE's kernels take the time of their operations and
    bytes at the target's rates, which is a lower bound.
    """
    dispatches = len(_computed_by_iree(report))
    calls, each = (
        (_CALL_SECONDS_IREE, _KERNEL_SECONDS_IREE)
        if dispatches > 0
        else (_CALL_SECONDS_DIRECT, (_KERNEL_SECONDS_DIRECT_ALONE, target.launch_seconds))
    )
    seconds, dispatch = calls[threads > 1], each[threads > 1]
    for kernel in report.kernels:
        planned = kernel.predicted_seconds - target.launch_seconds
        busy, now_busy = (min(count, max(1, kernel.workgroups)) for count in (target.cores, threads))
        seconds += (dispatch + planned * busy / now_busy) * report.launches_of(kernel)
    return seconds + dispatches * dispatch + seconds_of_iree(report, target) * target.cores / threads


def _computed_by_iree(report: Report) -> list[LeftOp]:
    """Returns the ops for which a program needs IREE's runtime.

    A loop of a known number of steps is none by itself: if the ops of its body are in kernels of ours, it runs without
    IREE (docs/design/loops.md).
    """
    return [op for op in report.left_to_iree if op.is_dispatch and op.op != "scf.for"]


def threads_in_iree(report: Report, threads: int) -> int:
    """Returns the number of threads with which IREE runs a program that was planned for `threads`.

    It is one where IREE repeats ops or chooses between them: the queues of its `local-task` then use memory that is not
    allocated yet (`known_faults`, "loops on several threads").
    """
    repeats = any(not loop.kernel for loop in report.loops)
    return 1 if repeats or any(op.op.startswith("scf.") for op in report.left_to_iree) else threads


def seconds_of_iree(report: Report, target: Target) -> float:
    """Returns a lower bound of the seconds that IREE's kernels take on all of the target's cores, without launches."""
    bandwidth = target.levels[-1].bandwidth
    return sum(
        max(2 * op.operations / target.flops_per_second, op.bytes / bandwidth)
        for op in _computed_by_iree(report)
    )
