"""Carries decisions into the plan of a whole program by renumbering the plan of each subprogram or region."""

from __future__ import annotations

import copy
import graphlib
import heapq
import itertools
import re
from collections.abc import Iterator, Sequence
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


def replace_region(plan: Plan, ops: Sequence[int], inner: Plan) -> Plan | None:
    """Returns the plan with the kernels that another one has for a region, whose ops are those of whole kernels.

    `inner` is the plan of a function of these ops, numbered from 0. Returns None if kernels would wait for each other.
    """
    members = set(ops)
    result = copy.deepcopy(plan)
    result.kernels = [kernel for kernel in result.kernels if kernel.groups[0].ops[0].id not in members]
    names = {kernel.name for kernel in result.kernels}
    for kernel in inner.kernels:
        name = next(n for n in _numbered(kernel.name) if n not in names)
        names.add(name)
        groups = [_renumbered(group, ops, first_input=0) for group in kernel.groups]
        result.kernels.append(replace(kernel, name=name, groups=groups))
    inside = {
        (ops[edge.consumer], edge.input): replace(
            edge, producer=ops[edge.producer], consumer=ops[edge.consumer]
        )
        for edge in inner.edges
    }
    result.edges = [inside.get((edge.consumer, edge.input), edge) for edge in result.edges]
    result.left = [op for op in result.left if op.id not in members]
    result.left += [replace(op, id=ops[op.id]) for op in inner.left]
    result.left.sort(key=lambda op: op.id)
    return _in_launch_order(result)


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in itertools.count(1))


def _in_launch_order(plan: Plan) -> Plan | None:
    """Orders kernels behind those that they read, the first op first; None if that is impossible."""
    number_of = {
        op.id: n for n, kernel in enumerate(plan.kernels) for group in kernel.groups for op in group.ops
    }
    # Ops that are left stand between kernels; they have numbers behind those of kernels.
    number_of |= {op.id: len(plan.kernels) + op.id for op in plan.left}
    waits: graphlib.TopologicalSorter[int] = graphlib.TopologicalSorter()
    for number in range(len(plan.kernels)):
        waits.add(number)
    for edge in plan.edges:
        producer, consumer = number_of.get(edge.producer), number_of.get(edge.consumer)
        if producer is not None and consumer is not None and producer != consumer:
            waits.add(consumer, producer)
    first_of = {
        n: min(op.id for group in kernel.groups for op in group.ops) for n, kernel in enumerate(plan.kernels)
    }
    ready: list[tuple[int, int]] = []
    ordered = []
    try:
        waits.prepare()
    except graphlib.CycleError:
        return None
    while waits.is_active():
        for number in waits.get_ready():
            heapq.heappush(ready, (first_of.get(number, number - len(plan.kernels)), number))
        _, number = heapq.heappop(ready)
        waits.done(number)
        if number < len(plan.kernels):
            ordered.append(plan.kernels[number])
    plan.kernels = ordered
    plan.streams = [list(range(len(ordered)))] if ordered else []
    return plan


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
    return replace(kernel, groups=parts, resident_blocks=None)  # which follow from the groups


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
