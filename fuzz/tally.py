"""Tally of many runs of the fuzzer in one file: each run adds what it judged, and the totals follow.

The file has a section for random graphs and one for broken inputs, each with its runs and with what they add up to.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tilewright.errors import OutputError

from benchmarks.machine import describe, revision
from fuzz import CHECKOUT

Section = Literal["graphs", "broken_inputs"]
Runs = Sequence[dict[str, Any]]


def add_graphs(path: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """Adds a run on random graphs to the file, which need not exist, and returns the totals of all such runs."""
    kept = ("date", "target", "kind", "seeds", "seconds", "graphs", "passed", "passed_and_counted")
    return _add(path, "graphs", summary, (*kept, "refused", "failures"))


def add_broken_inputs(path: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """Adds a run on broken inputs to the file, which need not exist, and returns the totals of all such runs."""
    return _add(
        path, "broken_inputs", summary, ("date", "seeds", "seconds", "inputs", "outcomes", "findings")
    )


def _add(path: Path, section: Section, summary: dict[str, Any], kept: Sequence[str]) -> dict[str, Any]:
    try:
        tally = json.loads(path.read_text()) if path.exists() else None
        runs = {name: [] if tally is None else list(tally[name]["runs"]) for name in _TOTALS}
        runs[section].append({**{name: summary[name] for name in kept}, **_origin()})
        tally = {name: {"totals": totals(runs[name]), "runs": runs[name]} for name, totals in _TOTALS.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(tally, indent=1) + "\n")
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None
    except (ValueError, KeyError, TypeError):
        raise OutputError("is no tally", where=str(path), hint="give another file") from None
    return dict(tally[section]["totals"])


def _origin() -> dict[str, Any]:
    """Returns the commit and the machine of a run."""
    machine = describe()
    return {
        "commit": revision(CHECKOUT),
        "machine": {name: machine[name] for name in ("processor", "cores")},
    }


def _of_graphs(runs: Runs) -> dict[str, Any]:
    """Returns graphs by kind, and what became of them."""
    refused: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for run in runs:
        refused.update(run["refused"])
        failed.update(failure["kind"] for failure in run["failures"])
    return {
        "graphs": sum(run["graphs"] for run in runs),
        "graphs_by_kind": dict(sum((Counter({run["kind"]: run["graphs"]}) for run in runs), Counter())),
        "passed": sum(run["passed"] for run in runs),
        "refused": sum(refused.values()),
        "refused_by_reason": dict(refused.most_common()),
        "failures_by_kind": dict(failed),
        "seconds": sum(run["seconds"] for run in runs),
    }


def _of_broken_inputs(runs: Runs) -> dict[str, Any]:
    """Returns inputs, and what became of them."""
    return {
        "inputs": sum(run["inputs"] for run in runs),
        "outcomes": dict(sum((Counter(run["outcomes"]) for run in runs), Counter())),
        "seconds": sum(run["seconds"] for run in runs),
    }


_TOTALS = {"graphs": _of_graphs, "broken_inputs": _of_broken_inputs}
