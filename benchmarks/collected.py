"""Tables of the runs that benchmarks/results holds: the newest of each suite and machine.

A file is called DATE-SUITE-...-MACHINE.json. Files that differ only in the date are runs of the same thing: the newest
stays (`benchmarks/report --prune`). Documents take their figures from here, so none is written by hand.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from benchmarks.peers import OURS
from benchmarks.report import Report, to_markdown
from benchmarks.rows import Mean, Row
from benchmarks.tables import table

RESULTS = Path(__file__).resolve().parent / "results"
"""The folder of stored runs."""

TALLY = Path(__file__).resolve().parents[1] / "fuzz" / "tally.json"
"""The file that `python -m fuzz --tally` adds the figures of runs to."""

MOST_FILES = 40
"""Most files in `RESULTS`."""

_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-(.+)\.json")
_MACHINES = {
    "zen3-2core": "AMD Zen 3 server, 2 cores",
    "zen4-2core": "AMD Zen 4 server, 2 cores",
    "zen5-2core": "AMD Zen 5 server, 2 cores",
    "simulated-a100": "simulated A100",
    "simulated-h200": "simulated H200",
    "h200": "NVIDIA H200",
}
"""Machines by the end of a file's name, longest names first."""

_CPU_PEERS = {
    "iree": "IREE",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "torch-compile": "torch.compile",
}
_GPU_PEERS = {
    "torch": "PyTorch (cuBLAS)",
    "torch-sdpa": "`scaled_dot_product_attention`",
    "torch-compile": "torch.compile",
    "torch-max-autotune": "torch.compile, max-autotune",
    "triton": "Triton",
    "jax": "JAX",
}
_CLEARLY_SLOWER = 1.05
"""Ratio from which a run on a GPU, which has no interval, counts as slower."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One stored run."""

    path: Path
    date: str
    """Day of the run, as YYYY-MM-DD."""
    what: str
    """The file's name without its date: suites, types, threads and machine."""
    data: dict[str, Any]

    @property
    def machine(self) -> str:
        """Name of the machine for people."""
        return next((label for end, label in _MACHINES.items() if self.what.endswith(end)), "")

    @property
    def kind(self) -> str:
        """`cpu` (benchmarks/run.py), `gpu` (benchmarks.gpu_check), `simulated`, or `other`."""
        for kind, key in (("gpu", "gpu"), ("simulated", "conditions"), ("cpu", "limits")):
            if key in self.data:
                return kind
        return "other"


def load_runs(folder: Path = RESULTS) -> list[Run]:
    """Returns the stored runs by name; raises a ValueError for a file that is not called as runs are."""
    runs = []
    for path in sorted(folder.iterdir()):
        found = _NAME.fullmatch(path.name)
        if found is None:
            raise ValueError(f"{path.name} is not called DATE-SUITE-MACHINE.json")
        runs.append(Run(path=path, date=found[1], what=found[2], data=json.loads(path.read_text())))
    return sorted(runs, key=lambda run: (run.what, run.date))


def superseded(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs of which a newer one is stored."""
    return [old for old, new in pairwise(runs) if old.what == new.what]


def write_run(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a run with one line for each row, so that a difference between two runs is readable."""
    lines = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"    {json.dumps(row)}" for row in value)
            lines.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def page(run: Run) -> str:
    """Returns a run on a CPU as the page that benchmarks/run.py writes; raises a ValueError for other runs."""
    if run.kind != "cpu":
        raise ValueError(f"{run.path.name} is not a run of benchmarks/run.py on a CPU; read its rows")
    rows = [_known(Row, row) for row in run.data["rows"]]
    summary = [_known(Mean, mean) for mean in run.data["summary"]]
    return to_markdown(_known(Report, {**run.data, "rows": rows, "summary": summary}))


def _known(kind: type[Any], values: Mapping[str, Any]) -> Any:
    return kind(**{field.name: values.get(field.name) for field in fields(kind)})


# CPUs


