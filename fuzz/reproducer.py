"""Reproducer of a finding: the model, a reduced one that fails alike, its MLIR, and the command that shows the
failure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto
from tilewright.errors import OutputError
from tilewright.iree.text import from_iree
from tilewright.system.workfolder import WorkFolder

from fuzz.hunt import Finding, Judge
from fuzz.kinds import KINDS
from fuzz.merge import merge
from fuzz.shrink import shrink

# The limit applies to a single model, after those of a whole module.
_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Reproducer:
    """Folder of a finding, and the command that reproduces it."""

    folder: Path
    command: str
    nodes: int


def write_reproducer(
    finding: Finding, folder: Path, *, target: str, small: bool, kind: str = "all"
) -> Reproducer:
    """Writes `graph.onnx`, `small.onnx` and, if the model gets that far, `small.mlir`, which is the input of the
    passes."""
    model, seed = finding_model(finding, kind), finding.seeds[0]
    path = folder / f"{finding.verdict.kind.replace(' ', '-')}-{'-'.join(map(str, finding.seeds[:2]))}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "graph.onnx").write_bytes(model.SerializeToString())
        # Files that dying processes leave behind go here, because they belong to no reproducer.
        with WorkFolder("fuzz") as scratch:
            judge = Judge(scratch, target=target, kind=kind, limit_seconds=_LIMIT_SECONDS)
            try:
                if small:
                    model = shrink(
                        model, lambda other: judge.model(other, seed).same_failure(finding.verdict)
                    )
                (path / "small.onnx").write_bytes(model.SerializeToString())
                judge.model(model, seed, dump_dir=path / "stages")
            finally:
                judge.close()
        front = path / "stages" / "2-preprocessing.mlir"
        if front.exists():
            (path / "small.mlir").write_text(from_iree(front.read_text()))
        command = [
            "python",
            "-m",
            "fuzz",
            "--replay",
            str(path / "small.onnx"),
            "--seeds",
            f"{seed}:{seed + 1}",
            "--kind",
            kind,
        ]
        option = "--device" if target.startswith("sim:") else "--target"
        line = shlex.join([*command, option, target])
        (path / "README").write_text(f"{finding.verdict.kind}: {finding.verdict.message}\n{line}\n")
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None
    return Reproducer(path, line, len(model.graph.node))


def finding_model(finding: Finding, kind: str = "all") -> ModelProto:
    """Returns the graph, or the graphs merged side by side."""
    if len(finding.seeds) == 1:
        return KINDS[kind].graph(finding.seeds[0])
    return merge({f"g{seed}": KINDS[kind].graph(seed) for seed in finding.seeds})
