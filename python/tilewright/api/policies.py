"""Comparison of the plans that the planning policies make of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.api.printing import print_planning
from tilewright.frontends import Model
from tilewright.records.options import CompileOptions
from tilewright.records.targets import TargetChoice


@dataclass(frozen=True, kw_only=True)
class PolicyPlan:
    """The plan of one policy, by its predictions."""

    policy: str
    planning_seconds: float
    """Processor time of the planning, which shared nothing with other policies."""
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
    patterns: int | None = None
    """Different sequences of ops with two or more reductions that are one kernel."""
    largest_kernel: int | None = None
    """Ops of the kernel that has the most."""
    launches: int | None = None
    """Kernels, and dispatches of IREE that are part of the prediction."""
    declined: str | None = None
    """The reason why the policy has no plan."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


def compare_policies(
    model: Model,
    target: TargetChoice = "cpu",
    options: CompileOptions | None = None,
    *,
    only: Sequence[str] = (),
) -> tuple[PolicyPlan, ...]:
    """Plans a model with every policy, or with some, and compiles nothing. There are no plans if Tilewright has nothing
    to compute.

    The options say for how many threads, with which numerics and how long `unified` may search. `only` names policies,
    or steps of Souffle's ablation, which are no policies: "souffle-v1" transforms horizontally, "souffle-v2" vertically
    as well, and "souffle-v3" has barriers of the grid, too. All plan the graph with the forms that the options' policy
    chooses.
    """
    printed = print_planning(
        "tile-print-policies", {"only": list(only)}, model, target, options or CompileOptions()
    )
    return tuple(PolicyPlan(**entry) for entry in printed)


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
