"""Tables shaped like those of the papers behind the planning policies, each beside the paper's own figures.

`benchmarks/run.py policies --papers` prints them below its own table, for the models that it planned. Our figures are
predictions for the target, on which nothing has to run; those of the papers were measured on the GPU that the table
names. Models have the papers' names, but not always their sizes, so ratios compare and times do not.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from tilewright.api.policies import PolicyPlan, compare_policies
from tilewright.records.options import CompileOptions

from benchmarks.workloads.transformers import BertOptions, bert

_ABLATION = Path(__file__).parent / "results" / "2026-11-21-ablation.json"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The plans of a model by policy, and of `souffle` with its first optimisations only (`_STEPS`)."""

    plans: Mapping[str, PolicyPlan]
    steps: Mapping[str, PolicyPlan] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the tables are made of."""

    target: str
    models: Mapping[str, Planned] = field(default_factory=dict)
    sweep: Mapping[int, Mapping[str, PolicyPlan]] = field(default_factory=dict)
    """Plans of a BERT encoder by the length of its sequence."""

    def to_json(self) -> dict[str, Any]:
        return {
            "souffle_steps": {
                name: {step: plan.to_json() for step, plan in model.steps.items()}
                for name, model in self.models.items()
            },
            "sweep": {
                str(length): {policy: plan.to_json() for policy, plan in plans.items()}
                for length, plans in self.sweep.items()
            },
        }


_SWEPT = (32, 64, 128, 256, 512)
_STEPS = ("souffle-v1", "souffle-v2", "souffle-v3")
"""`souffle` with the horizontal transformation, with the vertical one as well, and with barriers of the grid."""


def gather(
    rows: Iterable[tuple[str, Callable[[], onnx.ModelProto], Sequence[PolicyPlan]]],
    target: str,
    options: CompileOptions,
) -> Evidence:
    """Makes the plans that the tables need besides those of the rows (workload, its model, plans)."""
    models = {
        name: Planned(
            plans=_by_policy(plans),
            steps=_by_policy(compare_policies(build(), target, options, only=_STEPS)),
        )
        for name, build, plans in rows
    }
    sweep = {}
    for length in _SWEPT:
        model = partial(bert, BertOptions(layers=1, sequence=length))()
        sweep[length] = _by_policy(
            compare_policies(model, target, options, only=["unfused", "xla", "welder"])
        )
    return Evidence(target=target, models=models, sweep=sweep)


def evidence_of(kept: Mapping[str, Any], target: str, plans: Mapping[str, Sequence[PolicyPlan]]) -> Evidence:
    """Returns the evidence that `to_json` wrote, with the plans of a target's rows by workload."""
    steps = {
        name: {step: PolicyPlan(**plan) for step, plan in own.items()}
        for name, own in kept["souffle_steps"].items()
    }
    return Evidence(
        target=target,
        models={
            name: Planned(plans=_by_policy(own), steps=steps.get(name, {})) for name, own in plans.items()
        },
        sweep={
            int(length): {policy: PolicyPlan(**plan) for policy, plan in swept.items()}
            for length, swept in kept["sweep"].items()
        },
    )


def _by_policy(plans: Iterable[PolicyPlan]) -> dict[str, PolicyPlan]:
    return {plan.policy: plan for plan in plans if plan.declined is None}


def tables(evidence: Evidence) -> str:
    """Returns all tables as Markdown."""
    made = (
        _fusionstitching(evidence),
        _welder_ablation(evidence),
        _welder_patterns(evidence),
        _welder_sweep(evidence),
        _souffle_models(evidence),
        _souffle_steps(evidence),
        _souffle_kernels(evidence),
        _powerfusion(evidence),
        _chimera(),
    )
    return "\n\n".join(table for table in made if table)


