"""What a finding leaves behind: the model, a small one that fails alike, the MLIR of it, and the command to see it."""

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

# Of a model alone, after those of many at once: what hangs, hangs.
_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Reproducer:
    """Where a finding was written, and how to see it again."""

    folder: Path
    command: str
    nodes: int


def write_reproducer(
    finding: Finding, folder: Path, *, target: str, small: bool, kind: str = "all"
) -> Reproducer:
    """Writes `graph.onnx`, `small.onnx` and `small.mlir`: what enters the passes, if it gets that far."""
    model, seed = finding_model(finding, kind), finding.seeds[0]
    path = folder / f"{finding.verdict.kind.replace(' ', '-')}-{'-'.join(map(str, finding.seeds[:2]))}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "graph.onnx").write_bytes(model.SerializeToString())
        # Processes that die leave files behind, which are nobody's reproducer.
        with WorkFolder("fuzz") as scratch:
            judge = Judge(scratch, target=target, limit_seconds=_LIMIT_SECONDS)
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
        ]
        option = "--device" if target.startswith("sim:") else "--target"
        line = shlex.join([*command, option, target])
        (path / "README").write_text(f"{finding.verdict.kind}: {finding.verdict.message}\n{line}\n")
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(path)) from None
    return Reproducer(path, line, len(model.graph.node))


def finding_model(finding: Finding, kind: str = "all") -> ModelProto:
    """The graph, or the graphs side by side."""
    if len(finding.seeds) == 1:
        return KINDS[kind](finding.seeds[0])
    return merge({f"g{seed}": KINDS[kind](seed) for seed in finding.seeds})
