"""What a pass prints about the planning of a model, without compiling it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tilewright.api.front import import_user_model, preprocess
from tilewright.api.job import Job
from tilewright.api.progress import Steps
from tilewright.errors import temporary_files
from tilewright.frontends import Model
from tilewright.iree.versions import check_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.records.options import CompileOptions
from tilewright.records.targets import TargetChoice, resolve_targets
from tilewright.records.threads import thread_choices
from tilewright.system.cores import available_cores
from tilewright.system.deadline import Deadline
from tilewright.system.workfolder import WorkFolder
from tilewright.tuning.service import run_passes
from tilewright.tuning.subprograms import write_target
from tilewright.worker.process import lend_worker


def print_planning(
    name: str,
    extra: Mapping[str, str | list[str]],
    model: Model,
    target: TargetChoice,
    options: CompileOptions,
) -> Any:
    """Returns the JSON that a pass prints about a normalized model.

    `extra` are options of the pass besides the target, the numerics, `plan-seconds` and `grid-sync`, which follow from
    the options.
    """
    check_iree()
    threads = thread_choices(options.threads or available_cores())
    targets = resolve_targets(target, threads=threads[-1])
    deadline = Deadline(options.timeout)
    steps = Steps(None, deadline)
    with (
        temporary_files(),
        WorkFolder("planning") as folder,
        lend_worker(folder, deadline=deadline) as worker,
        steps.watch(worker.doing),
    ):
        job = Job(
            options=options,
            choice=target,
            targets=tuple(targets),
            threads=tuple(threads),
            folder=folder,
            worker=worker,
            deadline=deadline,
            progress=steps.report,
        )
        front = preprocess(job, import_user_model(job, model))
        output = folder / "printed.json"
        common = {
            "target": str(write_target(targets[0], folder)),
            "numerics": options.numerics,
            "plan-seconds": repr(options.plan_seconds),
            "grid-sync": str(options.grid_sync).lower(),
        }
        printing: dict[str, str | list[str]] = {
            **common,
            "output": str(output),
            **extra,
        }
        normalizing = {**common, "policy": options.policy}
        passes = pipeline(
            pass_text(f"tilewright-{targets[0].kind.backend}-normalize", normalizing),
            pass_text(name, printing),
        )
        run_passes(worker, front.text, passes, from_iree=True)
        return json.loads(output.read_text())
