"""The report of a check as data and as a page, both ready for benchmarks/results/.

The correctness of whole programs comes first: each of our kernels may be right while the program is wrong, because IREE
computes the rest.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.gpu_check.means import (
    PEERS,
    call_seconds,
    kernel_ratio,
    matmul_figures,
    means_by_suite,
    means_table,
)
from benchmarks.gpu_check.worker import OURS, OURS_BARE, OURS_IREE, SYSTEMS
from benchmarks.tables import table

LARGE_BYTES = 64e6
"""Bytes from which a workload is compared with the bandwidth of a copy."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """Results of a system on a workload."""

    workload: str
    dtype: str
    system: str
    status: str
    """ok, wrong, failed, unsupported, crashed, timed out, not installed, or no time."""
    reason: str = ""
    error: float | None = None
    """‖y − y64‖ / ‖y64‖, estimated; None where the system computes only a part."""
    kernel_s: float | None = None
    call_s: float | None = None
    samples: int = 0
    launches_s: Sequence[float] = ()
    resources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Resources of our kernels, as the driver's assembler reports them."""


@dataclass(frozen=True)
class Programs:
    """Results of comparing whole programs with float64, each as "workload dtype"."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]
    unchecked: tuple[str, ...]
    """Programs that failed or that the time did not reach."""

    @property
    def is_right(self) -> bool:
        """True if every program was checked and right."""
        return not self.wrong and not self.unchecked


def judge_programs(rows: Sequence[Row], manifest: Mapping[str, Any]) -> Programs:
    """Sorts the results of a run's whole programs."""
    status = {f"{r.workload} {r.dtype}": r.status for r in rows if r.system == OURS_IREE}
    names = [f"{entry['workload']} {entry['dtype']}" for entry in manifest["workloads"]]
    return Programs(
        right=tuple(name for name in names if status.get(name) == "ok"),
        wrong=tuple(name for name in names if status.get(name) == "wrong"),
        unchecked=tuple(name for name in names if status.get(name) not in ("ok", "wrong")),
    )


def to_json(
    rows: Sequence[Row],
    manifest: Mapping[str, Any],
    *,
    gpu: Mapping[str, Any],
    versions: Mapping[str, Any],
    date: str,
) -> dict[str, Any]:
    """Returns the report: every row, and for every workload the figures that compare them."""
    workloads = [_compare(entry, rows, gpu.get("copy_gb_per_s")) for entry in manifest["workloads"]]
    about = {key: manifest[key] for key in ("target", "revision", "bundled")}
    return {
        "date": date,
        "gpu": dict(gpu),
        "versions": dict(versions),
        "bundle": about,
        "programs": asdict(judge_programs(rows, manifest)),
        "summary": _summarize(workloads),
        "workloads": workloads,
        "rows": [asdict(row) for row in rows],
    }


def _compare(entry: Mapping[str, Any], rows: Sequence[Row], copy: float | None) -> dict[str, Any]:
    """Compares one workload: our time over the best peer's, over the prediction, and over that of a copy of the same
    bytes."""
    here = {r.system: r for r in rows if (r.workload, r.dtype) == (entry["workload"], entry["dtype"])}
    kernels = {name: r.kernel_s for name, r in here.items() if r.kernel_s is not None}
    calls = {name: r.call_s for name, r in here.items() if r.call_s is not None}
    # If IREE computes a part, our kernels alone are not the workload.
    ours = kernels.get(OURS_BARE) if entry["is_all_ours"] else None
    peer = _best(kernels)
    call_peer = _best(calls)
    whole, bytes_ = call_seconds(calls), entry["compulsory_bytes"]
    measured: Sequence[float | None] = here[OURS_BARE].launches_s if OURS_BARE in here else ()
    return {
        "suite": entry["suite"],
        "workload": entry["workload"],
        "dtype": entry["dtype"],
        "ratio": ours / kernels[peer] if ours and peer else None,
        "best_peer": peer,
        "call_ratio": whole / calls[call_peer] if whole and call_peer else None,
        "call_best_peer": call_peer,
        "status": {name: r.status for name, r in here.items()},
        "kernel_s": kernels,
        "call_s": calls,
        "predicted_s": entry["predicted_s"],
        "measured_over_predicted": ours / entry["predicted_s"] if ours and entry["predicted_s"] else None,
        "kernels": [
            {**kernel, "measured_s": seconds}
            for kernel, seconds in zip(
                entry["kernels"], measured or (None,) * len(entry["kernels"]), strict=True
            )
        ],
        "compulsory_bytes": bytes_,
        "share_of_copy": bytes_ / ours * 1e-9 / copy if ours and copy and bytes_ else None,
        "errors": {name: r.error for name, r in here.items() if r.error is not None},
    }


def _best(seconds: Mapping[str, float]) -> str | None:
    peers = [name for name in seconds if name not in OURS]
    return min(peers, key=lambda name: seconds[name], default=None)


