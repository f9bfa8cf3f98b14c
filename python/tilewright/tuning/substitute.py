"""Carries decisions into the plan of a whole program by renumbering each subprogram's own plan."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import replace

from tilewright.records.plan import EdgePlan, GroupPlan, KernelPlan, OpPlan, Plan, TensorPlan
from tilewright.tuning.subprograms import Subprogram


def substitute(plan: Plan, chosen: Sequence[tuple[Subprogram, Plan]]) -> Plan:
    """Returns the plan with other plans for some of its subprograms.

    A fusion group that shares its kernel with others stays there; a plan that would split it into several kernels is
    not used.
    """
    result = copy.deepcopy(plan)
    result.kernels = []
    by_place = {(s.kernel, s.part): inner for s, inner in chosen}
    for number, kernel in enumerate(plan.kernels):
        inner = by_place.get((number, 0))
        if len(kernel.groups) == 1 and inner is not None:
            result.kernels += _kernels(kernel, inner)
        else:
            result.kernels.append(
                _packed(kernel, [by_place.get((number, i)) for i in range(len(kernel.groups))])
            )
        for index, part in enumerate(kernel.groups):
            inner = by_place.get((number, index))
            if inner is not None and (len(kernel.groups) == 1 or len(inner.kernels) == 1):
                _take_edges_and_left(result, part, inner)
    result.streams = [list(range(len(result.kernels)))] if result.kernels else []
    return result


def _kernels(kernel: KernelPlan, inner: Plan) -> list[KernelPlan]:
    ids = _ids(kernel.groups[0])
    names = (
        [kernel.name]
        if len(inner.kernels) == 1
        else [f"{kernel.name}_{i}" for i in range(len(inner.kernels))]
    )
    return [
        replace(own, name=name, groups=[_renumbered(part, ids, first_input=0) for part in own.groups])
        for name, own in zip(names, inner.kernels, strict=True)
    ]


def _packed(kernel: KernelPlan, inner: Sequence[Plan | None]) -> KernelPlan:
    parts = []
    for part, plan in zip(kernel.groups, inner, strict=True):
        if plan is None or len(plan.kernels) != 1:
            parts.append(part)
            continue
        inputs = [int(t.tensor[2:]) for t in part.tensors if t.tensor.startswith("in")]
        parts.append(_renumbered(plan.kernels[0].groups[0], _ids(part), first_input=min(inputs, default=0)))
    return replace(kernel, groups=parts)


def _ids(part: GroupPlan) -> list[int]:
    """Maps numbers of ops in the subprogram to ops of the whole graph."""
    return [op.id for op in part.ops]


def _renumbered(part: GroupPlan, ids: Sequence[int], *, first_input: int) -> GroupPlan:
    ops: list[OpPlan] = [replace(op, id=ids[op.id]) for op in part.ops]
    tensors = [replace(t, tensor=_tensor(t, ids, first_input)) for t in part.tensors]
    return replace(part, ops=ops, tensors=tensors)


def _tensor(tensor: TensorPlan, ids: Sequence[int], first_input: int) -> str:
    if tensor.tensor.startswith("in"):
        return f"in{int(tensor.tensor[2:]) + first_input}"
    return re.sub(r"^op(\d+)", lambda match: f"op{ids[int(match[1])]}", tensor.tensor)


def _take_edges_and_left(plan: Plan, part: GroupPlan, inner: Plan) -> None:
    ids = _ids(part)
    edges = {(ids[edge.consumer], edge.input): edge for edge in inner.edges}

    def taken(edge: EdgePlan) -> EdgePlan:
        own = edges.get((edge.consumer, edge.input))
        return edge if own is None else replace(own, producer=edge.producer, consumer=edge.consumer)

    plan.edges = [taken(edge) for edge in plan.edges]
    plan.left += [replace(op, id=ids[op.id]) for op in inner.left]
