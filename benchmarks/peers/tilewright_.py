"""Tilewright, compiled as a user does, with the better of the flags for the ops that stay with IREE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tilewright
from tilewright.compare.comparison import IREE_CANDIDATES, as_extra_flags, count_kernels
from tilewright.iree.compiler import IreeCompiler
from tilewright.simulator.traffic import measure_traffic
from tilewright.system.version import package_version
from tilewright.worker.process import Worker

from benchmarks.peers import Array, Facts, Settings, UnsupportedError
from benchmarks.peers.iree_alone import IreeProgram, quickest
from benchmarks.peers.iree_source import import_repeated


class Tilewright:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def versions(self) -> dict[str, str]:
        return {"tilewright": package_version()}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> IreeProgram:
        saved, described = cache / f"{repetitions}.vmfb", cache / f"{repetitions}.facts.json"
        if not described.exists():
            facts = self._compile(model, inputs, repetitions, cache, saved)
            described.write_text(json.dumps(asdict(facts)))
        return _bound(tilewright.load(saved), inputs, Facts(**json.loads(described.read_text())))

    def _compile(
        self, model: Path, inputs: Sequence[Array], repetitions: int, cache: Path, saved: Path
    ) -> Facts:
        with Worker(cache) as worker:
            iree = IreeCompiler(worker)
            weights = cache / str(repetitions)
            weights.mkdir()
            imported = import_repeated(model, iree=iree, folder=weights)
            source: str | Path = imported.source.decode() if repetitions > 1 else model
            parameters = imported.parameters if repetitions > 1 else {}
            best: float | None = None
            for number, extra in enumerate(self._candidates(cache)):
                dump = cache / f"{repetitions}-{number}"
                try:
                    program = self._program(source, parameters, extra, dump, repetitions)
                except tilewright.IreeError:
                    if best is None:
                        raise
                    continue
                kernels = count_kernels(program, dump, iree)
                seconds = quickest(_bound(program, inputs, Facts()))
                if best is None or seconds < best:
                    best, facts = (
                        seconds,
                        _facts(program, kernels, dump, extra, allowed=self._settings.threads),
                    )
                    self._check_runtime(program, cache, repetitions)
                    program.save(saved)
                if kernels == len(program.kernels):
                    break  # the flags only affect ops that stay with IREE
            return facts

    def _check_runtime(self, program: tilewright.Program, cache: Path, repetitions: int) -> None:
        """Refuses repetitions that IREE runs if it does not run the workload alone: their slope is not its time."""
        if repetitions > 1 and program.runtime != _of_single(cache)["runtime"]:
            raise UnsupportedError(
                f"runtime '{program.runtime}' runs repetitions, and another one the workload"
            )

    def _program(
        self,
        source: str | Path,
        parameters: dict[str, Path],
        extra: Sequence[str],
        dump: Path,
        repetitions: int,
    ) -> tilewright.Program:
        """Compiles as users do; a part of a larger program runs on as many threads as that program."""
        threads = self._settings.threads
        return tilewright.compile(
            source,
            self._settings.target,
            threads=threads if repetitions == 1 else [threads],
            iree_flags=extra,
            tuning=False,
            parameters=parameters,
            dump_dir=dump,
            cache=False,
        )

    def _candidates(self, cache: Path) -> Sequence[Sequence[str]]:
        """Returns the candidate flags; repetitions are compiled with those that were best for the workload itself."""
        if single := _of_single(cache):
            return [single["iree_flags"]]
        return [as_extra_flags(flags) for flags in IREE_CANDIDATES]


def _of_single(cache: Path) -> dict[str, Any]:
    """Returns what is known of the program of a single repetition; {} if it is not compiled yet."""
    described = cache / "1.facts.json"
    return dict(json.loads(described.read_text())["extra"]) if described.exists() else {}


def _bound(program: tilewright.Program, inputs: Sequence[Array], facts: Facts) -> IreeProgram:
    return IreeProgram(program.bind(*inputs), facts)


def _facts(
    program: tilewright.Program, kernels: int, dump: Path, extra: Sequence[str], *, allowed: int
) -> Facts:
    # The traffic of IREE's own kernels is not measured, so only a program of our kernels has a sum.
    is_all_ours = kernels == len(program.kernels)
    moved = sum(kernel.loaded + kernel.stored for kernel in measure_traffic(dump)) if is_all_ours else None
    threads = program.metadata.threads
    taken = f"{threads} thread{'s' * (threads > 1)}"
    if threads != allowed:
        taken += f" (repetitions {allowed})"
    detail = ", ".join([f"{len(program.kernels)} fused, {taken}", *extra])
    known = {"iree_flags": list(extra), "runtime": program.runtime}
    return Facts(kernels=kernels, bytes_moved=moved, detail=detail, extra=known)