def _cpu_groups(runs: Sequence[Run]) -> Iterator[tuple[Run, str, str, list[dict[str, Any]]]]:
    """Yields run, suite, type and rows, newest machines first."""
    for run in runs:
        if run.kind != "cpu":
            continue
        key = lambda row: (row["suite"].removeprefix("random-"), row["dtype"])  # noqa: E731
        for (suite, dtype), rows in groupby(sorted(run.data["rows"], key=key), key=key):
            yield run, suite, dtype, list(rows)


def cpu_table(runs: Sequence[Run]) -> str:
    """Returns one line for each suite, type and machine: our time over that of each peer."""
    header = [
        "suite",
        "type",
        "threads",
        "machine",
        "date",
        "workloads",
        "best peer",
        *_CPU_PEERS.values(),
        "slower",
    ]
    cells = []
    for run, suite, dtype, rows in _cpu_groups(runs):
        ours = [row for row in rows if row["system"] == OURS and row["ratio_to_best_peer"] is not None]
        slower = sum(row["ratio_low"] > 1 for row in ours)
        ratios = [_mean([row["ratio_to_best_peer"] for row in ours])]
        ratios += [_mean(_over_peer(rows, peer)) for peer in _CPU_PEERS]
        threads = str(run.data["settings"]["threads"])
        cells.append([suite, dtype, threads, run.machine, run.date, str(len(ours)), *ratios, str(slower)])
    return table(header, sorted(cells, key=lambda line: (line[3], line[0], line[1])))


def _over_peer(rows: Sequence[dict[str, Any]], peer: str) -> list[float]:
    """Returns our time over a peer's for every workload, of kernels where both have that, else of calls."""
    by = {(row["workload"], row["system"]): row for row in rows if row["status"] == "ok"}
    found = []
    for (workload, system), ours in by.items():
        theirs = by.get((workload, peer))
        if system != OURS or theirs is None:
            continue
        both = ours["kernel_s"] and theirs["kernel_s"] and ours["ratio_of"] == "kernel"
        name = "kernel_s" if both else "median_s"
        found.append(ours[name] / theirs[name])
    return found


def cpu_losses(runs: Sequence[Run]) -> str:
    """Returns the workloads on which a peer is faster, by the whole interval."""
    cells = [
        [
            f"{row['workload']} {dtype}",
            run.machine,
            run.date,
            row["best_peer"],
            f"{row['ratio_to_best_peer']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]",
        ]
        for run, _, dtype, rows in _cpu_groups(runs)
        for row in rows
        if row["system"] == OURS and row["ratio_low"] is not None and row["ratio_low"] > 1
    ]
    return table(["workload", "machine", "date", "best peer", "ours / it"], cells)


# GPUs


def gpu_table(runs: Sequence[Run]) -> str:
    """Returns one line for each suite, type and peer: our time over the peer's, of kernels and of whole calls."""
    header = ["suite", "type", "machine", "date", "beside", "kernels", "workloads", "calls", "slower kernels"]
    cells = []
    for run in runs:
        if run.kind != "gpu":
            continue
        for suite, peers in run.data["summary"]["by_suite"].items():
            here = [w for w in run.data["workloads"] if w["suite"] == suite]
            for peer, mean in peers.items():
                ratios = [
                    w["kernel_s"]["kernels"] / w["kernel_s"][peer]
                    for w in here
                    if w["ratio"] is not None and w["kernel_s"].get(peer)
                ]
                slower = str(sum(ratio > _CLEARLY_SLOWER for ratio in ratios))
                about = [suite, here[0]["dtype"], run.machine, run.date, _GPU_PEERS[peer]]
                figures = [
                    _figure(mean["kernels"]),
                    str(mean["kernels_over"]),
                    _figure(mean["calls"]),
                    slower,
                ]
                cells.append([*about, *figures])
    return table(header, sorted(cells))