def _table(title: str, note: str, heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    rule = "|".join(["---", *["---:"] * (len(heading) - 1)])
    rows = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([f"### {title}", "", note, "", f"| {' | '.join(heading)} |", f"|{rule}|", *rows])


def _ratio(own: float | None, other: float | None) -> float | None:
    return own / other if own is not None and other else None


def _times(value: float | None) -> str:
    return f"{value:.2f}" if value is not None else ""


def _percent(value: float | None) -> str:
    return f"{value:.0%}" if value is not None else ""


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value]
    return statistics.geometric_mean(known) if known else None


# FusionStitching


_MEMORY_KERNELS = {"bert": ("BERT-infer", 365, 277, 77), "dien": ("DIEN-infer", 3680, 2585, 815)}
"""Models of table 2 that there are, with the paper's memory-intensive kernels of TensorFlow, XLA and its own."""


def _fusionstitching(evidence: Evidence) -> str:
    lines = []
    for name, model in evidence.models.items():
        unfused, xla, own = (model.plans.get(policy) for policy in ("unfused", "xla", "fusionstitching"))
        if not (unfused and xla and own):
            continue
        _, tensorflow, theirs, paper = _MEMORY_KERNELS.get(name, ("", None, None, None))
        lines.append(
            [
                name,
                _times(_ratio(unfused.seconds, xla.seconds)),
                _times(_ratio(unfused.seconds, own.seconds)),
                f"{unfused.memory_intensive_kernels}, {xla.memory_intensive_kernels}, "
                f"{own.memory_intensive_kernels}",
                f"{tensorflow}, {theirs}, {paper}" if paper else "",
                _percent(_ratio(own.memory_intensive_kernels, xla.memory_intensive_kernels)),
                _percent(_ratio(own.memory_intensive_bytes, unfused.memory_intensive_bytes)),
            ]
        )
    return _table(
        "FusionStitching, figure 7 and table 2",
        f"Predicted for {evidence.target}; the paper measured a V100: 1.45 over XLA and 1.66 over TensorFlow in the "
        "mean, at most 2.21 and 2.42, and 38% of XLA's memory-intensive kernels. Its figure has no other numbers.",
        [
            "model",
            "xla over unfused",
            "fusionstitching over unfused",
            "memory-intensive kernels: unfused, xla, fusionstitching",
            "paper: TF, XLA, FS",
            "kernels of xla's",
            "bytes of unfused",
        ],
        lines,
    )


# Welder


def _welder_ablation(evidence: Evidence) -> str:
    steps = []
    for model in evidence.models.values():
        none, base, full = (model.plans.get(policy) for policy in ("unfused", "xla", "welder"))
        if none and base and full:
            steps.append((none, base, full))
    if not steps:
        return ""
    lines = []
    paper = {"seconds": ("-52%", "-29%"), "kernels": ("-67%", "-60%"), "bytes": ("-52%", "-25%")}
    names = {"seconds": "time", "kernels": "kernels", "bytes": "bytes through memory"}
    for member, (base_paper, full_paper) in paper.items():
        first = _mean(_ratio(getattr(base, member), getattr(none, member)) for none, base, _ in steps)
        second = _mean(_ratio(getattr(full, member), getattr(base, member)) for _, base, full in steps)
        lines.append([names[member], _change(first), base_paper, _change(second), full_paper])
    return _table(
        "Welder, figure 13: none, base and full",
        f"Mean over {len(steps)} models, predicted for {evidence.target}: none is `unfused`, base `xla` (registers "
        "only) and full `welder`. The paper measured three models of batch 64 on a V100.",
        ["", "base to none", "paper", "full to base", "paper"],
        lines,
    )


def _change(ratio: float | None) -> str:
    return f"{ratio - 1:+.0%}" if ratio is not None else ""


