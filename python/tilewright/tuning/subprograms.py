"""The subprograms of a program, which are the units of tuning, and the keys of their decisions."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewright.ir.native import native
from tilewright.iree.versions import PINNED_IREE
from tilewright.pipelines import pass_text, pipeline
from tilewright.records.options import NumericsMode
from tilewright.records.plan import Plan
from tilewright.records.report import Report
from tilewright.records.targets import Target
from tilewright.system.version import package_version
from tilewright.tuning.service import run_passes
from tilewright.worker.process import Worker


@dataclass(frozen=True)
class Subprogram:
    """One fusion group of a plan: `plan.kernels[kernel].groups[part]`."""

    kernel: int
    part: int
    form: str
    """A module with a function that computes the same; equal subprograms have equal forms."""


@dataclass(frozen=True)
class Planned:
    """A program as planned without measurements."""

    plan: Plan | None
    """None if there is nothing to plan."""
    report: Report
    subprograms: tuple[Subprogram, ...]
    form: str
    """A module with a function of all ops that a plan is about; equal programs have equal forms."""

    def streams_weights(self, target: Target) -> bool:
        """True if the weights are too large to stay in the caches beside the rest, so that every call reads them
        from memory."""
        size = sum(weight_bytes(subprogram.form) for subprogram in self.subprograms)
        return 2 * size > cache_bytes(target)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Everything besides the subprogram that a decision depends on."""

    target: Target
    numerics: NumericsMode
    streams_weights: bool = False
    """Property of the whole program: see `Planned`."""

    def key(self, form: str, *, against: str = "") -> str:
        """Returns the key of the decision for a subprogram of this form, or for a region or program of this form.
        For these, `against` says which, and which plan others had to beat."""
        parts = {
            "form": form,
            "against": against,
            "target": self.target.to_json(),
            "numerics": self.numerics,
            "streams_weights": self.streams_weights,
            "versions": compiler_versions(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def compiler_versions() -> dict[str, str]:
    """Returns the versions of everything that generates code from a plan."""
    return {"tilewright": package_version(), "llvm": native.llvm_version, "iree": PINNED_IREE}


_WEIGHT = re.compile(r"%arg(\d+): tensor<((?:\d+x)*)[a-z]+(\d+)> \{tilewright\.weight\}")


def weight_arguments(form: str) -> tuple[int, ...]:
    """Returns the arguments of a subprogram or region that are weights."""
    return tuple(int(argument) for argument, _, _ in _WEIGHT.findall(form))


def weight_bytes(form: str) -> int:
    """Returns the bytes of all weights that a subprogram reads."""
    return sum(
        math.prod(int(size) for size in sizes.split("x") if size) * max(8, int(bits)) // 8
        for _, sizes, bits in _WEIGHT.findall(form)
    )


def cache_bytes(target: Target) -> int:
    """Returns the bytes of the target's largest cache."""
    return max(level.capacity_bytes for level in target.levels)


@dataclass(frozen=True)
class Region:
    """A part of a program for which the plans of the search have different kernels."""

    ops: tuple[int, ...]
    """Numbers of its ops in the plan of the program."""
    form: str
    """A module with a function of these ops; equal regions have equal forms."""
    plans: tuple[Plan, ...]
    """Plans of that function, the program's own first."""


def list_subprograms(
    text: str, setting: Setting, *, worker: Worker, folder: Path, plan: Plan | None = None
) -> tuple[Planned, Setting]:
    """Plans a module at IREE's preprocessing phase and splits the plan into subprograms. A given plan replaces the
    planner's, or its choices of forms if it states nothing else.

    The returned setting includes whether weights are streamed. Raises `PassError` if the given plan is illegal.
    """
    options: dict[str, str | int] = {}
    if plan is not None and (plan.kernels or plan.left):
        plan.save(folder / "whole-plan.json")
        options["plan-in"] = str(folder / "whole-plan.json")
    data = _print("tile-print-subprograms", options, text, setting, worker=worker, folder=folder, forms=plan)
    planned = Planned(
        plan=Plan.from_json(data["plan"]) if data["plan"] is not None else None,
        report=Report.from_json(data["report"]),
        subprograms=tuple(Subprogram(**item) for item in data["subprograms"]),
        form=data["form"],
    )
    return planned, replace(setting, streams_weights=planned.streams_weights(setting.target))


def list_regions(
    text: str, setting: Setting, *, count: int, forms: Plan, worker: Worker, folder: Path
) -> tuple[Region, ...]:
    """Returns the regions of a module for which plans differ, each with at most `count` plans, at least two. The module
    has the forms that a plan states."""
    data = _print(
        "tile-print-regions", {"count": count}, text, setting, worker=worker, folder=folder, forms=forms
    )
    return tuple(
        Region(
            ops=tuple(region["ops"]),
            form=region["form"],
            plans=tuple(Plan.from_json(plan) for plan in region["plans"]),
        )
        for region in data
    )


def _print(
    name: str,
    options: dict[str, str | int],
    text: str,
    setting: Setting,
    *,
    worker: Worker,
    folder: Path,
    forms: Plan | None,
) -> Any:
    """Returns what a pass prints about a module at IREE's preprocessing phase, after its normalization with the forms
    that a plan states."""
    output = folder / "printed.json"
    common = {"target": str(write_target(setting.target, folder)), "numerics": setting.numerics}
    requested: dict[str, str] = {}
    if forms is not None:
        forms.forms_only().save(folder / "forms.json")
        requested["plan-in"] = str(folder / "forms.json")
    passes = pipeline(
        pass_text(f"tilewright-{setting.target.backend}-normalize", {**common, **requested}),
        pass_text(name, {**common, **options, "output": str(output)}),
    )
    run_passes(worker, text, passes, from_iree=True)
    return json.loads(output.read_text())


def list_candidates(
    form: str, setting: Setting, *, count: int, worker: Worker, folder: Path
) -> Sequence[Plan]:
    """Returns the plans to try for a subprogram, beginning with the unmeasured one."""
    output = folder / "candidates.json"
    options: dict[str, str | int] = {
        "target": str(write_target(setting.target, folder)),
        "numerics": setting.numerics,
        "output": str(output),
        "count": count,
    }
    run_passes(worker, form, pipeline(pass_text("tile-print-candidates", options)))
    return [Plan.from_json(plan) for plan in json.loads(output.read_text())]


def write_target(target: Target, folder: Path) -> Path:
    """Writes the target to a file, as passes take it."""
    path = folder / "tuning-target.json"
    path.write_text(json.dumps(target.to_json()))
    return path
