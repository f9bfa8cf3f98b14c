"""Tally of many runs of the fuzzer in one file: each run adds what it judged, and the totals follow."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tilewright.errors import OutputError

from benchmarks.machine import describe, revision
from fuzz import CHECKOUT


def add_to_tally(path: Path, summary: dict[str, Any]) -> dict[str, Any]:
    """Adds a run's summary to the file, which need not exist, and returns the totals of all runs."""
    try:
        runs = json.loads(path.read_text())["runs"] if path.exists() else []
        runs = [*runs, _run(summary)]
        tally = {"totals": totals(runs), "runs": runs}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(tally, indent=1) + "\n")
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None
    except (ValueError, KeyError):
        raise OutputError("is no tally", where=str(path), hint="give another file") from None
    return dict(tally["totals"])


def _run(summary: dict[str, Any]) -> dict[str, Any]:
    kept = ("date", "target", "kind", "seeds", "seconds", "graphs", "passed", "passed_and_counted")
    machine = describe()
    return {
        **{name: summary[name] for name in kept},
        "commit": revision(CHECKOUT),
        "machine": {name: machine[name] for name in ("processor", "cores")},
        "refused": summary["refused"],
        "failures": summary["failures"],
    }


def totals(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns what all runs add up to: graphs by kind, and what became of them."""
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
