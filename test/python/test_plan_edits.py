"""Each field of a plan that is edited by hand is emitted exactly, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from plan_edits import FORMS_ONLY, Bench, Edit, check, fields_of
from plan_edits_of_gpus import EDITS as EDITS_FOR_GPUS
from tilewright.records.plan import Plan
from tilewright.worker.process import lend_worker

EDITS = [
    # the plan as a whole
    Edit("product", "target", "x86-64-v2", "made for target 'x86-64-v2'"),
    Edit("product", "numerics", "strict", "made with numerics 'strict'"),
    Edit("product", "streams", [[0], []], "2 streams: kernels are launched in one"),
    Edit("product", "left[0].id", 1, "left: op 1 is in the plan twice"),
    Edit("product", "left[0].op", "linalg.matmul", "left: op 0 is linalg.generic, not linalg.matmul"),
    Edit("product", "kernels[0].name", "other"),
    Edit("product", "kernels[0].residentBlocks", 2, "residentBlocks: a processor has no thread blocks"),
    # groups
    Edit("product", "group.tiles[0]", 5, also={"product.blocking": None}),
    Edit("product", "group.tiles[0]", 5, "evenRows: .* the last tile has fewer rows than others"),
    Edit("product", "group.tiles[1]", 16),
    Edit("product", "group.workgroups", 5, also={"group.tiles[0]": 5, "product.blocking": None}),
    Edit("product", "group.workgroups", 2, "2 workgroups for 1 tiles"),
    Edit("product", "group.grid", [], "dim 0 is not in the grid, so", {"group.tiles[0]": 5}),
    Edit("product", "group.grid", [0, 2], "op 4: reduces grid dim 2"),
    Edit("dense", "group.grid", [2, 0], also={"group.ops[0].tilings": [], "group.ops[1].tilings": []}),
    Edit("rows", "group.vector", 0),
    Edit("product", "group.extents[0]", 38, "domain dim 0 of extent 37 is mapped to dim 0 of extent 38"),
    Edit("product", "group.threads", 32, "threads 32, .* a processor has no thread blocks"),
    Edit("product", "group.group", 8, "groups of 8 in a block of 0 threads"),
    Edit("product", "group.steps", 3, "steps 3: a processor has no thread blocks"),
    Edit("product", "group.cluster", 2, "cluster 2: a processor has none"),
    # tensors
    Edit("product", "op1.0.space", "register", "op1.0 lives for a tile, so it is of a block, not register"),
    Edit("product", "in0.space", "block", "in0 lives for a kernel, so it is global, not block"),
    Edit("rows", "op14.0.lifetime", "stream"),
    Edit("product", "in0.lifetime", "stream", "in0 is streamed, but is not an output"),
    Edit("product", "in0.tensor", "in1", "in1 is listed twice"),
    Edit("product", "op1.0.layout", [{"kind": "pad", "arguments": [1]}], "has a layout, which only GPUs"),
    Edit("product", "in0.access", "direct", "in0 has an access, but only contractions read it"),
    Edit("product", "in0.lifetime", "tile", "in0 lives for a tile, but", {"in0.space": "block"}),
    Edit("product", "op1.0.lifetime", "kernel", "op1.0 is global, but", {"op1.0.space": "global"}),
    Edit("product", "op1.0.lifetime", "workgroup", "op1.0 lives for a workgroup, but"),
    Edit("rows", "in0.space", "global", also={"in0.lifetime": "kernel"}),
    Edit("rows", "in1.space", "global", also={"in1.lifetime": "kernel"}),
    Edit("rows", "in1.lifetime", "tile", "in1 lives for a tile, but .* a tile reads no element twice"),
    Edit("rows", "in0.lifetime", "workgroup", "in0 lives for a workgroup, which would hold 164000 bytes"),
    Edit("product", "in0.tensor", "in7", "in7 is neither an input"),
    # ops
    Edit("product", "product.id", 0, "op 0 is in the plan twice"),
    Edit("product", "product.op", "linalg.matmul", "op 1 is linalg.generic, not linalg.matmul"),
    Edit("product", "product.form", "online softmax", "op 1: has the form 'as-is', not 'online softmax'"),
    Edit("product", "product.root", False, "op 1: must be a root"),
    Edit(
        "product",
        "product.dims",
        [0, 1, 2],
        "op 1: domain dim 1 of extent 48 is mapped to dim 1 of extent 53",
    ),
    Edit("rows", "group.ops[0].numerics.reassociates", False),
    Edit("product", "product.numerics.accumulation", "f64", "op 1: cannot accumulate f32 in f64"),
    Edit(
        "product", "product.numerics.roundingsRemoved", 1, "op 1: leaves out 0 roundings per element, not 1"
    ),
    Edit("product", "product.microKernel", "fma-6x2x16", also={"product.tilings": []}),
    Edit("product", "group.ops[0].microKernel", "", also={"product.blocking": None, "product.tilings": []}),
    Edit(
        "product", "product.microKernel", "mul_add-6x2", "'x86-64-avx2' has for what it multiplies: fma-6x2"
    ),
    Edit("product", "product.microKernel", "fma-4x2", "'fma-4x2', which is 'fma-6x2' on target"),
    Edit("heads", "product.blocking.vectors", 1, also={"product.tilings": []}),
    Edit("heads", "product.blocking.unroll", 4),
    Edit("heads", "product.blocking.panelK", 32),
    Edit("heads", "product.blocking.prefetch", 1024),
    Edit("product", "product.blocking.unroll", 3, "unroll: 3 does not divide 53"),
    Edit("inputs", "product.blocking.kOutermost", False, also={"product.tilings": []}),
    Edit("odd", "product.blocking.kOutermost", True, "no loop takes blocks of K", {"product.tilings": []}),
    Edit("odd", "product.blocking.evenRows", 0),
    Edit("heads", "product.blocking.evenRows", 8, "no block of rows has fewer than others"),
    Edit("odd", "product.blocking.widerLast", False),
    Edit("heads", "product.blocking.widerLast", True, "whole blocks fill a tile along N"),
    Edit("product", "product.tilings[0].level", "warp", "its tiling at level warp cannot be carried out"),
    Edit("product", "product.tilings[0].order", [0, 1, 2], r"its loops are nested as \[0, 2, 1\]"),
    Edit("product", "product.tilings[1].sizes[0]", 5, r"micro kernel and tile make them \[6, 16, 1\]"),
    # edges
    Edit(
        "half",
        "edges[0].scope",
        "block",
        also={
            "edges[0].unrounded": False,
            "group.ops[0].root": True,
            "group.ops[0].dims": [0, 1],
            "group.tensors": [],
        },
    ),
    Edit("product", "edges[1].scope", "thread", "from op 1 to op 2 input 0: scope thread out of a reduction"),
    Edit("product", "edges[10].scope", "launch", "from op 8 to op 9 input 1: scope launch inside one part"),
    Edit("half", "edges[0].unrounded", False),
    Edit("half", "edges[scope=block].unrounded", True, "input 0: only thread edges are unrounded"),
    Edit("product", "edges[0].producer", 3, "the input is result 0 of op 0"),
    Edit("product", "edges[0].result", 1, "the input is result 0 of op 0"),
    Edit("product", "edges[0].consumer", 3, "edge from op 0 to op 3 input 1 does not exist"),
    Edit("product", "edges[0].input", 0, "edge from op 0 to op 1 input 0 does not exist"),
    # forms
    Edit("heads", "forms[0].taken", False, also=FORMS_ONLY),
    Edit("heads", "forms[0].taken", False, "op 6 does not exist"),
    Edit("heads", "forms[0].parameters", {"heads": [2], "width": [16]}, also=FORMS_ONLY),
    Edit("heads", "forms[0].form", "winograd", "the graph offers 0 of this form"),
    Edit("heads", "forms[0].number", 1, "the graph offers 1 of this form"),
    Edit("heads", "forms[0].ops", ["linalg.generic"], "but the graph offers form 'merged contractions'"),
    # loops
    Edit("loop", "loops[0].op", "scf.while", "loop 11: the model has 'scf.for' with .* not 'scf.while'"),
    Edit("loop", "loops[0].firstOp", 10, "loop 10: no loop of the model has its first op there"),
    Edit("loop", "loops[0].ops", 12, "loop 11: the model has .* ops"),
    Edit("loop", "loops[0].steps", 3, "loop 11: the model has .* 4 steps"),
    Edit(
        "loop",
        "loops[0].oneKernel",
        True,
        "loop 11: one kernel cannot run all steps .*: there are no grid barriers",
    ),
    Edit("loop", "loops", [], "op 11 is of loop 11, which the plan does not list"),
]

NOTES = {"policy", "predicted", "bound", "movement", "bytes", "seconds", "reason", "place", "copies"}
NOTES |= {"otherwiseSeconds", "recompute", "wouldChange"}


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Bench]]:
    with lend_worker(tmp_path_factory.mktemp("worker")) as worker:
        yield {
            target: Bench(target, worker, tmp_path_factory.mktemp("plans"))
            for target in ("x86-64-avx2", "cuda:h200")
        }


@pytest.fixture
def bench(benches: dict[str, Bench]) -> Bench:
    return benches["x86-64-avx2"]


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_an_edit_is_emitted_or_refused(bench: Bench, edit: Edit, tmp_path: Path) -> None:
    check(bench, edit, tmp_path / "kernels")


@pytest.mark.parametrize("edit", EDITS_FOR_GPUS, ids=str)
def test_an_edit_for_a_gpu_is_emitted_or_refused(
    benches: dict[str, Bench], edit: Edit, tmp_path: Path
) -> None:
    check(benches["cuda:h200"], edit, tmp_path / "kernels")


def test_readers_of_exponentials_share_a_kernel(bench: Bench) -> None:
    assert len(bench.stage("exponentials twice").plan["kernels"]) == 1


def test_a_read_that_is_not_repeated_is_not_copied(bench: Bench) -> None:
    plan = bench.stage("shifted").plan
    assert [t["lifetime"] for t in plan["kernels"][0]["groups"][0]["tensors"] if t["tensor"] == "in0"] == [
        "tile"
    ]
    lowered = next(bench.folder.glob("shifted/passes/*/*_tile-lower-to-program.mlir")).read_text()
    rows = set(re.findall(r"(%\d+) = tile.alloc : <\d+x1000xf32, block>", lowered))
    assert rows
    assert all(f"tile.load {name} " in lowered for name in rows)


def test_every_field_has_an_edit() -> None:
    """Notes are those of docs/guide/plans.md: nothing reads them."""
    edits = [*EDITS, *EDITS_FOR_GPUS]
    stated = [
        name
        for name in fields_of(Plan)
        if not NOTES & set(re.split(r"\W+", name)) and not name.startswith("forms[].numerics.")
    ]
    assert [name for name in stated if not any(edit.is_of(name) for edit in edits)] == []