def gpu_programs(runs: Sequence[Run]) -> str:
    """Returns how many whole programs were right on a GPU, and how far predictions were off."""
    header = ["suites", "type", "machine", "date", "right", "wrong", "median error of predictions"]
    cells = []
    for run in runs:
        if run.kind != "gpu":
            continue
        suites = ", ".join(dict.fromkeys(w["suite"] for w in run.data["workloads"]))
        dtype = run.data["workloads"][0]["dtype"]
        states = [row["status"] for row in run.data["rows"] if row["system"] in ("kernels", "iree")]
        right, wrong = states.count("ok"), states.count("wrong")
        error = run.data["summary"]["median_deviation_from_prediction"]
        cells.append([suites, dtype, run.machine, run.date, str(right), str(wrong), _percent(error)])
    return table(header, sorted(cells))


# The simulated device


def simulated_table(runs: Sequence[Run]) -> str:
    """Returns one line for each suite, type and GPU: traffic beside the compulsory bytes and beside the plan's."""
    header = [
        "suite",
        "type",
        "machine",
        "date",
        "workloads",
        "right",
        "kernels",
        "moved",
        "to plan",
        "spilling",
    ]
    cells = []
    for run in runs:
        if run.kind != "simulated":
            continue
        key = lambda row: (row["suite"].removeprefix("random-"), row["dtype"])  # noqa: E731
        for (suite, dtype), group in groupby(sorted(run.data["rows"], key=key), key=key):
            rows = list(group)
            right = [row for row in rows if row["status"] == "ok"]
            moved = _mean([row["moved"] for row in right if row["moved"]])
            planned = [row["moved_to_planned"] for row in right if row.get("moved_to_planned")]
            span = f"{min(planned):.2f} to {max(planned):.2f}" if planned else ""
            figures = [
                str(len(rows)),
                str(len(right)),
                str(sum(row["kernels"] or 0 for row in rows)),
                moved,
                span,
            ]
            spills = str(sum(bool(row.get("spill_bytes")) for row in rows))
            cells.append([suite, dtype, run.machine, run.date, *figures, spills])
    return table(header, sorted(cells))


# The table of the README

_README_CPU = (("models", 2), ("stitch", 1), ("gemm", 1), ("chains", 1))
_README_MACHINE = "AMD Zen 4 server, 2 cores"
_README_GPU = (
    ("gemm-f16", "gemm", "torch"),
    ("chains-f16", "chains", "torch-sdpa"),
    ("chains-f16", "chains", "torch-compile"),
    ("models-chains-peers-f16", "models", "torch-max-autotune"),
)
"""Runs by the beginning of their names, suites and peers."""


def readme_table(runs: Sequence[Run]) -> str:
    """Returns the lines that the README shows: f32 on a CPU, and f16 on a GPU."""
    header = ["suite (workloads)", "machine and date", "our time over that of"]
    cells = []
    for suite, threads in _README_CPU:
        found = [
            (run.date, rows)
            for run, name, dtype, rows in _cpu_groups(runs)
            if (name, dtype, run.machine) == (suite, "f32", _README_MACHINE)
            and run.data["settings"]["threads"] == threads
        ]
        newest = {
            (row["workload"], row["system"]): row for _, rows in sorted(found, key=_date) for row in rows
        }
        rows = list(newest.values())
        ours = [
            r["ratio_to_best_peer"]
            for r in rows
            if r["system"] == OURS and r["ratio_to_best_peer"] is not None
        ]
        where = f"{_README_MACHINE}, {threads} used, {_span([date for date, _ in found])}"
        beside = [f"{label} {_mean(_over_peer(rows, peer))}" for peer, label in _CPU_PEERS.items()]
        shown = f"best peer **{_mean(ours)}**; " + ", ".join(beside)
        cells.append([f"{suite}, f32 ({len(ours)})", where, shown])
    for name, suite, peer in _README_GPU:
        run = next(run for run in runs if run.kind == "gpu" and run.what.startswith(name))
        mean = run.data["summary"]["by_suite"][suite][peer]
        shown = f"{_GPU_PEERS[peer]} **{_figure(mean['kernels'])}**"
        cells.append([f"{suite}, f16 ({mean['kernels_over']})", f"{run.machine}, {run.date}", shown])
    return table(header, cells)


def _date(entry: tuple[str, Any]) -> str:
    return entry[0]


