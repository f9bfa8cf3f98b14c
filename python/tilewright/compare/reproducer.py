"""Writes a folder that reproduces a wrong result: a small model, its inputs, what they must give, and a script."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tilewright.compare.check import Checked
from tilewright.errors import OutputError
from tilewright.iree.versions import PINNED_IREE
from tilewright.records.options import CompileOptions
from tilewright.reference.judging import Judge
from tilewright.reference.oracle import Array
from tilewright.simulator.programs import simulated_target
from tilewright.system.version import package_version

_SCRIPT = '''"""Compiles the model beside this file, runs it, and exits with 1 if its results are still wrong."""

import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import tilewright

HERE = Path(__file__).resolve().parent
OPTIONS = {options}
IS_SIMULATED = {is_simulated}
INPUT_TYPES = {types}
ALLOWED = {allowed}  # of the largest magnitude of each output, or of its norm


def read(name):
    data = np.load(HERE / name)
    return [data[str(number)] for number in range(len(data.files))]


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def run(*inputs):
    if not IS_SIMULATED:
        return tilewright.compile(HERE / "model.onnx", cache=False, **OPTIONS)(*inputs)
    from tilewright.simulator.programs import simulate_program

    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump"
        program = tilewright.compile(HERE / "model.onnx", cache=False, dump_dir=dump, **OPTIONS)
        return simulate_program(program, dump, inputs).outputs


inputs = [array.view(dtype(name)) for array, name in zip(read("inputs.npz"), INPUT_TYPES, strict=True)]
is_right = True
for number, (y, y64) in enumerate(zip(run(*inputs), read("expected.npz"), strict=True)):
    y, y64 = y.astype(np.float64), y64.astype(np.float64)
    same = (y == y64) | (np.isnan(y) & np.isnan(y64))
    distance = np.where(same, 0, np.abs(y - y64))
    finite = y64[np.isfinite(y64)]
    scale = np.abs(finite).max(initial=0.0) or 1.0
    norm = np.linalg.norm(finite) or 1.0
    error = max(distance.max(initial=0.0) / scale, np.linalg.norm(distance) / norm)
    print(f"output {{number}}: off by {{error:.2g}}, allowed {{ALLOWED[number]:.2g}}")
    is_right &= bool(error <= ALLOWED[number])
sys.exit(0 if is_right else 1)
'''


def write_reproducer(
    checked: Checked, folder: Path, *, options: CompileOptions, target: str, device: str | None = None
) -> Path:
    """Writes the reproducer of a difference, found on the simulated `device` if there is one. Raises `OutputError` if
    the folder exists or cannot be written; it then leaves nothing behind."""
    culprit = checked.culprit
    if culprit is None:
        raise OutputError(
            "no part of the model is wrong on its own, so there is no reproducer", where=str(folder)
        )
    found = culprit.found
    if folder.exists():
        raise OutputError("exists already", where=str(folder), hint="name another folder with -o")
    expected = Judge(found.window, found.inputs).expected
    allowed = {difference.output: difference.allowed for difference in found.differences}
    limits = [allowed.get(value.name, max(allowed.values())) for value in found.window.graph.output]
    script = _SCRIPT.format(
        options=repr({"target": simulated_target(device) if device else target, **_arguments(options)}),
        is_simulated=device is not None,
        types=repr([array.dtype.name for array in found.inputs]),
        allowed=repr(limits),
    )
    report = {
        **checked.to_json(),
        "summary": str(culprit),
        "details": [str(difference) for difference in found.differences],
        "tilewright": package_version(),
        "iree": PINNED_IREE,
        "options": _arguments(options),
    }
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            onnx.save(found.window, temporary / "model.onnx")
            _write_arrays(temporary / "inputs.npz", found.inputs)
            _write_arrays(temporary / "expected.npz", expected)
            (temporary / "run.py").write_text(script)
            (temporary / "report.json").write_text(json.dumps(report, indent=2) + "\n")
            temporary.chmod(0o755)
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        raise OutputError(f"cannot be written ({error.strerror})", where=str(folder)) from None
    return folder


def _arguments(options: CompileOptions) -> dict[str, Any]:
    """Returns the arguments of `tilewright.compile` that a reproducer needs, without passes of the caller."""
    defaults = CompileOptions()
    names = ("threads", "iree_flags", "strict", "numerics", "policy", "plan_seconds", "grid_sync")
    chosen = {name: getattr(options, name) for name in names}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in chosen.items()
        if value != getattr(defaults, name)
    }


def _write_arrays(path: Path, arrays: Sequence[Array]) -> None:
    """Writes arrays under their numbers; types that numpy lacks as unsigned integers of their size."""
    plain = [a.view(f"u{a.dtype.itemsize}") if a.dtype.kind == "V" else a for a in arrays]
    with path.open("wb") as file:
        np.savez(file, **{str(number): array for number, array in enumerate(plain)})  # type: ignore[arg-type]
