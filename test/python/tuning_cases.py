"""A model to tune, a stub of the clock, and decisions, for the tests of tuning."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import tilewright
from tilewright import Plan, Target
from tilewright.tuning.database import Decision
from tilewright.tuning.timer import Build

Rank = Callable[[Plan], float]

TARGET = Target.lookup("x86-64-avx2")


class StubTimer:
    """A timer whose seconds are a function of the plan. It counts its requests and may be interrupted."""

    def __init__(self, rank: Rank, *, interrupt_at: int | None = None) -> None:
        self._rank, self._interrupt_at = rank, interrupt_at
        self.asked: list[str] = []

    def __enter__(self) -> StubTimer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def seconds(self, build: Build) -> float:
        if len(self.asked) == self._interrupt_at:
            raise KeyboardInterrupt
        self.asked.append(build.candidate)
        return self._rank(Plan.load(build.folder / "plan.json"))


def halves(plan: Plan) -> float:
    """Prefers plans of one kernel that cut the rows into two tiles."""
    part = plan.kernels[0].groups[0]
    return 1e-3 if len(plan.kernels) == 1 and 2 * part.tiles[0] == part.extents[0] else 2e-3


def cut(plan: Plan) -> float:
    return 1e-3 / len(plan.kernels)


def tune(model: Path, database: Path, timer: StubTimer, *, candidates: int = 6) -> tilewright.Tuning:
    return tilewright.tune(
        model, TARGET, threads=[2], database=database, candidates=candidates, jobs=1, timer=timer
    )


def compile_rows(model: Path, *, database: Path | bool) -> tilewright.Program:
    return tilewright.compile(model, TARGET, threads=[2], tuning=database)


def decision(key: str = "key", *, at: str = "2026-01-01T00:00:00+00:00", ratio: float = 0.5) -> Decision:
    return Decision(
        key=key,
        name="kernel",
        target=TARGET.name,
        plan=Plan(target=TARGET.name, policy="greedy"),
        seconds=1e-3,
        unmeasured_seconds=2e-3,
        unfused_seconds=None,
        ratio=ratio,
        ratio_low=ratio,
        ratio_high=ratio,
        candidates=3,
        machine="a machine",
        measured_at=at,
    )


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")


def damaged(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