def _welder_patterns(evidence: Evidence) -> str:
    lines = []
    for name, model in evidence.models.items():
        welder, unified = model.plans.get("welder"), model.plans.get("unified")
        if welder and unified:
            lines.append(
                [
                    name,
                    f"{welder.patterns}",
                    f"{welder.largest_kernel}",
                    f"{unified.patterns}",
                    f"{unified.largest_kernel}",
                ]
            )
    return _table(
        "Welder, table 4: fused patterns",
        "Different sequences of ops with two or more reductions that are one kernel, and the ops of the largest. The "
        "paper has 89 of them in 34 cases of ten models, the largest of 48 ops; NeRF's 7 layers are one kernel of 13.",
        ["model", "welder: patterns", "largest", "unified: patterns", "largest"],
        lines,
    )


def _welder_sweep(evidence: Evidence) -> str:
    lines = []
    for length, plans in evidence.sweep.items():
        base, full = plans.get("xla"), plans.get("welder")
        if base and full:
            lines.append(
                [
                    str(length),
                    _times(_ratio(base.seconds, full.seconds)),
                    f"{base.kernels}, {full.kernels}",
                ]
            )
    return _table(
        "Welder, figure 14: input sizes",
        f"A layer of BERT-base by the length of its sequence, predicted for {evidence.target}. In the paper, the gain "
        "falls with the sequence, because arithmetic grows with its square; its figure has no numbers.",
        ["sequence", "welder over base", "kernels: base, welder"],
        lines,
    )


# Souffle


_SOUFFLE_MODELS = {
    "bert": (2.55, 2.31, 1.30, 1.22),
    "swin-t": (6.43, 5.81, 1.74, 1.55),
    "mmoe": (0.29, 0.034, 0.070, 0.014),
}
"""Milliseconds of XLA, Ansor, TensorRT and Souffle (table 3)."""


def _souffle_models(evidence: Evidence) -> str:
    lines = []
    for name, paper in _SOUFFLE_MODELS.items():
        plans = evidence.models[name].plans if name in evidence.models else {}
        xla, own, unified = (plans.get(policy) for policy in ("xla", "souffle", "unified"))
        if not (xla and own and unified):
            continue
        theirs, _, _, souffle = paper
        lines.append(
            [
                name,
                ", ".join(f"{(plan.seconds or 0) * 1e3:.3f}" for plan in (xla, own, unified)),
                _times(_ratio(xla.seconds, own.seconds)),
                ", ".join(map(str, paper)),
                f"{theirs / souffle:.2f}",
            ]
        )
    return _table(
        "Souffle, table 3: whole models",
        f"Predicted for {evidence.target}, in ms. The paper measured an A100; its XLA calls libraries.",
        [
            "model",
            "xla, souffle, unified",
            "souffle over xla",
            "paper: XLA, Ansor, TensorRT, Souffle",
            "paper: Souffle over XLA",
        ],
        lines,
    )


_SOUFFLE_STEPS = {
    "bert": (3.1, 2.12, 1.53, 1.41, 1.22),
    "swin-t": (5.81, 4.88, 2.09, 1.78, 1.55),
    "mmoe": (0.05, 0.019, 0.016, 0.014, 0.014),
}
_SOUFFLE_KERNELS = {
    "bert": (216, 24, 226.8),
    "swin-t": (3188, 53, 282.9),
    "mmoe": (7, 1, 0.058),
}
"""Kernels of XLA, kernels of Souffle, and its traffic in MB."""


