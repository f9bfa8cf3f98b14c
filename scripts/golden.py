"""Says whether a change left every program as it was.

    scripts/golden record            # on the commit to compare with, built
    scripts/golden compare           # after the change, built; exits 1 where a program differs

A program is a workload of `benchmarks/workloads` compiled for one target in one type: its plan, its recipes of weights,
and the assembly or PTX of its kernels. Two programs are equal if these are, names aside: symbols are numbered in the
order in which they appear, and words that were renamed are read as the new ones (`RENAMED`). Only our passes run; what
they are given (IREE's preprocessing phase) is recorded once and used again, so that both sides see the same.

The records hold the texts, so a difference can be looked at: `compare` prints a `diff` command for each.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPT = ROOT / "build/bin/tilewright-opt"

CPUS = ("x86-64-avx2", "x86-64-avx512")
GPUS = ("cuda:a100", "cuda:h200")

CHOSEN = (
    "bert-small", "gpt2-block", "gpt2-decode-block", "llama-block-grouped", "cnn", "conformer-block", "nerf",
    "mmoe-256", "softmax-77x77x5", "softmax-1x50257", "masked-softmax-1x12x128x128", "layer-norm-197x1027",
    "rms-norm-1x4096",
    "bias-residual-layer-norm-128x768", "gelu-erf-128x3072", "log-softmax-127x1003", "l2-normalise-1023x129",
    "batch-statistics-129x77", "transpose-cast-12x128x64", "argmax-512x30522", "rotary-32x128x64", "random-stitch-3",
    "dense-1x768x768", "dense-33x1027x65", "matmul-128x768x768", "matmul-77x321x123", "g2-chain", "g9-softmax-chain",
    "causal-attention-12x128x64", "grouped-attention-8x512x64",
)  # fmt: skip
"""Workloads that together use every kind of kernel; `--all` compares the others, too."""

RENAMED: dict[str, str] = {
    "parts": "groups",
    "kept": "residentTiles",
    "asked of L2": "requested of L2",
    "running maximum": "online softmax",
    "running maximum of blocks": "online softmax of blocks",
    "running maximum of counted blocks": "online softmax with a causal bound",
}
"""Fields and strings of plans that were renamed, from old to new."""


@dataclass(frozen=True)
class Case:
    """One program: a workload in a type, compiled for a target."""

    workload: str
    dtype: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.workload}.{self.dtype}.{self.target.replace(':', '-')}"

    @property
    def backend(self) -> str:
        return "cuda" if self.target.startswith("cuda") else "cpu"

    def input_in(self, inputs: Path) -> Path:
        """Returns the file with the input of our passes, which all targets of a backend share."""
        return inputs / f"{self.workload}.{self.dtype}.{self.backend}.mlir"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/golden", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("--all", action="store_true", help="every workload, not only the chosen ones")
    parser.add_argument("--workloads", metavar="REGEX", help="only workloads whose whole name matches")
    parser.add_argument("--targets", metavar="REGEX", help="only targets whose whole name matches")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build/golden", help="where the records are kept"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs compiled at a time")
    options = parser.parse_args(arguments)
    cases = list(_cases(options))
    if not cases:
        parser.error("no workload and target match")
    started = time.monotonic()
    _make_inputs(cases, options.folder / "inputs")
    kept = options.folder / ("recorded" if options.command == "record" else "compared")
    differing = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        compiled = [
            pool.submit(_compile, case, options.folder / "inputs", kept / case.name) for case in cases
        ]
        for number, (case, done) in enumerate(zip(cases, compiled, strict=True), 1):
            done.result()
            if options.command == "compare":
                differing += _report(case, options.folder / "recorded" / case.name, kept / case.name)
            if number % 50 == 0:
                print(f"{number} of {len(cases)} programs, {time.monotonic() - started:.0f} s", flush=True)
    if options.command == "record":
        print(f"{len(cases)} programs recorded in {kept}, {time.monotonic() - started:.0f} s")
    else:
        print(f"{len(cases) - differing} of {len(cases)} programs equal, {time.monotonic() - started:.0f} s")
    return int(differing > 0)


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    from benchmarks.workloads import WORKLOADS

    for name in WORKLOADS if options.all or options.workloads else CHOSEN:
        if options.workloads and not re.fullmatch(options.workloads, name):
            continue
        for target in (*CPUS, *GPUS):
            if options.targets and not re.fullmatch(options.targets, target):
                continue
            for dtype in ("f32", "f16") if target in GPUS else ("f32",):
                yield Case(name, dtype, target)


def _make_inputs(cases: Sequence[Case], folder: Path) -> None:
    """Writes the inputs of our passes that do not exist yet."""
    missing = {case.input_in(folder): case for case in cases if not case.input_in(folder).exists()}
    if not missing:
        return
    from tilewright.worker.process import keep_compilers

    folder.mkdir(parents=True, exist_ok=True)
    with keep_compilers():
        for number, (path, case) in enumerate(missing.items(), 1):
            path.with_suffix(".tmp").write_text(_front(case))
            path.with_suffix(".tmp").rename(path)
            if number % 20 == 0:
                print(f"{number} of {len(missing)} inputs made", flush=True)


def _front(case: Case) -> str:
    """Returns the workload at IREE's preprocessing phase, as MLIR 22 reads it."""
    from tilewright.frontends import import_model
    from tilewright.frontends.triangles import mark_triangles
    from tilewright.iree.compiler import IreeCompiler
    from tilewright.iree.flags import iree_flags
    from tilewright.iree.text import from_iree
    from tilewright.records.targets import resolve_targets
    from tilewright.worker.process import lend_worker

    from benchmarks.workloads import WORKLOADS

    model = WORKLOADS[case.workload].in_type(case.dtype).build()
    target = resolve_targets(case.target, threads=2)[-1]
    with tempfile.TemporaryDirectory() as directory, lend_worker(Path(directory)) as worker:
        iree = IreeCompiler(worker)
        imported = import_model(model, compiler=iree, directory=Path(directory))
        flags = iree_flags(target, host=False)
        text = iree.compile_to(imported.source, "preprocessing", flags=flags, name=imported.name)
        return from_iree(mark_triangles(text, imported.parameters))


