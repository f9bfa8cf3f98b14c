"""Judging of many seeds in processes that may die."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import ModelProto
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import Worker, WorkerDied, WorkerTooSlow

from fuzz import CHECKOUT
from fuzz.drive import drive
from fuzz.judge import GRAPHS_PER_MODULE, Verdict

# A compilation takes one or two seconds, and some more with a simulated device; the limit allows for a busy machine.
LIMIT_SECONDS = 300.0


# The name of a graph's part of a module, in the location of an error.
_NAMED = re.compile(r"\bg(\d+)/")


@dataclass(frozen=True)
class Finding:
    """A failure of one graph, or of several graphs that fail only together."""

    seeds: tuple[int, ...]
    verdict: Verdict


@dataclass
class Outcome:
    """Results of a hunt."""

    verdicts: dict[int, Verdict] = field(default_factory=dict)
    operators: Counter[str] = field(default_factory=Counter)
    """Number of operators in the graphs that count."""
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.verdicts |= other.verdicts
        self.operators += other.operators
        self.findings += other.findings


class Judge:
    """A process that judges, one request at a time. Its death is a verdict."""

    def __init__(
        self, folder: Path, *, target: str, kind: str = "all", limit_seconds: float = LIMIT_SECONDS
    ) -> None:
        self._target = target
        self._kind = kind
        self._worker = Worker(folder, module="fuzz.worker", search=(CHECKOUT,), limit_seconds=limit_seconds)

    def close(self) -> None:
        self._worker.close()

    def model(self, model: ModelProto, seed: int, *, dump_dir: Path | None = None) -> Verdict:
        """Judges one model, with inputs from this seed."""
        header = {
            "request": "fuzz.answers:judge_model",
            "seed": seed,
            "kind": self._kind,
            "dump_dir": str(dump_dir) if dump_dir else None,
        }
        answer = self._ask(header, model.SerializeToString())
        return answer if isinstance(answer, Verdict) else Verdict(**answer["verdict"])

    def seeds(self, seeds: Sequence[int]) -> Outcome:
        """Judges random graphs all at once.

        Those with wrong numbers are judged again one by one, and a module that does not run is halved until it does.
        """
        answer = self._ask({"request": "fuzz.answers:judge_seeds", "seeds": list(seeds), "kind": self._kind})
        operators: dict[int, Counter[str]] = {}
        if isinstance(answer, Verdict):
            together = Outcome(dict.fromkeys(seeds, answer))
        else:
            verdicts = {int(seed): Verdict(**raw) for seed, raw in answer["verdicts"].items()}
            operators = {
                int(seed): Counter(raw)
                for seed, raw in answer["operators"].items()
                if verdicts[int(seed)].counts
            }
            together = Outcome(verdicts, sum(operators.values(), Counter()))
        failed = [seed for seed in seeds if together.verdicts[seed].failed]
        if len(seeds) == 1:
            together.findings += [Finding((seed,), together.verdicts[seed]) for seed in failed]
            return together
        apart = Outcome()
        for some in _to_judge_again(seeds, together):
            apart.add(self.seeds(some))
            for seed in some:
                together.operators -= operators.get(seed, Counter())
        if failed and not apart.findings:
            apart.findings.append(Finding(tuple(seeds), together.verdicts[failed[0]]))
        together.verdicts |= apart.verdicts
        together.operators += apart.operators
        together.findings = apart.findings
        return together

    def _ask(self, header: dict[str, Any], blob: bytes = b"") -> dict[str, Any] | Verdict:
        try:
            answer, _, _ = self._worker.ask({**header, "target": self._target}, blob)
        except WorkerTooSlow as death:
            return Verdict(kind="hang", message=death.how)
        except WorkerDied as death:
            return Verdict(kind="crash", message=death.how)
        if not answer.get("ok", True):
            return Verdict(kind="oracle", message=answer["error"])
        return answer


def _to_judge_again(seeds: Sequence[int], together: Outcome) -> list[Sequence[int]]:
    """Returns the groups of graphs that the verdict on all of them leaves open."""
    bad = [seed for seed in seeds if together.verdicts[seed].kind != "passed"]
    if len(bad) < len(seeds) or all(together.verdicts[seed].kind == "wrong numbers" for seed in bad):
        return [[seed] for seed in bad]
    named = _NAMED.search(together.verdicts[bad[0]].message)
    if named is not None and (culprit := int(named[1])) in seeds:
        return [[culprit], [seed for seed in seeds if seed != culprit]]
    half = len(seeds) // 2
    return [seeds[:half], seeds[half:]]


def hunt(
    seeds: Sequence[int],
    *,
    target: str,
    jobs: int,
    progress: Callable[[Outcome], None],
    seconds: float | None = None,
    kind: str = "all",
) -> Outcome:
    """Judges all seeds; with `seconds`, the first module and those that start within that time.

    `kind` is one of `kinds.KINDS`. `progress` receives the results so far.
    """
    outcome = Outcome()
    end = math.inf if seconds is None else time.monotonic() + seconds
    batches = [seeds[start : start + GRAPHS_PER_MODULE] for start in range(0, len(seeds), GRAPHS_PER_MODULE)]

    def judged(batch: Sequence[int], judge: Judge) -> Outcome:
        if batch[0] != seeds[0] and time.monotonic() > end:
            return Outcome()
        return judge.seeds(batch)

    def done(part: Outcome) -> None:
        outcome.add(part)
        progress(outcome)

    with WorkFolder("fuzz") as folder:
        drive(
            batches,
            judged,
            jobs=jobs,
            process=lambda: Judge(folder, target=target, kind=kind),
            done=done,
        )
    return outcome
