"""Runs the evidence of each known fault through IREE alone, on this CPU: `python -m tilewright.iree.recheck [NAME...]`.

Each program runs in a process of its own with a time limit, because some of them hang or end it. Exits with 1 if a
fault does not show any more, or shows in another way than the table says.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.iree.known_faults import FAULTS, Fault
from tilewright.system import lifeline

_MOST_SECONDS = 40
"""Seconds after which a program hangs; those of the table that do not, take two."""


def recheck(fault: Fault) -> str:
    """Returns what IREE does with the program of a fault: a symptom, or "right"."""
    name = next(name for name, each in FAULTS.items() if each == fault)
    command = [sys.executable, "-m", "tilewright.iree.recheck", "--one", name]
    try:
        done = lifeline.run(command, timeout=_MOST_SECONDS)  # ends what it started, too
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == -signal.SIGFPE:
        return "ends the process"
    lines = done.stdout.splitlines()
    return lines[-1] if done.returncode == 0 and lines else "refused"


def _show(name: str) -> None:
    """Prints what happens, in the process of one program; it may crash."""
    import iree.compiler
    import iree.runtime

    evidence = FAULTS[name].make()
    source, kind = evidence.model, "auto"
    if not isinstance(source, str):
        source, kind = _imported(source), "onnx"
    module = iree.compiler.compile_str(
        source,
        target_backends=["llvm-cpu"],
        input_type=kind,
        extra_args=["--iree-llvmcpu-target-cpu=host", *evidence.flags],
    )
    loaded = iree.runtime.load_vm_flatbuffer(module, driver="local-sync")
    names = loaded.vm_module.function_names
    entry = next(each for each in names if not each.startswith("__") and not each.endswith("$async"))
    try:
        results = getattr(loaded, entry)(*evidence.inputs)
    except Exception:  # of many kinds
        print("fails when called")
        return
    outputs = list(results) if isinstance(results, tuple | list) else [results]
    right = all(
        _is_right(np.asarray(y), expected, evidence.tolerance)
        for y, expected in zip(outputs, evidence.expected, strict=True)
    )
    print("right" if right else "wrong numbers")


def _imported(model: Any) -> str:
    """Returns what IREE's own importer makes of an ONNX model."""
    import onnx
    from iree.compiler.tools.import_onnx import __main__ as importer

    onnx.checker.check_model(model)
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "model.onnx", Path(folder) / "model.mlir"
        onnx.save(model, given)
        importer.main(importer.parse_arguments([str(given), "-o", str(made)]))
        return made.read_text()


def _is_right(y: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], tolerance: float) -> bool:
    if y.shape != expected.shape:
        return False
    wide, exact = y.astype(np.float64), expected.astype(np.float64)
    same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
    largest = np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        return bool((same | (np.abs(wide - exact) <= tolerance * largest)).all())


def main(arguments: Sequence[str]) -> int:
    """Prints a line for each fault; returns the exit status."""
    if arguments[:1] == ["--one"]:
        _show(arguments[1])
        return 0
    chosen = {name: FAULTS[name] for name in arguments} if arguments else FAULTS
    gone = 0
    for name, fault in chosen.items():
        if not fault.program:
            print(f"{name}: not checked, {fault.unchecked}")
            continue
        found = recheck(fault)
        gone += found != fault.symptom
        line = f"{name}: {found}"
        if found == "right":
            line += f"; the workaround may go: {fault.where}"
        elif found != fault.symptom:
            line += f", but the table says {fault.symptom}"
        print(line, flush=True)
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
