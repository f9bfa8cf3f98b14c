"""Suites of workloads and element types, by their names on command lines."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from benchmarks.workloads import WORKLOADS, Workload

SUITES: dict[str, tuple[str, ...]] = {
    "stitch": ("stitch", "random-stitch"),
    "bandwidth": ("bandwidth",),
    "models": ("models",),
    "recurrent": ("recurrent",),
    "gemm": ("gemm",),
    "gemm-square": ("gemm-square",),
    "chains": ("chains",),
    "convolutions": ("convolutions",),
    "networks": ("networks",),
    "convs": ("convs",),
    "ops": ("ops",),
}
"""The values of `Workload.suite` that each suite on the command line contains."""

MEMORY_BOUND = frozenset({"bandwidth"})
"""Suites whose limit is a copy, which takes turns with the systems."""

DTYPES = ("f32", "f16", "bf16")
"""Element types, by their names on command lines."""

_DTYPES_OF_SUITE = {
    "stitch": ("f32", "bf16"),
    "bandwidth": ("f32",),
    "models": DTYPES,
    "recurrent": ("f32", "f16"),
    "gemm": DTYPES,
    "gemm-square": ("f16", "bf16"),
    "chains": DTYPES,
    "convolutions": DTYPES,
    "networks": DTYPES,
    "convs": DTYPES,
}

_OF_OWN_TYPES = frozenset({"ops"})
"""Suites whose workloads have one element type each."""


def select(suites: Sequence[str], *, dtypes: Sequence[str], pattern: str) -> list[Workload]:
    """Returns the workloads of suites, in every element type that both the suite and the caller include.

    Those of the suite `ops` are for one type each, and chosen by `pattern` alone.

    `pattern` is one name with * and ?, or several separated by commas.
    """
    patterns = pattern.split(",")
    chosen = []
    for suite in suites:
        named = [
            w
            for w in WORKLOADS.values()
            if w.suite in SUITES[suite] and any(fnmatch.fnmatch(w.name, each) for each in patterns)
        ]
        if suite in _OF_OWN_TYPES:
            chosen += named
            continue
        for dtype in _DTYPES_OF_SUITE[suite]:
            if dtype in dtypes:
                chosen += [workload.in_type(dtype) for workload in named]
    return chosen