def _compile(case: Case, inputs: Path, folder: Path) -> None:
    """Runs our passes on one input and writes their output, without names, to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        files = {
            name: Path(made) / name for name in ("plan.json", "recipes.json", "code.o", "code.s", "code.ptx")
        }
        options = {
            "target": case.target,
            "plan-out": files["plan.json"],
            "recipes": files["recipes.json"],
            "scopes": "model",
        }
        if case.backend == "cpu":
            options |= {"cores": 2, "object-path": files["code.o"], "dump-assembly": files["code.s"]}
        else:
            options |= {"object-path": files["code.ptx"]}
        written = " ".join(f"{name}={value}" for name, value in options.items())
        pipeline = f"builtin.module(tilewright-{case.backend}{{{written}}})"
        command = [OPT, "--allow-unregistered-dialect", f"--pass-pipeline={pipeline}"]
        command += [case.input_in(inputs), "-o", os.devnull]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        error = done.stderr if done.returncode else ""
        if error:
            print(f"{case.name} does not compile: {error.splitlines()[0]}", flush=True)
        (folder / "error.txt").write_text(_without_names(error))
        code = files["code.s"] if case.backend == "cpu" else files["code.ptx"]
        for name, path in (
            ("plan.json", files["plan.json"]),
            ("recipes.json", files["recipes.json"]),
            ("code", code),
        ):
            text = path.read_text() if path.exists() else ""
            (folder / name).write_text(_without_names(text) if name == "code" else _sorted_json(text))


_COMMENT = re.compile(r"(^|\s)(#|//).*$", re.MULTILINE)
_DEFINED = re.compile(
    r"^\s*(?:\.globl|\.visible \.entry|\.entry|\.visible \.func|\.func|\.extern \.\w+.*?)\s+([\w$.]+)"
    r"|^([A-Za-z_][\w$.]*):",
    re.MULTILINE,
)


def _without_names(text: str) -> str:
    """Returns assembly or PTX without comments, with symbols numbered in the order of their definitions."""
    text = _COMMENT.sub("", text)
    numbers: dict[str, str] = {}
    for directive, label in _DEFINED.findall(text):
        numbers.setdefault(directive or label, f"symbol{len(numbers)}")
    return re.sub(r"[A-Za-z_][\w$.]*", lambda match: numbers.get(match[0], match[0]), text)


PROSE = ("reason", "wouldChange", "copies")
"""Fields of a plan that hold sentences for people."""

ADDED = ("gemm", "blocking", "forms", "cluster", "access")
"""Fields that older records of plans do not have. They are not compared; the code that follows from them is."""

_PREDICTED = re.compile(r" \((?:[\d.]+ us predicted, one phase|\d+ parts:) .* us\)$")
"""Predictions in names of forms, which older records of plans have instead of `forms`."""

_SLICES = re.compile(r"^(\w+-\d+x\d+)k\d+$")
"""Names of micro kernels with slices of K, which older records of plans have instead of `gemm`."""


def _normalized(value: Any) -> Any:
    """Parts of a plan without prose, and with new names."""
    if isinstance(value, dict):
        members = {key: member for key, member in value.items() if key not in PROSE + ADDED}
        return {RENAMED.get(key, key): _normalized(member) for key, member in members.items()}
    if isinstance(value, list):
        return [_normalized(member) for member in value]
    if isinstance(value, str):
        return RENAMED.get(value, _PREDICTED.sub("", _SLICES.sub(r"\1", value)))
    return value


def _sorted_json(text: str) -> str:
    return json.dumps(_normalized(json.loads(text)), indent=1, sort_keys=True) if text else ""


def _read(path: Path) -> str:
    """The text of a record, which may be of before a rename."""
    text = path.read_text()
    return _sorted_json(text) if path.suffix == ".json" else text


def _report(case: Case, recorded: Path, compared: Path) -> bool:
    """Reports whether and how a program differs; returns True if it does."""
    if not recorded.exists():
        print(f"{case.name}: was not recorded", flush=True)
        return True
    names = ("error.txt", "plan.json", "recipes.json", "code")
    differing = [name for name in names if _read(recorded / name) != _read(compared / name)]
    if differing:
        print(
            f"{case.name}: {', '.join(differing)} differ: diff {recorded / differing[0]} {compared / differing[0]}",
            flush=True,
        )
    return bool(differing)


if __name__ == "__main__":
    sys.exit(main())
