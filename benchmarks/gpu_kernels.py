"""Kernels that models launch on a GPU, ours and IREE's, beside IREE alone: contractions and the rest apart.

    python -m benchmarks.gpu_kernels --target cuda:h200 --markdown out.md --json out.json

Counted in IREE's own form of the program after it has formed all dispatches, so no GPU is needed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import sys
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tilewright
from tilewright.compare.comparison import dispatched_kernels
from tilewright.errors import TilewrightError
from tilewright.iree.compiler import IreeCompiler
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import Worker

from benchmarks import machine
from benchmarks.client import ROOT
from benchmarks.suites import select
from benchmarks.tables import table
from benchmarks.workloads import Workload

# Patterns in the names that IREE gives to dispatches with contractions.
_CONTRACTION = re.compile(r"matmul|conv|matvec|vecmat|contract|mmt4d|attention|_dot_")


@dataclass(frozen=True)
class Launches:
    """Numbers of kernels that one call launches."""

    ours: int
    iree_contractions: int
    iree_others: int
    ours_contractions: int = 0
    """Our kernels that contain a contraction."""

    @property
    def total(self) -> int:
        """Number of all kernels."""
        return self.ours + self.iree_contractions + self.iree_others


@dataclass(frozen=True, kw_only=True)
class Row:
    """Results of one model; None if it did not compile."""

    workload: str
    dtype: str = "f32"
    reason: str = ""
    alone: Launches | None = None
    """Kernels of IREE alone."""
    stitched: Launches | None = None
    predicted_s: float = 0.0
    """Predicted seconds of our kernels; each kernel counts as often as it is launched."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 if a model does not compile."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_kernels", description=__doc__)
    parser.add_argument("--target", default="cuda:h200", help="target name of a GPU")
    parser.add_argument("--suite", default="models")
    parser.add_argument("--workloads", default="*", metavar="PATTERN", help="names with * and ?")
    parser.add_argument(
        "--dtypes", type=lambda text: text.split(","), default=["f32"], help="types, of f32,f16,bf16"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    date = datetime.datetime.now().astimezone().isoformat(timespec="minutes")
    about = {
        "date": date,
        "command": shlex.join(["python", "-m", "benchmarks.gpu_kernels", *(arguments or sys.argv[1:])]),
        "target": options.target,
        "tilewright": machine.revision(ROOT),
    }
    rows: list[Row] = []
    for workload in select([options.suite], dtypes=options.dtypes, pattern=options.workloads):
        rows.append(count(workload, target=options.target))
        print(f"{workload.name} {workload.dtype} {rows[-1].reason}".rstrip(), file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(
                json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=1) + "\n"
            )
        if options.markdown:
            options.markdown.write_text(to_markdown(rows, about))
    if not (options.json or options.markdown):
        print(to_markdown(rows, about))
    return int(any(row.reason for row in rows))


def count(workload: Workload, *, target: str) -> Row:
    """Compiles a model and counts its launches."""
    with WorkFolder("kernels") as folder, Worker(folder) as worker:
        dump = folder
        try:
            program = tilewright.compile(workload.build(), target, tuning=False, dump_dir=dump)
            alone, stitched = (
                _kernels(IreeCompiler(worker), dump / phase, program.metadata.iree_flags)
                for phase in ("2-preprocessing.mlir", "3-stitched.mlir")
            )
        except TilewrightError as error:
            return Row(workload=workload.name, dtype=workload.dtype, reason=error.message)
    predicted = {kernel.name: kernel.predicted_seconds for kernel in program.kernels}
    contracting = {kernel.name for kernel in program.kernels if any(op.micro_kernel for op in kernel.ops)}
    return Row(
        workload=workload.name,
        dtype=workload.dtype,
        alone=_count(alone, ours=()),
        stitched=_count(stitched, ours=predicted, contracting=contracting),
        predicted_s=sum(predicted.get(name, 0.0) for name in stitched),
    )


def _kernels(iree: IreeCompiler, phase: Path, flags: Sequence[str]) -> list[str]:
    stream = iree.resume(phase.read_bytes(), "preprocessing", flags=flags, stop="stream")
    return dispatched_kernels(stream.decode())


def _count(launched: Sequence[str], *, ours: Container[str], contracting: Container[str] = ()) -> Launches:
    theirs = [name for name in launched if name not in ours]
    contractions = sum(bool(_CONTRACTION.search(name.rpartition("_dispatch_")[2])) for name in theirs)
    own = sum(name in contracting for name in launched)
    return Launches(len(launched) - len(theirs), contractions, len(theirs) - contractions, own)


def to_markdown(rows: Sequence[Row], about: dict[str, str]) -> str:
    """Returns the results as a page."""
    header = [
        "model", "type", "IREE alone", "contractions", "others",
        "stitched", "ours", "of them contractions", "contractions (IREE)", "others (IREE)", "ours predicted, µs",
    ]  # fmt: skip
    cells = [
        [row.workload, row.dtype, row.reason, *[""] * 8]
        if row.alone is None or row.stitched is None
        else [
            row.workload,
            row.dtype,
            *map(str, (row.alone.total, row.alone.iree_contractions, row.alone.iree_others)),
            *map(str, (row.stitched.total, row.stitched.ours, row.stitched.ours_contractions)),
            *map(str, (row.stitched.iree_contractions, row.stitched.iree_others)),
            f"{row.predicted_s * 1e6:.0f}",
        ]
        for row in rows
    ]
    legend = (
        "The numbers are kernels that a call launches. A contraction of IREE is a dispatch that contains a matmul or a "
        "convolution, with anything else fused to it. No time here is measured."
    )
    conditions = "\n".join(
        [f"- `{about['command']}`", f"- tilewright {about['tilewright']}, for {about['target']}"]
    )
    return f"# Kernels on {about['target']}, {about['date']}\n\n{conditions}\n\n{legend}\n\n{table(header, cells)}\n"


if __name__ == "__main__":
    sys.exit(main())
