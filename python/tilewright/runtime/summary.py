"""Summarises a report: one entry per kernel, the boundaries between kernels, and what of the model they cover."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.records.report import Kernel, LaunchEdge, LeftOp, OpReport, Report

_SCOPES = ("thread", "warp", "block", "cluster", "grid")
_LONGEST_KINDS = 6

_Why = tuple[str, str]
"""A reason, and what would change it."""
_ONLY_VIEWS: _Why = (
    "a reshape lies between the two, which IREE makes a view",
    "a kernel of ours that takes the reshape in",
)


@dataclass(frozen=True)
class KernelSummary:
    """One kernel, in the model's names."""

    number: int
    """Position in the report, from 1; boundaries refer to it."""
    name: str
    title: str
    """The part of the model that the kernel is, such as "encoder/layer.0" or "matmul_3 … softmax_9"."""
    model_ops: int
    """Named ops of the model in the kernel."""
    kinds: Mapping[str, int]
    """Model ops with loop nests of their own, by kind, in order: {"matmul": 2, "softmax": 1}."""
    scopes: Mapping[str, int]
    """Edges inside the kernel by the scope at which the tile is handed over, innermost first."""
    predicted_seconds: float
    measured_seconds: float | None
    """Seconds that tuning measured for the kernel's plan; None if it was not tuned."""


@dataclass(frozen=True)
class Boundary:
    """A boundary between two kernels: what goes through memory, and why it is not inside one kernel."""

    producer: int
    consumer: int
    tensors: tuple[tuple[str, str], ...]
    """Names of the op that writes and of the op that reads, for each edge."""
    bytes: int
    """Bytes written and read again, each tensor counted once."""
    reason: str
    would_change: str


@dataclass(frozen=True)
class Coverage:
    """What the kernels of a program cover."""

    ops_taken: int
    """Ops in kernels of Tilewright."""
    ops_eligible: int
    """Ops that need a kernel, those in kernels of Tilewright included."""
    bytes_taken: int
    bytes_eligible: int
    predicted_seconds: float
    """Predicted seconds of the kernels of Tilewright."""
    iree_seconds: float
    """Lower bound of the seconds of what stays with IREE."""


@dataclass(frozen=True)
class Summary:
    """The first screen of `explain`."""

    kernels: tuple[KernelSummary, ...]
    boundaries: tuple[Boundary, ...]
    coverage: Coverage
    left: tuple[LeftOp, ...]
    """Ops for which IREE launches kernels."""


def summarize(report: Report, *, iree_seconds: float = 0.0) -> Summary:
    everywhere = _common_path(op.location for kernel in report.kernels for op in kernel.ops)
    kernels = tuple(
        _kernel(number, kernel, everywhere) for number, kernel in enumerate(report.kernels, start=1)
    )
    counted = report.coverage
    return Summary(
        kernels=kernels,
        boundaries=_boundaries(report),
        coverage=Coverage(
            ops_taken=counted.get("ops_taken", 0),
            ops_eligible=counted.get("ops_eligible", 0),
            bytes_taken=counted.get("bytes_taken", 0),
            bytes_eligible=counted.get("bytes_eligible", 0),
            predicted_seconds=sum(kernel.predicted_seconds for kernel in kernels),
            iree_seconds=iree_seconds,
        ),
        left=tuple(op for op in report.left_to_iree if op.is_dispatch),
    )


def is_layout(op: OpReport) -> bool:
    """Returns true for an op that computes nothing and only says where elements lie."""
    return op.op.startswith("tensor.") or op.op in ("linalg.transpose", "linalg.broadcast")


def _kernel(number: int, kernel: Kernel, everywhere: Sequence[str]) -> KernelSummary:
    names = _names(kernel.ops)
    scopes = Counter(edge.scope for edge in kernel.edges)
    roots = _names(op for op in kernel.ops if op.is_root and not is_layout(op))
    measured = [one.seconds for one in kernel.measured if not one.region_ops]
    return KernelSummary(
        number=number,
        name=kernel.name,
        title=_title(list(names), everywhere) or kernel.name,
        model_ops=len(names),
        kinds=Counter(_kind(name, op) for name, op in (roots or names).items()),
        scopes={scope: scopes[scope] for scope in _SCOPES if scopes[scope]},
        predicted_seconds=kernel.predicted_seconds,
        measured_seconds=sum(measured) if measured else None,
    )


