"""Values that no plan may have are refused; test_plan_edits.py has those that another plan has."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plan_cases import Stage, assert_refused, change, contraction, group, kernel_of, plain_op, put
from plan_cases import product as product
from plan_cases import stages as stages
from plan_cases import w as w

Array = np.ndarray[Any, Any]


Json = dict[str, Any]


def _root_op(plan: Json) -> Json:
    return next(op for op in group(plan)["ops"] if op["root"])


def _inner_edge(plan: Json) -> Json:
    return next(edge for edge in plan["edges"] if edge["scope"] in ("thread", "block"))


def _whole_plan(plan: Json) -> Json:
    return plan


REFUSED: dict[str, tuple[Callable[[Json], None], str]] = {
    "no such target": (put(_whole_plan, target="hello"), "made for target 'hello'"),
    "no such mode of numerics": (put(_whole_plan, numerics="hello"), "expected one of default, strict, tf32"),
    "an unknown field": (put(_whole_plan, kernel=[]), "unknown field at plan.kernel"),
    "an unknown field of an op": (put(_root_op, tile=3), "unknown field at plan.kernels"),
    "no kernels": (change(lambda plan: plan.pop("kernels")), "missing value at plan.kernels"),
    "text for a number": (put(group, workgroups="3"), "expected integer at plan.kernels"),
    "a fraction for a number": (put(group, workgroups=1.5), "expected integer at plan.kernels"),
    "a number for a list": (put(group, tiles=3), "expected array at plan.kernels"),
    "text for a flag": (put(_root_op, root="yes"), "expected boolean at plan.kernels"),
    "an op beyond 32 bits": (
        change(lambda p: _root_op(p).update(id=_root_op(p)["id"] + 2**32)),
        "expected unsigned integer",
    ),
    "a negative op": (put(_root_op, id=-1), "expected unsigned integer"),
    "an op that is not there": (change(lambda p: group(p)["ops"][-1].update(id=99)), "op 99 does not exist"),
    "an op in two kernels": (
        change(lambda p: p["kernels"].append({**copy.deepcopy(kernel_of(p)), "name": "again"})),
        "is in the plan twice",
    ),
    "a missing op": (
        change(lambda p: group(p)["ops"].pop()),
        "is neither in a kernel nor among the ops left",
    ),
    "two kernels of one name": (
        change(lambda p: p["kernels"].append({**copy.deepcopy(kernel_of(p))})),
        "two kernels have the name",
    ),
    "no name": (put(kernel_of, name=""), "a name is made of"),
    "a name that is no symbol": (put(kernel_of, name="a b"), "a name is made of"),
    "a kernel without groups": (put(kernel_of, groups=[]), "has no groups"),
    "a part without ops": (put(group, ops=[]), "has no ops"),
    "a stream of no such kernel": (put(_whole_plan, streams=[[7]]), "kernel 7 does not exist"),
    "a stream that launches nothing": (put(_whole_plan, streams=[[]]), "is never launched"),
    "no such form": (put(plain_op, form="hello"), "expected the name of a form, such as 'as-is'"),
    "dims of another rank": (put(_root_op, dims=[0]), "dims must have an entry for each of the"),
    "a micro kernel that is not there": (
        put(contraction, microKernel="hello"),
        r"names the micro kernel 'hello'; target '.*' has for what it multiplies: \w+-\d+x\d+",
    ),
    "a micro kernel for what does not contract": (
        put(plain_op, microKernel="fma-6x4"),
        "but is not a contraction",
    ),
    "no such level": (
        change(lambda p: _root_op(p)["tilings"][0].update(level="hello")),
        "expected one of thread, warp, block",
    ),
    "a tiling of another rank": (
        change(lambda p: _root_op(p)["tilings"][0]["sizes"].append(1)),
        "one size and one entry of order per domain dim",
    ),
    "a tiling beyond its dim": (
        change(lambda p: _root_op(p)["tilings"][0]["sizes"].__setitem__(0, 10**6)),
        "has size 1000000 along a dim of extent",
    ),
    "a loop twice": (
        change(
            lambda p: _root_op(p)["tilings"][0]["order"].__setitem__(0, _root_op(p)["tilings"][0]["order"][1])
        ),
        "each dim once in its order",
    ),
    "two tilings of a level": (
        change(lambda p: _root_op(p)["tilings"].append(_root_op(p)["tilings"][0])),
        "has two tilings at level block",
    ),
    "no tile": (change(lambda p: group(p)["tiles"].__setitem__(0, 0)), "tile 0 does not fit extent"),
    "a tile beyond its dim": (
        change(lambda p: group(p)["tiles"].__setitem__(0, 999)),
        "tile 999 does not fit extent",
    ),
    "tiles of another rank": (change(lambda p: group(p)["tiles"].append(1)), "expected one tile per extent"),
    "no such grid dim": (put(group, grid=[9]), "grid must name dims of the space"),
    "a grid dim twice": (change(lambda p: group(p).update(grid=[0, 0])), "grid must name dims of the space"),
    "no such vector dim": (put(group, vector=9), "vector must name a dim of the space"),
    "no workgroups": (put(group, workgroups=0), "0 workgroups for"),
    "negative threads": (put(group, threads=-32), "threads"),
    "groups of other threads": (put(group, group=4096), "groups of 4096"),
    "negative steps": (put(group, steps=-1), "steps"),
    "a tensor that is not there": (
        change(lambda p: group(p)["tensors"][0].update(tensor="hello")),
        "tensor hello is neither an input",
    ),
    "no such lifetime": (
        change(lambda p: group(p)["tensors"][0].update(lifetime="hello")),
        "expected one of tile, workgroup, kernel, stream at plan.kernels",
    ),
    "no such space": (
        change(lambda p: group(p)["tensors"][0].update(space="hello")),
        "expected one of register, block, cluster, global, host",
    ),
    "a layout of no weight": (
        change(lambda p: group(p)["tensors"][-1].update(layout=[{"kind": "pad", "arguments": [1]}])),
        "layout",
    ),
    "no such step of a layout": (
        change(lambda p: group(p)["tensors"][-1].update(layout=[{"kind": "hello", "arguments": [1]}])),
        r"expected one of pad, permute, split, swizzle at plan.kernels.*layout\[0\].kind",
    ),
    "tiles kept by nobody": (
        change(
            lambda p: kernel_of(p).update(
                residentTiles=[{"writer": 0, "writerInput": 0, "reader": 3, "readerInput": 0, "bytes": 1}]
            )
        ),
        "cannot keep input 0 of group 0 for group 3",
    ),
    "a form that nothing offers": (
        change(lambda p: p["forms"].append({"form": "merged contractions", "number": 7, "taken": True})),
        "names form 'merged contractions' 7",
    ),
    "a form without a choice": (
        change(lambda p: p["forms"].insert(0, {"form": "merged contractions", "number": 0})),
        r"missing value at plan.forms\[0\].taken",
    ),
    "a missing edge": (change(lambda p: p["edges"].pop()), "is missing"),
    "an edge twice": (change(lambda p: p["edges"].append(p["edges"][0])), "is in the plan twice"),
    "no such scope": (put(_inner_edge, scope="hello"), "expected one of thread, warp, block"),
    "a scope that is not built": (put(_inner_edge, scope="warp"), "scope warp cannot be carried out yet"),
    "wide values unrounded": (
        change(
            lambda p: next(e for e in p["edges"] if e["scope"] == "thread").update(
                unrounded=True, recompute=False
            )
        ),
        "it is not a bf16 or f16 value",
    ),
}


@pytest.mark.parametrize("target", ["x86-64-v2", "cuda:h200"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_value_is_refused(stages: dict[str, Stage], tmp_path: Path, name: str, target: str) -> None:
    edit, message = REFUSED[name]
    assert_refused(stages[target], tmp_path, edit, message)