def _summarize(workloads: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    def median(values: Sequence[float]) -> float | None:
        return statistics.median(values) if values else None

    def known(key: str) -> list[float]:
        return [w[key] for w in workloads if w[key] is not None]

    deviations = [abs(ratio - 1) for ratio in known("measured_over_predicted")]
    large = [
        w["share_of_copy"]
        for w in workloads
        if w["share_of_copy"] is not None and w["compulsory_bytes"] >= LARGE_BYTES
    ]
    over = {
        name: [ratio for w in workloads if (ratio := kernel_ratio(w, name)) is not None] for name in PEERS
    }
    return {
        "median_ratio_to_best_peer": median(known("ratio")),
        "median_ratio_to": {name: median(ratios) for name, ratios in over.items() if ratios},
        "median_call_ratio_to_best_peer": median(known("call_ratio")),
        "median_deviation_from_prediction": median(deviations),
        "median_measured_over_predicted": median(known("measured_over_predicted")),
        "least_share_of_copy_from_64_mb": min(large, default=None),
        "ours_ok": sum(w["status"].get(name) == "ok" for w in workloads for name in OURS),
        "ours_not_ok": sum(
            w["status"].get(name, "ok") not in ("ok", "no time") for w in workloads for name in OURS
        ),
        **matmul_figures(workloads),
        "by_suite": means_by_suite(workloads),
    }


def to_markdown(report: Mapping[str, Any]) -> str:
    """Returns the page: the machine, the summary, means by suite, a table of workloads, and the failures."""
    gpu = report["gpu"].get("gpu", "no GPU")
    conditions = [
        f"{gpu}: " + ", ".join(f"{name} {value}" for name, value in report["gpu"].items() if name != "gpu"),
        ", ".join(f"{name} {version}" for name, version in report["versions"].items()),
        f"tilewright {report['bundle']['revision']}, compiled for {report['bundle']['target']}",
    ]
    figures = {name: value for name, value in report["summary"].items() if name != "by_suite"}
    summary = [[name.replace("_", " "), _plain(value)] for name, value in figures.items()]
    means = (
        "Geometric means of our kernels' times over each peer's, for workloads that are all ours, and of whole calls "
        "(without IREE, where that was timed) over the peer's; numbers of workloads are in brackets:"
    )
    legend = (
        "ratio: our kernels over the best peer's, both by the GPU's clock with a cold L2; call: a whole call of ours "
        "(without IREE, where that was timed) over the best peer's, by the host's clock; the rest in µs, kernels and "
        "(calls); predicted: the compiler's prediction; copy: share of the bandwidth of a copy, for compulsory bytes"
    )
    return "\n\n".join(
        [
            f"# On {gpu}, {report['date']}",
            "\n".join(f"- {line}" for line in conditions),
            _programs(report),
            table(["figure", ""], summary),
            means,
            means_table(report["summary"]["by_suite"]),
            legend,
            _workloads(report["workloads"]),
            "## Failures",
            _failures(report["rows"]),
            "",
        ]
    )


def _programs(report: Mapping[str, Any]) -> str:
    """Returns a paragraph on whole programs that names the wrong ones."""
    right, wrong, unchecked = (report["programs"][key] for key in ("right", "wrong", "unchecked"))
    errors = {f"{w['workload']} {w['dtype']}": w["errors"].get(OURS_IREE) for w in report["workloads"]}
    lines = [f"Whole programs: {len(right)} right, {len(wrong)} wrong, {len(unchecked)} not checked."]
    if wrong:
        named = [name + (f" ({errors[name]:.1e})" if errors[name] is not None else "") for name in wrong]
        lines.append(f"**WRONG** (relative error): {', '.join(named)}.")
    if unchecked:
        lines.append(f"Not checked: {', '.join(unchecked)}.")
    return "\n".join(lines)


def _workloads(workloads: Sequence[Mapping[str, Any]]) -> str:
    header = ["workload", "ratio", "call", *SYSTEMS, "predicted", "measured / predicted", "copy", "error"]
    cells = [
        [
            f"{w['workload']} {w['dtype']}",
            _figure(w["ratio"], "{:.2f}"),
            _figure(w["call_ratio"], "{:.2f}"),
            *(_times(w, name) for name in SYSTEMS),
            _microseconds(w["predicted_s"]),
            _figure(w["measured_over_predicted"], "{:.2f}"),
            _figure(w["share_of_copy"], "{:.0%}"),
            _figure(_worst_of_ours(w["errors"]), "{:.0e}"),
        ]
        for w in workloads
    ]
    return table(header, cells)


def _worst_of_ours(errors: Mapping[str, float]) -> float | None:
    return max((errors[name] for name in OURS if name in errors), default=None)


def _times(workload: Mapping[str, Any], system: str) -> str:
    status: str = workload["status"].get(system, "")
    if status != "ok":
        return status
    kernels, call = workload["kernel_s"].get(system), workload["call_s"].get(system)
    return " ".join(filter(None, [_microseconds(kernels), f"({_microseconds(call)})"]))


def _failures(rows: Sequence[Mapping[str, Any]]) -> str:
    failed = [row for row in rows if row["status"] not in ("ok", "no time")]
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for row in failed:
        kinds.setdefault((row["system"], row["status"], row["reason"]), []).append(
            f"{row['workload']} {row['dtype']}"
        )
    if not kinds:
        return "None."
    cells = [
        [
            system,
            status,
            reason.replace("|", "\\|"),
            f"{names[0]}" + (f" and {len(names) - 1} more" * (len(names) > 1)),
        ]
        for (system, status, reason), names in kinds.items()
    ]
    return table(["system", "status", "reason", "workloads"], cells)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(entry)}" for name, entry in value.items())
    return f"{value:.2f}" if isinstance(value, float) else ("" if value is None else str(value))


def _microseconds(seconds: float | None) -> str:
    return _figure(None if seconds is None else seconds * 1e6, "{:.1f}")


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