def _names(ops: Iterable[OpReport]) -> dict[str, str]:
    """Returns the model's names of ops in order, each with the name of its first operation in MLIR."""
    names: dict[str, str] = {}
    for op in ops:
        names.setdefault(op.location or f"{op.op}#{op.id}", op.op)
    return names


def _title(names: Sequence[str], everywhere: Sequence[str]) -> str:
    """Returns the module that all names share, if it is smaller than the whole model, or the first and last name."""
    if not names:
        return ""
    common = _common_path(names)
    if len(common) > len(everywhere):
        return "/".join(common)
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _common_path(names: Iterable[str]) -> list[str]:
    """Returns the folders that all names share: ["encoder", "layer.0"] for names of modules of PyTorch."""
    paths = [name.split("/")[:-1] for name in names]
    if not paths:
        return []
    shared = []
    for folders in zip(*paths, strict=False):
        if len(set(folders)) > 1:
            break
        shared.append(folders[0])
    return shared


def _kind(name: str, op: str) -> str:
    """Returns what kind of op a name speaks of: "matmul" for "/layer.0/MatMul_3"; without a name, MLIR's name."""
    if re.search(r":\d+$|#\d+$", name):  # a position in a file, or no name
        return op.partition(".")[2] or op
    return re.sub(r"(_\d+)+$", "", name.rpartition("/")[2]) or name


def _boundaries(report: Report) -> tuple[Boundary, ...]:
    """Follows what kernels write, through the views that IREE makes of it, to the kernels that read it."""
    kernel_of = {op.id: k for k, kernel in enumerate(report.kernels, start=1) for op in kernel.ops}
    after: dict[int, list[LaunchEdge]] = {}
    for edge in report.edges_at_launch:
        after.setdefault(edge.producer_id, []).append(edge)
    launches = {op.id for op in report.left_to_iree if op.is_dispatch}
    # For each pair of kernels and each reason: the names of both ends, with the op that writes and the bytes.
    pairs: dict[tuple[int, int], dict[_Why, dict[tuple[str, str], tuple[int, int]]]] = {}
    for written, edges in after.items():
        if written not in kernel_of:
            continue
        for path in _paths(edges, after, kernel_of, launches):
            first, last = path[0], path[-1]
            tried = (edge for edge in path if " stays with IREE" not in edge.reason)
            why = next(((edge.reason, edge.would_change) for edge in tried), _ONLY_VIEWS)
            names = (first.producer_location or first.producer, last.consumer_location or last.consumer)
            pair = pairs.setdefault((kernel_of[written], kernel_of[last.consumer_id]), {})
            pair.setdefault(why, {})[names] = (written, first.bytes)
    boundaries = []
    for (producer, consumer), reasons in sorted(pairs.items()):
        if len(reasons) > 1:  # what keeps the kernels apart elsewhere keeps them apart here
            views = reasons.pop(_ONLY_VIEWS, {})
            next(iter(reasons.values())).update(views)
        for (reason, would_change), tensors in reasons.items():
            size = sum(dict(tensors.values()).values())
            boundaries.append(Boundary(producer, consumer, tuple(tensors), size, reason, would_change))
    return tuple(boundaries)


def _paths(
    edges: Sequence[LaunchEdge],
    after: Mapping[int, Sequence[LaunchEdge]],
    kernel_of: Mapping[int, int],
    launches: set[int | None],
) -> Iterator[tuple[LaunchEdge, ...]]:
    """Yields the edges from a kernel to the next one, for each way there that has no kernel of IREE in it."""
    pending: list[tuple[LaunchEdge, ...]] = [(edge,) for edge in reversed(edges)]
    seen: set[int] = set()
    while pending:
        path = pending.pop()
        end = path[-1].consumer_id
        if end in kernel_of:
            yield path
        elif end not in launches and end not in seen:
            seen.add(end)
            pending += [(*path, edge) for edge in reversed(after.get(end, []))]


def kinds_text(kinds: Mapping[str, int]) -> str:
    """Spells kinds of ops: "6 matmul, softmax, 2 layernormalization"."""
    shown = [kind if count == 1 else f"{count} {kind}" for kind, count in kinds.items()]
    rest = len(shown) - _LONGEST_KINDS
    return ", ".join(shown[:_LONGEST_KINDS]) + (f" and {rest} more kinds" if rest > 0 else "")
