"""Comparison of the plans that the planning policies make of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class PolicyPlan:
    """The plan of one policy, by its predictions."""

    policy: str
    planning_seconds: float
    """Wall time of the planning, which shared nothing with other policies."""
    seconds: float | None = None
    """Predicted seconds of all kernels, and of what the plan leaves to IREE although Tilewright may compute it, priced
    like kernels of Tilewright; None if there is no plan."""
    bytes: float | None = None
    """Predicted bytes that they move to and from memory."""
    kernels: int | None = None
    memory_intensive_kernels: int | None = None
    """Kernels without contractions."""
    memory_intensive_bytes: float | None = None
    """Predicted bytes that they move to and from memory."""
    launches: int | None = None
    """Kernels, and dispatches of IREE that are part of the prediction."""
    declined: str | None = None
    """The reason why the policy has no plan."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


def compare_policies(
    model: Model, target: TargetChoice = "cpu", options: CompileOptions | None = None
) -> tuple[PolicyPlan, ...]:
    """Plans a model with every policy, and compiles nothing. There are no plans if Tilewright has nothing to compute.

    The options say for how many threads, with which numerics and how long `unified` may search.
    """
    options = options or CompileOptions()
    check_iree()
    threads = thread_choices(options.threads or available_cores())
    targets = resolve_targets(target, threads=threads[-1])
    deadline = Deadline(options.timeout)
    steps = Steps(None, deadline)
    with (
        temporary_files(),
        WorkFolder("policies") as folder,
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
        file = str(write_target(targets[0], folder))
        output = folder / "policies.json"
        common = {"target": file, "numerics": options.numerics}
        compare = {
            **common,
            "plan-seconds": repr(options.plan_seconds),
            "grid-sync": str(options.grid_sync).lower(),
            "output": str(output),
        }
        passes = pipeline(
            pass_text(f"tilewright-{targets[0].backend}-normalize", common),
            pass_text("tile-print-policies", compare),
        )
        run_passes(worker, front.text, passes, from_iree=True)
        return tuple(PolicyPlan(**entry) for entry in json.loads(output.read_text()))


def table(plans: tuple[PolicyPlan, ...]) -> str:
    """Returns the plans as text, one line each, the shortest prediction first."""
    if not plans:
        return "Tilewright has nothing to plan here"
    lines = [f"{'policy':<16}{'predicted':>12}{'kernels':>9}{'MB moved':>10}{'planning':>10}"]
    for plan in sorted(plans, key=lambda own: (own.seconds is None, own.seconds)):
        if plan.seconds is None:
            lines.append(f"{plan.policy:<16}  {plan.declined}")
            continue
        lines.append(
            f"{plan.policy:<16}{plan.seconds * 1e6:>9.1f} us{plan.kernels:>9}{(plan.bytes or 0) / 1e6:>10.2f}"
            f"{plan.planning_seconds:>8.2f} s"
        )
    return "\n".join(lines)
