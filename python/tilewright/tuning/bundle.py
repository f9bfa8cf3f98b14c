"""Tuning for GPUs: plans are compiled on this machine, timed on a machine with the GPU, and decided here again.

A bundle has the PTX of the best few plans of every distinct subprogram, and a script that times them (`on_gpu`).
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.errors import CompileTimeoutError, OutputError, PassError, TuningError
from tilewright.frontends import Model
from tilewright.records.encoding import parse_json
from tilewright.records.options import NumericsMode
from tilewright.records.plan import Plan
from tilewright.records.targets import TargetChoice, resolve_targets
from tilewright.system.deadline import Deadline, checked_timeout
from tilewright.system.workfolder import WorkFolder
from tilewright.tuning.contest import by_hash, compiling
from tilewright.tuning.database import Database
from tilewright.tuning.deciding import decide
from tilewright.tuning.on_gpu import FORMAT, MANIFEST, PROGRAMS
from tilewright.tuning.service import run_passes
from tilewright.tuning.subprograms import Setting, list_candidates
from tilewright.tuning.timer import LAUNCHES
from tilewright.tuning.tuner import CANDIDATES, plan_program
from tilewright.worker.process import Worker

_RUN = """import os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
paths = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
command = [sys.executable, "-m", "tilewright.tuning.on_gpu", here, *sys.argv[1:]]
sys.exit(subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}).returncode)
"""


def make_bundle(
    model: Model,
    target: TargetChoice,
    folder: Path,
    *,
    numerics: NumericsMode = "default",
    candidates: int = CANDIDATES,
    iree_flags: Sequence[str] = (),
    timeout: float | None = None,
) -> int:
    """Fills an empty folder for a machine with the target's GPU; returns the number of distinct subprograms.

    `timeout` is the same as in `tilewright.tune`.
    """
    timeout = checked_timeout(timeout)
    targets = resolve_targets(target, threads=1)
    if targets[0].kind.in_process:
        raise TuningError(
            f"{targets[0].name} is not a GPU, so there is nothing to bundle", hint="tune on a machine with it"
        )
    if folder.is_dir() and any(folder.iterdir()):
        raise OutputError("is not empty", where=str(folder), hint="name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot be made ({error.strerror})", where=str(folder)) from None
    with WorkFolder("tune") as work:
        program = plan_program(model, target, targets, (1,), numerics, iree_flags, work, timeout)
        planned, setting = program.planned, program.setting
        forms = {subprogram.form: subprogram for subprogram in reversed(planned.subprograms)}
        subprograms = []
        with zipfile.ZipFile(folder / PROGRAMS, "w", zipfile.ZIP_DEFLATED) as archive, Worker(work) as worker:
            for number, (form, first) in enumerate(forms.items()):
                assert planned.plan is not None
                plans = _compile(form, setting, candidates, number, archive, worker, work, timeout)
                if plans:
                    kernel = planned.plan.kernels[first.kernel].name
                    subprograms.append({"key": setting.key(form), "name": kernel, "plans": plans})
    manifest = {"format": FORMAT, "target": setting.target.name, "subprograms": subprograms}
    (folder / MANIFEST).write_text(json.dumps(manifest) + "\n")
    (folder / "run.py").write_text(_RUN)
    ignored = shutil.ignore_patterns("__pycache__", "_native*", "_runtime*", "bin", "include", "lib")
    shutil.copytree(
        Path(__file__).parents[1], folder / "tilewright", ignore=ignored, ignore_dangling_symlinks=True
    )
    return len(subprograms)


def _compile(
    form: str,
    setting: Setting,
    count: int,
    number: int,
    archive: zipfile.ZipFile,
    worker: Worker,
    work: Path,
    timeout: float | None,
) -> list[dict[str, Any]]:
    """Compiles the plans, the unmeasured one first, and returns those that compile; none if the unmeasured one does
    not."""
    worker.deadline = Deadline(timeout)
    try:
        plans = list_candidates(form, setting, count=count, worker=worker, folder=work)
    except (PassError, CompileTimeoutError):
        return []
    compiled: list[dict[str, Any]] = []
    for plan in by_hash(plans).values():
        plan.save(work / "plan.json")
        worker.deadline = Deadline(timeout)
        try:
            run_passes(worker, form, compiling(setting, work))
        except (PassError, CompileTimeoutError):
            if not compiled:
                return []
            continue
        place = f"{number}/{len(compiled)}"
        archive.write(work / "kernels.ptx", f"{place}/kernels.ptx")
        flow = json.loads((work / LAUNCHES).read_text())
        compiled.append({"plan": plan.to_json(), "folder": place, "launches": flow})
    return compiled


def take_results(path: Path, database: Database) -> int:
    """Makes decisions from the output of `on_gpu`; of two decisions for one subprogram, the later stays.

    Returns how many decisions were added.
    """
    try:
        results = parse_json(path.read_text())
        if results["format"] != FORMAT:
            raise TuningError(
                "was made by another version of Tilewright", where=str(path), hint="make the bundle again"
            )
        decisions = []
        for subprogram in results["subprograms"]:
            plans = {str(i): Plan.from_json(p["plan"]) for i, p in enumerate(subprogram["plans"])}
            samples = {str(i): p["seconds"] for i, p in enumerate(subprogram["plans"]) if p.get("seconds")}
            if "0" not in samples:
                continue  # The unmeasured plan does not run, so nothing can be compared with it.
            decisions.append(
                decide(
                    samples,
                    plans,
                    unmeasured="0",
                    unfused=[own for own, plan in plans.items() if len(plan.kernels) > 1],
                    key=subprogram["key"],
                    name=subprogram["name"],
                    target=results["target"],
                    candidates=len(samples),
                    machine=results["machine"],
                    measured_at=results["measured_at"],
                )
            )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TuningError(
            f"not the results of a tuning bundle: {error!r}",
            where=str(path),
            hint="give the file that run.py wrote",
        ) from None
    return database.take(decisions)
