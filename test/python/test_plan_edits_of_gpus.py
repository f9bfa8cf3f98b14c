"""Each field of a plan for a GPU that is edited by hand is emitted exactly, or refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from plan_edits import FORMS_ONLY, Bench, Edit, check
from tilewright.worker.process import lend_worker

EDITS = [
    Edit("product", "target", "cuda:a100", "made for target 'cuda:a100', carried out for 'cuda:h200'"),
    Edit("product", "numerics", "tf32", "made with numerics 'tf32', carried out with 'default'"),
    Edit("product", "kernels[0].name", "other"),
    # groups
    Edit(
        "product",
        "group.tiles[0]",
        2,
        also={"group.workgroups": 19, "product.gemm": None, "product.tilings": []},
    ),
    Edit("product", "group.tiles[0]", 2, "37 workgroups for 19 tiles"),
    Edit("product", "group.workgroups", 20),
    Edit("product", "group.grid", [], "37 workgroups for 1 tiles"),
    Edit("dense", "group.grid", [2, 0], also={"group.ops[0].tilings": [], "group.ops[1].tilings": []}),
    Edit("rows", "group.vector", 0),
    Edit("product", "group.threads", 128),
    Edit("rows", "group.threads", 48, "groups of 64 in a block of 48 threads"),
    Edit("product", "group.group", 1),
    Edit("rows", "group.group", 32),
    Edit("long", "group.steps", 0, also={"group.workgroups": 48}),
    Edit("long", "group.steps", 64, "steps: a tile of op 0 has 65 steps of 128 along K, not 64"),
    Edit("product", "group.steps", 4, "steps: each workgroup has the same number of whole tiles anyway"),
    Edit("rows", "group.cluster", 4),
    Edit("rows", "group.cluster", 3, "clusters of 3 blocks: .* supports powers of two up to 8"),
    Edit("product", "group.group", 32, "groups of 32 threads"),
    Edit("product", "group.threads", 96, "a block of 96 threads"),
    # tensors
    Edit("product", "in0.space", "block", "in0 lives for a kernel, so it is global, not block"),
    Edit("product", "op0.0.space", "register", "op0.0 lives for a tile, so it is of a block, not register"),
    Edit("product", "op0.0.tensor", "op99.0", "op99.0 is neither an input of the"),
    Edit("rows", "in0.access", "whole"),
    Edit("rows", "in1.access", "direct"),
    Edit("rows", "op14.0.access", "whole"),
    Edit("product", "in0.access", "whole", "in0 has an access, but only contractions read it"),
    Edit("dense", "in1.layout", [], also={"product.gemm": None}),
    Edit("dense", "in1.layout[4].arguments", [4], "it is not the swizzled layout that its tiles need"),
    Edit("dense", "in1.layout[4].kind", "pad", "it is not the swizzled layout that its tiles need"),
    Edit(
        "product",
        "in1.layout",
        [{"kind": "swizzle", "arguments": [8]}],
        "no contraction of warpgroups reads it",
    ),
    Edit("product", "in0.lifetime", "tile", "in0 lives for a tile, but", {"in0.space": "block"}),
    Edit("product", "in0.lifetime", "workgroup", "in0 lives for a workgroup, but", {"in0.space": "block"}),
    Edit("product", "op0.0.lifetime", "kernel", "op0.0 is global, but", {"op0.0.space": "global"}),
    Edit("product", "op0.0.lifetime", "workgroup", "op0.0 lives for a workgroup, but"),
    Edit("rows", "in0.space", "global", also={"in0.lifetime": "kernel"}),
    Edit("rows", "op14.0.lifetime", "stream", "op14.0 is streamed, but"),
    Edit("product", "in0.tensor", "in7", "in7 is neither an input"),
    # ops
    Edit("rows", "group.ops[0].numerics.reassociates", False),
    Edit("chain", "product.microKernel", "fma-8x8", also={"product.gemm": None, "product.tilings": []}),
    Edit("product", "group.ops[0].microKernel", "", also={"product.gemm": None, "product.tilings": []}),
    Edit(
        "exponentials",
        "product.microKernel",
        "wgmma-64x8",
        "an operand is in a buffer of the block, .*; 'mma_sync-16x8' can compute it",
        {"product.gemm": None, "product.tilings": []},
    ),
    Edit("product", "product.microKernel", "fma-4x4", "'fma-4x4', which is 'fma-8x8' on target"),
    Edit("dense", "product.gemm.m", 2, "no warpgroup micro kernel computes it"),
    Edit("chain", "product.gemm.n", 4),
    Edit("chain", "product.gemm.kSlices", 2, also={"product.gemm.n": 4}),
    Edit("product", "product.gemm.m", 2, "2x64 units cannot share a tile of 1x48"),
    Edit("product", "product.gemm.n", 32),
    Edit("product", "product.gemm.kSlices", 2, "a tile of 1x48 leaves threads idle in 2 slices of K"),
    Edit("product", "product.gemm.step", 8),
    Edit("product", "product.gemm.stages", 3),
    Edit("product", "product.gemm.lhs", "walk", "lhs cannot stay in shared memory: no dim is walked"),
    Edit("product", "product.gemm.prefetch", "lhs", "the first steps of its lhs cannot be copied ahead"),
    Edit("chain", "group.ops[id=3].gemm.prefetch", "none"),
    Edit("heads", "product.gemm.lhsCopy", 8),
    Edit("heads", "product.gemm.rhsCopy", 8),
    Edit(
        "product", "product.gemm.lhsCopy", 8, "lhsCopy: a thread copies 4 bytes of it at once at most, not 8"
    ),
    Edit("product", "product.tilings[1].sizes[1]", 16, r"micro kernel and tile make them \[1, 32, 1\]"),
    # edges
    Edit("product", "edges[0].scope", "launch", "from op 0 to op 1 input 0: scope launch inside one part"),
    Edit(
        "residual",
        "edges[scope=grid].scope",
        "block",
        "groups of one kernel depend on each other at scope grid",
    ),
    Edit(
        "product",
        "edges[1].scope",
        "block",
        also={"group.ops[1].root": True, "group.ops[1].dims": [0, 2], "group.tensors": []},
    ),
    Edit("half", "edges[0].unrounded", False),
    # resident tiles and forms
    Edit("residual", "kernels[0].residentTiles", []),
    Edit(
        "residual",
        "kernels[0].residentTiles[0].reader",
        1,
        "are not the first ones of a phase and of a later",
    ),
    Edit("residual", "kernels[0].residentTiles[0].writer", 3, "they are not views of the same tensor"),
    Edit("residual", "kernels[0].residentTiles[0].readerInput", 5, "there is no such result or input"),
    Edit("residual", "kernels[0].residentTiles[0].writerResult", 5, "there is no such result or input"),
    Edit(
        "heads",
        "forms[0].taken",
        True,
        also={"forms[0].parameters": {"dims": [2], "parts": [4]}, **FORMS_ONLY},
    ),
    Edit("product", "forms[0].taken", True, "its parameters must be dims and as many parts"),
    Edit(
        "residual", "kernels[0].residentTiles[0].writerInput", 5, "writerInput must be 0 beside writerResult"
    ),
    Edit("product", "in0.access", "direct", "in0 has an access, but only contractions read it"),
    Edit("rows", "op0.0.access", "whole", "op0.0 has an access, which only tensors in global memory have"),
    Edit("heads", "product.numerics.reassociates", False, "cuts K into parts .* do not allow that"),
    Edit("long", "product.numerics.reassociates", False, "cuts K into parts .* do not allow that"),
    Edit("product", "group.cluster", 2, "clusters of 2 blocks have nothing to share"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with lend_worker(tmp_path_factory.mktemp("worker")) as worker:
        yield Bench("cuda:h200", worker, tmp_path_factory.mktemp("plans"))


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_an_edit_is_emitted_or_refused(bench: Bench, edit: Edit, tmp_path: Path) -> None:
    check(bench, edit, tmp_path / "kernels")