def _souffle_steps(evidence: Evidence) -> str:
    lines = []
    for name, paper in _SOUFFLE_STEPS.items():
        model = evidence.models.get(name)
        if model is None or not {"unfused", "souffle"} <= model.plans.keys():
            continue
        steps = [model.plans["unfused"], *(model.steps.get(step) for step in _STEPS), model.plans["souffle"]]
        times = [step.seconds if step else None for step in steps]
        lines.append(
            [
                name,
                ", ".join(f"{seconds * 1e3:.3f}" if seconds is not None else "-" for seconds in times),
                ", ".join(_times(_ratio(times[0], seconds)) or "-" for seconds in times),
                ", ".join(map(str, paper)),
                ", ".join(f"{paper[0] / step:.2f}" for step in paper),
            ]
        )
    return _table(
        "Souffle, table 4: V0 to V4",
        f"Predicted for {evidence.target}, in ms: `unfused` (V0), with the horizontal transformation (V1), the "
        "vertical one (V2), barriers of the grid (V3), and tiles that stay on the chip (V4, `souffle`). Ours may be "
        "slower with a step, because the rules of `souffle` look at no prediction. The paper measured an A100; its V0 "
        "is Ansor, which fuses elementwise ops.",
        ["model", "V0 to V4", "faster than V0", "paper: V0 to V4", "paper: faster than V0"],
        lines,
    )


def _souffle_kernels(evidence: Evidence) -> str:
    lines = []
    for name, model in evidence.models.items():
        xla, own, unified = (model.plans.get(policy) for policy in ("xla", "souffle", "unified"))
        if not (xla and own and unified):
            continue
        paper = _SOUFFLE_KERNELS.get(name)
        lines.append(
            [
                name,
                f"{xla.kernels}, {own.kernels}, {unified.kernels}",
                ", ".join(f"{(plan.bytes or 0) / 1e6:.3g}" for plan in (xla, own, unified)),
                f"{paper[0]}, {paper[1]}" if paper else "",
                f"{paper[2]}" if paper else "",
            ]
        )
    return _table(
        "Souffle, table 5: kernel calls and traffic",
        f"Planned for {evidence.target}; MB that kernels move to and from memory.",
        [
            "model",
            "kernels: xla, souffle, unified",
            "MB: the same",
            "paper's kernels: XLA, Souffle",
            "paper's MB",
        ],
        lines,
    )


# PowerFusion


_POWERFUSION = {"gpt2": "-73% (TensorRT), -71% (TVM)", "gpt2-decode": "-73% (TensorRT), -71% (TVM)"}


def _powerfusion(evidence: Evidence) -> str:
    lines = []
    for name, model in evidence.models.items():
        xla, own = model.plans.get("xla"), model.plans.get("powerfusion")
        if xla and own:
            computing = [(plan.kernels or 0) - (plan.memory_intensive_kernels or 0) for plan in (xla, own)]
            lines.append(
                [
                    name,
                    f"{computing[0]} + {xla.memory_intensive_kernels}",
                    f"{computing[1]} + {own.memory_intensive_kernels}",
                    _change(_ratio(own.kernels, xla.kernels)),
                    _times(_ratio(xla.seconds, own.seconds)),
                    _POWERFUSION.get(name, ""),
                ]
            )
    return _table(
        "PowerFusion, figures 10 and 13: kernels that compute and kernels that move",
        f"Planned for {evidence.target}. The paper measured an A100: 1.28 times faster than the best framework in the "
        "mean.",
        ["model", "xla", "powerfusion", "kernels", "powerfusion over xla", "paper: kernels"],
        lines,
    )


# Chimera


_CHIMERA = {"cost model": 2.37, "fusion": 1.89, "micro kernel": 1.61}


def _chimera() -> str:
    if not _ABLATION.is_file():
        return ""
    report = json.loads(_ABLATION.read_text())
    speedups: dict[str, list[float]] = {}
    for row in report["rows"]:
        if row["with"] != "nothing":
            speedups.setdefault(row["with"], []).append(row["speedup"])
    machine = report["machine"]
    return _table(
        "Chimera, figure 10: ablation",
        f"Measured on {machine['processor']}, {machine['cores']} cores, {machine['date']} "
        f"(benchmarks/ablate_chains.py), in the mean of {len(next(iter(speedups.values())))} chains. The paper "
        "measured a Xeon with AVX-512.",
        ["enabled", "over nothing", "paper"],
        [[name, _times(_mean(values)), _times(_CHIMERA.get(name))] for name, values in speedups.items()],
    )
