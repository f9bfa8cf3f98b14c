"""Runs a bundle: checks that everything is right, then times it beside PyTorch, Triton and JAX.

It fails if a kernel of ours or a whole program is wrong, or if a whole program was not checked. The most important work
comes first: correctness and times of our kernels and of whole programs, then PyTorch op by op and its attention, and
then, workload by workload, the systems that compile for seconds. The report lists what the time did not reach.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import platform
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import ProgramError
from tilewright.runtime.cuda import open_driver
from tilewright.system.workfolder import WorkFolder

from benchmarks.client import Client, PeerError
from benchmarks.gpu_check.ahead import compile_ahead, sent, share_caches
from benchmarks.gpu_check.prepare import prepare_all, use_cache
from benchmarks.gpu_check.report import Programs, Row, to_json, to_markdown
from benchmarks.gpu_check.worker import (
    JAX,
    OURS,
    OURS_BARE,
    OURS_DIRECT,
    OURS_GRAPH,
    OURS_IREE,
    SYSTEMS,
    TORCH,
    TORCH_AUTOTUNE,
    TORCH_COMPILE,
    TORCH_SDPA,
    TRITON,
)
from benchmarks.peers import Settings

MANIFEST, PROGRAMS = "manifest.json", "programs.zip"
OPERATORS = "ops"
"""The suite whose workloads are only compared with float64, and not timed."""

_FINE = ("ok", "no time", "not installed", "unsupported")
"""Statuses of ours that are no failure: only IREE runs every program."""
_TIMING_SECONDS = 0.2
_WRITING_SECONDS = 10.0
"""Seconds between two versions of the report, so that an interrupted run leaves most of its results."""


@dataclass(frozen=True)
class Options:
    """Options of the command line."""

    bundle: Path
    output: Path
    seconds: float
    limit: float
    systems: tuple[str, ...]
    ahead: int = 0
    """Processes in which PyTorch compiles before anything is timed; 0 compiles each workload when it is timed."""
    references: Mapping[str, str] = field(default_factory=lambda: SYSTEMS)
    """Class of every system, by name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 if something is wrong, or a whole program was not checked though `--systems` has
    them."""
    options = _parse(arguments)
    try:
        open_driver()
    except ProgramError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    manifest = json.loads((options.bundle / MANIFEST).read_text())
    with WorkFolder("gpu-check") as folder:
        with zipfile.ZipFile(options.bundle / PROGRAMS) as archive:
            archive.extractall(folder)
        use_cache(folder / "assembled")
        share_caches(folder)
        started = time.monotonic()
        for failure in prepare_all(folder, manifest["workloads"], seconds=options.limit):
            _say(failure)
        taken = time.monotonic() - started
        _say(f"weights are drawn and kernels assembled after {taken:.0f} s")
        report = Check(options, manifest, folder, seconds=options.seconds - taken).run()
    wrong = [row for row in report["rows"] if row["system"] in OURS and row["status"] not in _FINE]
    _say(f"{options.output}.json and .md are written" + (f"; {len(wrong)} of ours failed" if wrong else ""))
    programs = Programs(**report["programs"])
    for name in programs.wrong:
        _say(f"WRONG as a whole program: {name}")
    if OURS_IREE not in options.systems:
        return int(bool(wrong))
    for name in programs.unchecked:
        _say(f"not checked as a whole program: {name}")
    return int(bool(wrong) or not programs.is_right)


def _parse(arguments: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument("bundle", type=Path, help="folder of the bundle")
    parser.add_argument(
        "--output", type=Path, default=Path("gpu-check"), help="path of the results, without suffix"
    )
    parser.add_argument("--seconds", type=float, default=570.0, help="seconds that the whole check may take")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds for a system to prepare a workload and run it"
    )
    parser.add_argument(
        "--ahead", type=int, default=0, metavar="N", help="first let PyTorch compile in N processes at once"
    )
    parser.add_argument(
        "--systems", default=",".join(SYSTEMS), help=f"systems to run, of {','.join(SYSTEMS)}"
    )
    parsed = parser.parse_args(arguments)
    systems = tuple(parsed.systems.split(","))
    if unknown := set(systems) - set(SYSTEMS):
        parser.error(f"no system is called '{min(unknown)}'; there are {', '.join(SYSTEMS)}")
    return Options(parsed.bundle, parsed.output, parsed.seconds, parsed.limit, systems, parsed.ahead)


class Check:
    """One run over a bundle; the report is rewritten regularly."""

    def __init__(
        self, options: Options, manifest: Mapping[str, Any], folder: Path, *, seconds: float
    ) -> None:
        self._options, self._manifest, self._folder = options, manifest, folder
        self._end = time.monotonic() + seconds
        self._rows: list[Row] = []
        self._written = time.monotonic()
        self._versions: dict[str, Any] = {}
        self._gpu: dict[str, Any] = {}
        self._absent: dict[str, str] = {}

    def run(self) -> dict[str, Any]:
        """Runs the check and returns the report."""
        with ExitStack() as stack:
            self._compile_ahead()
            clients = {name: stack.enter_context(self._client(name)) for name in self._options.systems}
            if OURS_BARE in clients:
                self._measure_copy(clients[OURS_BARE])
            for name, entry in self._order():
                if name in clients:
                    self._visit(name, clients[name], entry)
                    if time.monotonic() > self._written + _WRITING_SECONDS:
                        self._write()
        return self._write()

    def _client(self, name: str) -> Client:
        return Client(
            self._options.references[name],
            Settings(threads=1),
            log=self._folder / f"{name}.log",
            server="benchmarks.gpu_check.worker",
        )

    def _compile_ahead(self) -> None:
        if not self._options.ahead:
            return
        compiling = {TORCH_COMPILE, TORCH_AUTOTUNE}.intersection(self._options.systems)
        started = time.monotonic()
        compile_ahead(
            [(name, entry) for name, entry in self._order() if name in compiling],
            processes=self._options.ahead,
            client=self._client,
            folder=self._folder,
            limit=self._limit,
        )
        _say(f"PyTorch has compiled after {time.monotonic() - started:.0f} s")

    def _order(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields the work in order: systems that prepare quickly go through all workloads first, one system after
        another."""
        entries = self._manifest["workloads"]
        for name in (OURS_BARE, OURS_DIRECT):
            yield from ((name, entry) for entry in entries)
        # Those that only IREE can run are checked here alone.
        yield from ((OURS_IREE, entry) for entry in sorted(entries, key=lambda entry: entry["is_all_ours"]))
        for name in (OURS_GRAPH, TORCH):
            yield from ((name, entry) for entry in entries)
        yield from ((TORCH_SDPA, entry) for entry in entries if entry["suite"] == "chains")
        for entry in entries:
            compiling = (
                (TRITON, TORCH_COMPILE, JAX) if entry["suite"].startswith("gemm") else (TORCH_COMPILE, JAX)
            )
            yield from ((name, entry) for name in compiling)
        # These take tens of seconds per workload.
        yield from ((TORCH_AUTOTUNE, entry) for entry in entries)

    def _measure_copy(self, client: Client) -> None:
        try:
            answer = client.ask("copy", limit=self._limit())
        except PeerError as error:
            _say(f"copies were not timed: {error}")
        else:
            self._gpu["copy_gb_per_s"] = answer["gb_per_s"]

    def _visit(self, name: str, client: Client, entry: dict[str, Any]) -> None:
        if name == OURS_BARE and not entry["kernels"]:
            return
        if name not in OURS and entry["suite"] == OPERATORS:
            return
        row = self._row(name, client, entry)
        self._rows.append(row)
        if name == OURS_BARE and client.versions:
            self._gpu.update(client.versions)
        else:
            self._versions.update(client.versions)
        if row.status not in ("no time", "not installed"):
            _say(f"{name} {row.workload} {row.dtype}: {row.status} {row.reason}".rstrip())

    def _row(self, name: str, client: Client, entry: dict[str, Any]) -> Row:
        about: dict[str, Any] = {"workload": entry["workload"], "dtype": entry["dtype"], "system": name}
        if name in self._absent:
            return Row(**about, status="not installed", reason=self._absent[name])
        if self._limit() <= 0:
            return Row(**about, status="no time")
        folder = str(self._folder / entry["folder"])
        try:
            checked = client.ask("check", limit=self._limit(), folder=folder, entry=sent(entry))
            error = checked["error"]
            if error is not None and not error <= checked["tolerance"]:
                reason = (
                    f"relative error {error:.1e} of {checked['output']} is above {checked['tolerance']:.0e}"
                )
                finite = error if math.isfinite(error) else None
                return Row(**about, status="wrong", reason=reason, error=finite)
            timed = {}
            if entry["suite"] != OPERATORS:
                timed = client.ask("time", limit=self._limit(), seconds=_TIMING_SECONDS)["timing"]
            client.ask("forget", limit=self._limit())
        except PeerError as failure:
            if failure.status != "unsupported":  # any other failure may have broken the GPU for its process
                client.stop()
            if failure.status == "not installed":
                self._absent[name] = str(failure)
            status = "failed" if name == OURS_IREE and failure.status == "unsupported" else failure.status
            return Row(**about, status=status, reason=str(failure))
        return Row(**about, status="ok", error=error, resources=checked["resources"], **timed)

    def _limit(self) -> float:
        return min(self._options.limit, self._end - time.monotonic())

    def _write(self) -> dict[str, Any]:
        report = to_json(
            self._rows,
            self._manifest,
            gpu=self._gpu,
            versions={"python": platform.python_version(), **self._versions},
            date=datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        )
        self._written = time.monotonic()
        output = self._options.output
        output.with_name(output.name + ".json").write_text(json.dumps(report, indent=1) + "\n")
        output.with_name(output.name + ".md").write_text(to_markdown(report))
        return report


def _say(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