def _span(dates: Sequence[str]) -> str:
    """Returns days, such as "2026-11-22" or "2026-11-22–26"."""
    first, last = min(dates), max(dates)
    if first == last:
        return first
    return f"{first}–{last.removeprefix(first[:8])}"


def results_page(runs: Sequence[Run]) -> str:
    """Returns the generated page of results on CPUs."""
    fuzz = next(run for run in runs if run.what == "fuzz").data
    return "\n\n".join(
        [
            "# Results",
            f"{_RESULTS} [GPUs](results-gpu.md) have a page of their own.",
            "## CPUs",
            "`best peer` compares with the fastest peer of each workload, whichever it is; `slower` counts the "
            "workloads on which ours is slower than that by more than the noise.",
            cpu_table(runs),
            "### Workloads on which a peer is faster",
            cpu_losses(runs),
            "## The fuzzer",
            f"The last long run ({fuzz['date']}): {fuzz['graphs']} graphs, of which {fuzz['passed']} passed and "
            f"{fuzz['passed_and_counted']} count; {fuzz['ops_in_our_kernels']} of {fuzz['ops_eligible']} ops in our "
            f"kernels; every pair of operator and type at least {fuzz['rarest_operator']} times in graphs that count.",
            _tallied(json.loads(TALLY.read_text())),
        ]
    )


def _tallied(tally: Mapping[str, Any]) -> str:
    """Returns what the short runs of the fuzzer add up to."""
    graphs, broken = tally["graphs"]["totals"], tally["broken_inputs"]["totals"]
    kinds = ", ".join(f"{count} of kind `{kind}`" for kind, count in graphs["graphs_by_kind"].items())
    failures = sum(graphs["failures_by_kind"].values())
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in broken["outcomes"].items())
    return (
        f"Short runs since then add up to {graphs['graphs']} graphs ({kinds}), of which {graphs['passed']} passed, "
        f"{graphs['refused']} were refused, and {failures} failed; and to {broken['inputs']} broken inputs"
        f"{f' ({outcomes})' if outcomes else ''}. What fails is mended, and has a test."
    )


_RESULTS = (
    "**How fast is Tilewright beside its peers? On this page, figures are geometric means of our time over theirs: "
    "below 1, ours is faster.** The tables are made by `scripts/reference` from the files in `benchmarks/results`, "
    "each the newest run of its suite and machine; [benchmarks](../guide/benchmarks.md) says what the suites are, and "
    "[measuring](../design/measuring.md) how times are taken. Runs are of the compiler of their date."
)


def results_gpu_page(runs: Sequence[Run]) -> str:
    """Returns the generated page of results on GPUs, real and simulated."""
    return "\n\n".join(
        [
            "# Results on GPUs",
            f"{_RESULTS} [CPUs](results.md) have a page of their own.",
            "## GPUs",
            "Kernels are timed by the GPU's clock with a cold L2, calls by the host's. `slower kernels` counts ratios "
            f"above {_CLEARLY_SLOWER}.",
            gpu_table(runs),
            "Right and wrong count workloads by system of ours (kernels alone, and whole programs in IREE), against "
            "float64.",
            gpu_programs(runs),
            "## The simulated device",
            "`moved` is the bytes in sectors over the compulsory bytes, `to plan` the same over the plan's L2 traffic. "
            "No time is measured here.",
            simulated_table(runs),
        ]
    )


def _mean(ratios: Sequence[float]) -> str:
    from statistics import geometric_mean

    return f"{geometric_mean(ratios):.2f}" if ratios else ""


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "files", nargs="*", type=Path, help="runs to print as pages; default: tables of all of them"
    )
    parser.add_argument("--prune", action="store_true", help="remove runs of which a newer one is stored")
    chosen = parser.parse_args(arguments)
    runs = load_runs()
    if chosen.prune:
        for old in superseded(runs):
            print(f"removed {old.path.name}")
            old.path.unlink()
        for run in load_runs():
            write_run(run.path, run.data)
        return
    named = {path.name for path in chosen.files}
    pages = [page(run) for run in runs if run.path.name in named]
    print("\n\n".join(pages if named else [results_page(runs), results_gpu_page(runs)]))


if __name__ == "__main__":
    main()
