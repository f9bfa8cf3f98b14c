"""Summary of a hunt in figures: as text for people, and as JSON for storage."""

from __future__ import annotations

import datetime
import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilewright.reference.oracle import tolerance

from fuzz.builder import NUMPY_TYPES
from fuzz.hunt import Outcome
from fuzz.judge import LEAST_SHARE, skeleton
from fuzz.kinds import KINDS

_PACKAGES = ("tilewright", "iree-base-compiler", "iree-base-runtime", "onnx", "onnxruntime", "numpy")

TOLERANCES = frozenset(tolerance(dtype) for dtype in NUMPY_TYPES.values())


def summarize(outcome: Outcome, *, target: str, seconds: float, kind: str = "all") -> dict[str, Any]:
    """Returns all figures. A graph counts if our kernels ran at least 90% of the ops that must run in some kernel."""
    verdicts = list(outcome.verdicts.values())
    passed = [verdict for verdict in verdicts if verdict.kind == "passed"]
    reasons = {s: skeleton(v.message) for s, v in outcome.verdicts.items() if v.kind == "refused"}
    refused = Counter(reasons.values())
    counted = [verdict for verdict in passed if verdict.counts]
    nothing = [verdict for verdict in passed if not verdict.eligible]
    eligible = sum(verdict.eligible for verdict in passed)
    below = [s for s, v in outcome.verdicts.items() if v.kind == "passed" and v.eligible and not v.has_share]
    pair_counts = {f"{op} {dtype}": outcome.operators[f"{op} {dtype}"] for op, dtype in KINDS[kind].pairs}
    pair_counts = pair_counts or dict(outcome.operators)
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **_versions()},
        "target": target,
        "kind": kind,
        "seeds": [min(outcome.verdicts), max(outcome.verdicts) + 1],
        "seconds": round(seconds),
        "graphs": len(verdicts),
        "passed": len(passed),
        "refused": dict(refused.most_common()),
        "refused_seeds": {reason: [s for s in reasons if reasons[s] == reason] for reason in refused},
        "passed_and_counted": len(counted),
        "nothing_to_run": len(nothing),
        "below_the_share": len(below),
        "seeds_below_the_share": below,
        "not_compared": sum(not verdict.is_compared for verdict in passed),
        "ops_eligible": eligible,
        "ops_in_our_kernels": sum(verdict.taken for verdict in passed),
        # These graphs must meet the bound of a type; the others lose their digits in any evaluation.
        "largest_error_by_tolerance": {
            f"{limit:.0e}": max(v.error for v in passed if v.tolerance == limit)
            for limit in sorted({v.tolerance for v in passed} & TOLERANCES)
        },
        "ill_conditioned": sum(v.tolerance not in TOLERANCES for v in passed),
        "failures_by_kind": dict(Counter(finding.verdict.kind for finding in outcome.findings)),
        "failures": [
            {"seeds": list(finding.seeds), "kind": finding.verdict.kind, "message": finding.verdict.message}
            for finding in outcome.findings
        ],
        "rarest_operator": min(pair_counts.values(), default=0),
        "operators": dict(sorted(pair_counts.items())),
    }


def as_text(summary: dict[str, Any]) -> str:
    """Returns the most important figures, one on each line."""
    eligible, taken = summary["ops_eligible"], summary["ops_in_our_kernels"]
    rare = sorted(summary["operators"].items(), key=lambda entry: entry[1])[:5]
    lines = [
        f"{summary['graphs']} graphs, {summary['passed']} passed, in {summary['seconds']} s",
        f"{summary['passed_and_counted']} had at least {LEAST_SHARE:.0%} of their ops in our kernels, "
        f"{summary['below_the_share']} had less, {summary['nothing_to_run']} had nothing to run, "
        f"{summary['not_compared']} were not compared, because IREE runs a part",
        f"ops in our kernels: {taken} of {eligible} ({taken / max(1, eligible):.2%})",
        f"{len(summary['operators'])} pairs of operator and type; the rarest: "
        + ", ".join(f"{name} {count}" for name, count in rare),
        "largest errors: "
        + ", ".join(f"{e:.1e} (at most {t})" for t, e in summary["largest_error_by_tolerance"].items()),
    ]
    lines += [f"{count} x refused: {reason}" for reason, count in summary["refused"].items()]
    lines += [f"{count} x {kind}" for kind, count in summary["failures_by_kind"].items()]
    return "\n".join(lines)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
