"""Fields of a plan that only processors or only GPUs have: refused on the other kind, and with wrong values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plan_cases import Stage, assert_refused, change, contraction, group, plain_op, put
from plan_cases import product as product
from plan_cases import stages as stages
from plan_cases import w as w

Array = np.ndarray[Any, Any]


Json = dict[str, Any]


_ONE_VECTOR = {"vectors": 1, "unroll": 1, "panelK": 0, "prefetch": 0}
_ONE_VECTOR |= {"kOutermost": False, "evenRows": 0, "widerLast": False}


def _gemm_of(plan: Json) -> Json:
    gemm: Json = contraction(plan)["gemm"]
    return gemm


def _blocking_of(plan: Json) -> Json:
    blocking: Json = contraction(plan)["blocking"]
    return blocking


ON_PROCESSORS: dict[str, tuple[Callable[[Json], None], str]] = {
    "a gemm": (
        put(
            contraction,
            gemm={
                "m": 1,
                "n": 1,
                "kSlices": 1,
                "step": 8,
                "stages": 2,
                "lhs": "step",
                "prefetch": "none",
                "lhsCopy": 16,
                "rhsCopy": 16,
            },
        ),
        "gemm: only a contraction with a micro kernel on a GPU has one",
    ),
    "a blocking of what does not contract": (
        change(lambda p: plain_op(p).update(blocking=contraction(p)["blocking"])),
        "blocking: only a contraction with a micro kernel on a processor has one",
    ),
    "a blocking without a field": (
        change(lambda p: contraction(p)["blocking"].pop("unroll")),
        "missing value at plan.kernels.*blocking.unroll",
    ),
    "no vectors": (put(_blocking_of, vectors=0), "blocking: vectors must be between 1 and 16, not 0"),
    "vectors beyond a packed panel": (
        change(lambda p: contraction(p).update(blocking=_blocking_of(p) | {"vectors": 3}, tilings=[])),
        "blocking: vectors: blocks of 3 vectors of 4 do not fill the panels of .* that rhs is packed in",
    ),
    "too many steps in an iteration": (
        put(_blocking_of, unroll=64),
        "blocking: unroll must be between 1 and 16, not 64",
    ),
    "rows shared below less than nothing": (
        put(_blocking_of, evenRows=-1),
        "blocking: evenRows must not be negative, but is -1",
    ),
    "a negative panel": (put(_blocking_of, panelK=-1), "blocking: panelK must not be negative, but is -1"),
    "a panel beyond K": (
        put(_blocking_of, panelK=64),
        "blocking: panelK: a tile has 53 along K, so panels cannot have 64",
    ),
    "a negative prefetch": (
        put(_blocking_of, prefetch=-1),
        "blocking: prefetch must not be negative, but is -1",
    ),
    "a prefetch of longer panels": (
        put(_blocking_of, prefetch=2**40),
        "blocking: prefetch: no panel can be prefetched: a panel of rhs has .* bytes",
    ),
}


ON_GPUS: dict[str, tuple[Callable[[Json], None], str]] = {
    "no threads": (put(group, threads=0, group=0), "a block of 0 threads"),
    "half a warp": (
        put(group, threads=144),
        "a block of 144 threads: on target 'cuda:h200' it must have a power of two",
    ),
    "more threads than a block has": (put(group, threads=2048), "a power of two from 32 to 1024"),
    "a group of three": (put(group, threads=96, group=3), "a power of two"),
    "a blocking": (
        put(contraction, blocking=_ONE_VECTOR),
        "blocking: only a contraction with a micro kernel on a processor has one",
    ),
    "a gemm of what does not contract": (
        change(lambda p: plain_op(p).update(gemm=_gemm_of(p))),
        "gemm: only a contraction with a micro kernel on a GPU has one",
    ),
    "a gemm without a field": (
        change(lambda p: _gemm_of(p).pop("stages")),
        "missing value at plan.kernels.*gemm.stages",
    ),
    "a gemm with another field": (put(_gemm_of, unroll=4), "unknown field at plan.kernels.*gemm.unroll"),
    "no such residency": (put(_gemm_of, lhs="hello"), "expected step or walk at plan.kernels.*gemm.lhs"),
    "no such operands": (put(_gemm_of, prefetch="hello"), "expected one of none, lhs, rhs, both"),
    "units that are no power of two": (put(_gemm_of, m=3), "gemm: m must be a power of two, not 3"),
    "more units than rows": (put(_gemm_of, m=128, n=1), "gemm: 128x1 units cannot share a tile of"),
    "more units than threads": (
        change(lambda p: group(p).update(threads=32)),
        "gemm: 1x64 units of 1 threads, times 1 slices of K, are more than the 32 threads of a block",
    ),
    "slices that are no power of two": (
        put(_gemm_of, kSlices=3),
        "gemm: kSlices must be a power of two, not 3",
    ),
    "a step that is no power of two": (put(_gemm_of, step=12), "gemm: step must be a power of two, not 12"),
    "a step that is too short": (
        put(_gemm_of, step=1),
        "gemm: a step of 1 along K is too short: 'fma' takes 4 at least",
    ),
    "a step that is too long": (
        put(_gemm_of, step=64),
        "gemm: a step of 64 along K is too long: 'fma' takes 32 at most",
    ),
    "a single stage": (put(_gemm_of, stages=1), "gemm: 1 stages: a contraction has between 2 and 12"),
    "copies that are no power of two": (
        put(_gemm_of, lhsCopy=12),
        "gemm: lhsCopy must be 0 or a power of two of at most 16 bytes, not 12",
    ),
    "copies that no thread makes": (put(_gemm_of, rhsCopy=0), "gemm: rhsCopy: a thread copies .* not 0"),
    "no such access": (
        change(lambda p: group(p)["tensors"][0].update(access="hello")),
        r"expected one of derived, whole, direct at plan.kernels.*tensors\[0\].access",
    ),
    "clusters that are too large": (put(group, cluster=16), "supports powers of two up to 8"),
}


@pytest.mark.parametrize("name", ON_PROCESSORS)
def test_a_value_that_only_gpus_have_is_refused(stages: dict[str, Stage], tmp_path: Path, name: str) -> None:
    edit, message = ON_PROCESSORS[name]
    assert_refused(stages["x86-64-v2"], tmp_path, edit, message)


@pytest.mark.parametrize("name", ON_GPUS)
def test_a_value_that_no_gpu_has_is_refused(stages: dict[str, Stage], tmp_path: Path, name: str) -> None:
    edit, message = ON_GPUS[name]
    assert_refused(stages["cuda:h200"], tmp_path, edit, message)
