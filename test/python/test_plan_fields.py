"""Each field of a plan is carried out or refused: every field is set to a wrong value, and the error is checked."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import helper
from tilewright.api.stitch import Stitched, stitch
from tilewright.records.targets import Target, resolve_targets
from tilewright.worker.process import Worker, lend_worker

Array = np.ndarray[Any, Any]
Json = dict[str, Any]

ROWS, TERMS, COLUMNS = 37, 53, 48


@pytest.fixture(scope="module")
def w() -> Array:
    return np.random.default_rng(0).standard_normal((TERMS, COLUMNS)).astype(np.float32)


@pytest.fixture(scope="module")
def product(w: Array) -> onnx.ModelProto:
    """Returns a matmul with its activation, a softmax, and a transpose that stays with IREE."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("Softmax", ["t"], ["p"], axis=-1),
    ]
    return make_model(nodes, [value("x", [ROWS, TERMS])], [value("p", [ROWS, COLUMNS])], {"w": w})


@dataclass(frozen=True)
class Stage:
    """The model as our stage receives it for a target, and the plan for it."""

    text: str
    targets: Sequence[Target]
    plan: Json
    worker: Worker

    def carry_out(self, plan: Json, folder: Path) -> Stitched:
        path = folder / "changed.json"
        path.write_text(json.dumps(plan))
        return stitch(self.text, worker=self.worker, targets=self.targets, directory=folder, plan=path)


@pytest.fixture(scope="module")
def stages(product: onnx.ModelProto, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stage]]:
    with lend_worker(tmp_path_factory.mktemp("worker")) as worker:
        found = {}
        for target in ("x86-64-v2", "cuda:h200"):
            dump = tmp_path_factory.mktemp("dump")
            plan = tilewright.compile(product, target, dump_dir=dump, threads=[1]).plan
            assert plan is not None
            text = (dump / "2-preprocessing.mlir").read_text()
            found[target] = Stage(text, resolve_targets(target, threads=1), plan.to_json(), worker)
        yield found


def _ops(plan: Json) -> list[Json]:
    return [op for kernel in plan["kernels"] for part in kernel["groups"] for op in part["ops"]]


def _part(plan: Json) -> Json:
    part: Json = _kernel(plan)["groups"][0]
    return part


def _kernel(plan: Json) -> Json:
    """Returns the kernel that has the contraction."""
    return next(k for k in plan["kernels"] if any(op["microKernel"] for p in k["groups"] for op in p["ops"]))


def _contraction(plan: Json) -> Json:
    return next(op for op in _ops(plan) if op["microKernel"])


def _register_tiling(plan: Json) -> Json:
    tiling: Json = next(t for t in _contraction(plan)["tilings"] if t["level"] == "thread")
    return tiling


def _gemm(plan: Json) -> Json:
    gemm: Json = _contraction(plan)["gemm"]
    return gemm


def _plain(plan: Json) -> Json:
    return next(op for op in _ops(plan) if not op["microKernel"])


def _root(plan: Json) -> Json:
    return next(op for op in _part(plan)["ops"] if op["root"])


def _inner_edge(plan: Json) -> Json:
    return next(edge for edge in plan["edges"] if edge["scope"] in ("thread", "block"))


def _set(find: Callable[[Json], Json], **fields: Any) -> Callable[[Json], None]:
    return lambda plan: find(plan).update(fields)


def _whole(plan: Json) -> Json:
    return plan


def _do(change: Callable[[Json], Any]) -> Callable[[Json], None]:
    def edit(plan: Json) -> None:
        change(plan)

    return edit


REFUSED: dict[str, tuple[Callable[[Json], None], str]] = {
    "another target": (_set(_whole, target="cuda:a100"), "made for target 'cuda:a100', carried out for"),
    "no such target": (_set(_whole, target="hello"), "made for target 'hello'"),
    "another mode of numerics": (_set(_whole, numerics="strict"), "made with numerics 'strict'"),
    "no such mode of numerics": (_set(_whole, numerics="hello"), "expected one of default, strict, tf32"),
    "an unknown field": (_set(_whole, kernel=[]), "unknown field at plan.kernel"),
    "an unknown field of an op": (_set(_root, tile=3), "unknown field at plan.kernels"),
    "no kernels": (_do(lambda plan: plan.pop("kernels")), "missing value at plan.kernels"),
    "text for a number": (_set(_part, workgroups="3"), "expected integer at plan.kernels"),
    "a fraction for a number": (_set(_part, workgroups=1.5), "expected integer at plan.kernels"),
    "a number for a list": (_set(_part, tiles=3), "expected array at plan.kernels"),
    "text for a flag": (_set(_root, root="yes"), "expected boolean at plan.kernels"),
    "an op beyond 32 bits": (
        _do(lambda p: _root(p).update(id=_root(p)["id"] + 2**32)),
        "expected unsigned integer",
    ),
    "a negative op": (_set(_root, id=-1), "expected unsigned integer"),
    "an op that is not there": (_do(lambda p: _part(p)["ops"][-1].update(id=99)), "op 99 does not exist"),
    "an op of another name": (_set(_root, op="linalg.hello"), "not linalg.hello"),
    "an op in two kernels": (
        _do(lambda p: p["kernels"].append({**copy.deepcopy(_kernel(p)), "name": "again"})),
        "is in the plan twice",
    ),
    "a missing op": (
        _do(lambda p: _part(p)["ops"].pop()),
        "is neither in a kernel nor among the ops left",
    ),
    "an op that is also left": (
        _do(lambda p: p["left"].append({"id": _root(p)["id"], "op": "", "reason": ""})),
        "is in the plan twice",
    ),
    "two kernels of one name": (
        _do(lambda p: p["kernels"].append({**copy.deepcopy(_kernel(p))})),
        "two kernels have the name",
    ),
    "no name": (_set(_kernel, name=""), "a name is made of"),
    "a name that is no symbol": (_set(_kernel, name="a b"), "a name is made of"),
    "a kernel without parts": (_set(_kernel, groups=[]), "has no parts"),
    "a part without ops": (_set(_part, ops=[]), "has no ops"),
    "two streams": (_do(lambda p: p["streams"].append([])), "2 streams: kernels are launched in one"),
    "a stream of no such kernel": (_set(_whole, streams=[[7]]), "kernel 7 does not exist"),
    "a stream that launches nothing": (_set(_whole, streams=[[]]), "is never launched"),
    "no such form": (_set(_plain, form="hello"), "expected the name of a form, such as 'as-is'"),
    "another form": (_set(_plain, form="online softmax"), "not 'online softmax'"),
    "another accumulator": (
        _do(lambda p: _contraction(p)["numerics"].update(accumulation="f64")),
        "cannot accumulate f32 in f64",
    ),
    "roundings that nobody leaves out": (
        _do(lambda p: _contraction(p)["numerics"].update(roundingsRemoved=3)),
        "leaves out 0 roundings per element, not 3",
    ),
    "an op that is no root": (_do(lambda p: _root(p).update(root=False)), "must be a root"),
    "dims of another rank": (_set(_root, dims=[0]), "dims must have an entry for each of the"),
    "dims at another place": (_do(lambda p: _root(p)["dims"].reverse()), "domain dim"),
    "a micro kernel that is not there": (
        _set(_contraction, microKernel="hello"),
        r"names the micro kernel 'hello'; target '.*' has for what it multiplies: \w+-\d+x\d+",
    ),
    "a micro kernel of another block": (
        _do(
            lambda p: _contraction(p).update(
                microKernel=_contraction(p)["microKernel"].split("-")[0] + "-3x3"
            )
        ),
        "-3x3', which is '",
    ),
    "a micro kernel for what does not contract": (
        _set(_plain, microKernel="fma-6x4"),
        "but is not a contraction",
    ),
    "a tiling of another level": (
        _do(lambda p: _root(p)["tilings"][0].update(level="grid")),
        "tiles are of block or thread",
    ),
    "no such level": (
        _do(lambda p: _root(p)["tilings"][0].update(level="hello")),
        "expected one of thread, warp, block",
    ),
    "a tiling of another rank": (
        _do(lambda p: _root(p)["tilings"][0]["sizes"].append(1)),
        "one size and one entry of order per domain dim",
    ),
    "a tiling beyond its dim": (
        _do(lambda p: _root(p)["tilings"][0]["sizes"].__setitem__(0, 10**6)),
        "has size 1000000 along a dim of extent",
    ),
    "another order of loops": (
        _do(lambda p: _register_tiling(p)["order"].reverse()),
        r"its tiling at level thread has order \[.*\]; its loops are nested as \[",
    ),
    "another step of the micro kernel": (
        _do(lambda p: _register_tiling(p).update(sizes=[size + 1 for size in _register_tiling(p)["sizes"]])),
        r"its tiling at level thread has sizes \[.*\]; its micro kernel and tile make them \[",
    ),
    "a loop twice": (
        _do(lambda p: _root(p)["tilings"][0]["order"].__setitem__(0, _root(p)["tilings"][0]["order"][1])),
        "each dim once in its order",
    ),
    "two tilings of a level": (
        _do(lambda p: _root(p)["tilings"].append(_root(p)["tilings"][0])),
        "has two tilings at level block",
    ),
    "no tile": (_do(lambda p: _part(p)["tiles"].__setitem__(0, 0)), "tile 0 does not fit extent"),
    "a tile beyond its dim": (
        _do(lambda p: _part(p)["tiles"].__setitem__(0, 999)),
        "tile 999 does not fit extent",
    ),
    "tiles of another rank": (_do(lambda p: _part(p)["tiles"].append(1)), "expected one tile per extent"),
    "other extents": (_do(lambda p: _part(p)["extents"].__setitem__(0, 640)), "of extent 640"),
    "no such grid dim": (_set(_part, grid=[9]), "grid must name dims of the space"),
    "a grid dim twice": (_do(lambda p: _part(p).update(grid=[0, 0])), "grid must name dims of the space"),
    "no such vector dim": (_set(_part, vector=9), "vector must name a dim of the space"),
    "no workgroups": (_set(_part, workgroups=0), "0 workgroups for"),
    "more workgroups than tiles": (_set(_part, workgroups=10**6), "1000000 workgroups for"),
    "negative threads": (_set(_part, threads=-32), "threads"),
    "groups of other threads": (_set(_part, group=4096), "groups of 4096"),
    "negative steps": (_set(_part, steps=-1), "steps"),
    "a tensor that is not there": (
        _do(lambda p: _part(p)["tensors"][0].update(tensor="hello")),
        "tensor hello is neither an input",
    ),
    "a tensor of another op": (
        _do(lambda p: _part(p)["tensors"][-1].update(tensor="op99.0")),
        "tensor op99.0 is neither an input",
    ),
    "no such lifetime": (
        _do(lambda p: _part(p)["tensors"][0].update(lifetime="hello")),
        "expected one of tile, workgroup, kernel, stream at plan.kernels",
    ),
    "no such space": (
        _do(lambda p: _part(p)["tensors"][0].update(space="hello")),
        "expected one of register, block, cluster, global, host",
    ),
    "a space that its lifetime has not": (
        _do(lambda p: _part(p)["tensors"][0].update(lifetime="kernel", space="cluster")),
        "so it is global, not cluster",
    ),
    "an input that is streamed": (
        _do(lambda p: _part(p)["tensors"][0].update(lifetime="stream", space="global")),
        "is streamed, but is not an output",
    ),
    "a layout of no weight": (
        _do(lambda p: _part(p)["tensors"][-1].update(layout=[{"kind": "pad", "arguments": [1]}])),
        "layout",
    ),
    "no such step of a layout": (
        _do(lambda p: _part(p)["tensors"][-1].update(layout=[{"kind": "hello", "arguments": [1]}])),
        r"expected one of pad, permute, split, swizzle at plan.kernels.*layout\[0\].kind",
    ),
    "tiles kept by nobody": (
        _do(
            lambda p: _kernel(p).update(
                residentTiles=[{"writer": 0, "writerInput": 0, "reader": 3, "readerInput": 0, "bytes": 1}]
            )
        ),
        "cannot keep input 0 of part 0 for part 3",
    ),
    "a form that nothing offers": (
        _do(lambda p: p["forms"].append({"form": "merged contractions", "number": 7, "taken": True})),
        "names form 'merged contractions' 7",
    ),
    "a form without a choice": (
        _do(lambda p: p["forms"].insert(0, {"form": "merged contractions", "number": 0})),
        r"missing value at plan.forms\[0\].taken",
    ),
    "an edge that is not there": (_do(lambda p: p["edges"][0].update(input=7)), "input 7 does not exist"),
    "an edge from elsewhere": (_do(lambda p: p["edges"][0].update(result=3)), "the input is result 0 of op"),
    "a missing edge": (_do(lambda p: p["edges"].pop()), "is missing"),
    "an edge twice": (_do(lambda p: p["edges"].append(p["edges"][0])), "is in the plan twice"),
    "no such scope": (_set(_inner_edge, scope="hello"), "expected one of thread, warp, block"),
    "a scope that ends a kernel": (_set(_inner_edge, scope="launch"), "scope launch inside one part"),
    "a scope that is not built": (_set(_inner_edge, scope="warp"), "scope warp cannot be carried out yet"),
    "wide values unrounded": (
        _do(
            lambda p: next(e for e in p["edges"] if e["scope"] == "thread").update(
                unrounded=True, recompute=False
            )
        ),
        "it is not a bf16 or f16 value",
    ),
}

ON_PROCESSORS: dict[str, tuple[Callable[[Json], None], str]] = {
    "a block of threads": (_set(_part, threads=128), "a processor has no thread blocks"),
    "shared steps": (_set(_part, steps=2), "a processor has no thread blocks"),
    "a gemm": (
        _set(
            _contraction,
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
    "a cluster": (_set(_part, cluster=2), "cluster 2: a processor has none, so it must be 1"),
    "a tile that is copied": (
        _do(lambda p: _part(p)["tensors"][0].update(access="whole")),
        "has an access, which only GPUs support",
    ),
}
ON_GPUS: dict[str, tuple[Callable[[Json], None], str]] = {
    "no threads": (_set(_part, threads=0, group=0), "a block of 0 threads"),
    "half a warp": (
        _set(_part, threads=144),
        "a block of 144 threads: on target 'cuda:h200' it must have whole warps",
    ),
    "more threads than a block has": (_set(_part, threads=2048), "1024 threads at most"),
    "a group of three": (_set(_part, threads=96, group=3), "a power of two"),
    "a gemm of what does not contract": (
        _do(lambda p: _plain(p).update(gemm=_gemm(p))),
        "gemm: only a contraction with a micro kernel on a GPU has one",
    ),
    "a gemm without a field": (
        _do(lambda p: _gemm(p).pop("stages")),
        "missing value at plan.kernels.*gemm.stages",
    ),
    "a gemm with another field": (_set(_gemm, unroll=4), "unknown field at plan.kernels.*gemm.unroll"),
    "no such residency": (_set(_gemm, lhs="hello"), "expected step or walk at plan.kernels.*gemm.lhs"),
    "no such operands": (_set(_gemm, prefetch="hello"), "expected one of none, lhs, rhs, both"),
    "units that are no power of two": (_set(_gemm, m=3), "gemm: m must be a power of two, not 3"),
    "more units than rows": (_set(_gemm, m=128, n=1), "gemm: 128x1 units cannot share a tile of"),
    "more units than threads": (
        _do(lambda p: _part(p).update(threads=32)),
        "gemm: 1x64 units of 1 threads, times 1 slices of K, are more than the 32 threads of a block",
    ),
    "slices that leave threads idle": (_set(_gemm, kSlices=2, step=16), "gemm: .* slices of K"),
    "slices that are no power of two": (
        _set(_gemm, kSlices=3),
        "gemm: kSlices must be a power of two, not 3",
    ),
    "a step that is no power of two": (_set(_gemm, step=12), "gemm: step must be a power of two, not 12"),
    "a step that is too short": (
        _set(_gemm, step=1),
        "gemm: a step of 1 along K is too short: 'fma' takes 4 at least",
    ),
    "a step that is too long": (
        _set(_gemm, step=64),
        "gemm: a step of 64 along K is too long: 'fma' takes 32 at most",
    ),
    "a single stage": (_set(_gemm, stages=1), "gemm: 1 stages: a contraction has between 2 and 12"),
    "an lhs that stays without a walk": (
        _set(_gemm, lhs="walk"),
        "gemm: its lhs cannot stay in shared memory: no dim is walked in blocks around it",
    ),
    "a prefetch with nothing before it": (
        _set(_gemm, prefetch="both"),
        "gemm: the first steps of its both cannot be copied ahead",
    ),
    "copies that are no power of two": (
        _set(_gemm, lhsCopy=12),
        "gemm: lhsCopy must be 0 or a power of two of at most 16 bytes, not 12",
    ),
    "copies that rows do not allow": (
        _set(_gemm, lhsCopy=16),
        "gemm: lhsCopy: a thread copies 4 bytes of it at once at most, not 16",
    ),
    "copies that no thread makes": (_set(_gemm, rhsCopy=0), "gemm: rhsCopy: a thread copies .* not 0"),
    "steps of another contraction": (
        _set(_part, steps=3, workgroups=1),
        "steps: a tile of op .* has .* steps of .* along K, not 3",
    ),
    "shared tiles that are whole anyway": (
        _do(lambda p: _part(p).update(steps=-(-TERMS // _gemm(p)["step"]), workgroups=1)),
        "steps: each workgroup has the same number of whole tiles anyway",
    ),
    "no such access": (
        _do(lambda p: _part(p)["tensors"][0].update(access="hello")),
        r"expected one of derived, whole, direct at plan.kernels.*tensors\[0\].access",
    ),
    "a copied tile of a contraction": (
        _do(lambda p: _part(p)["tensors"][0].update(access="whole")),
        "access: the part's contractions copy their operands step by step",
    ),
    "clusters that are no power of two": (
        _set(_part, cluster=3),
        "clusters of 3 blocks: target 'cuda:h200' supports powers of two up to 8",
    ),
    "clusters that are too large": (_set(_part, cluster=16), "supports powers of two up to 8"),
}


@pytest.mark.parametrize("target", ["x86-64-v2", "cuda:h200"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_value_is_refused(stages: dict[str, Stage], tmp_path: Path, name: str, target: str) -> None:
    edit, message = REFUSED[name]
    _expect_refused(stages[target], tmp_path, edit, message)


@pytest.mark.parametrize("name", ON_PROCESSORS)
def test_a_value_that_only_gpus_have_is_refused(stages: dict[str, Stage], tmp_path: Path, name: str) -> None:
    edit, message = ON_PROCESSORS[name]
    _expect_refused(stages["x86-64-v2"], tmp_path, edit, message)


@pytest.mark.parametrize("name", ON_GPUS)
def test_a_value_that_no_gpu_has_is_refused(stages: dict[str, Stage], tmp_path: Path, name: str) -> None:
    edit, message = ON_GPUS[name]
    _expect_refused(stages["cuda:h200"], tmp_path, edit, message)


def _expect_refused(stage: Stage, folder: Path, edit: Callable[[Json], None], message: str) -> None:
    plan = copy.deepcopy(stage.plan)
    edit(plan)
    assert plan != stage.plan
    with pytest.raises(tilewright.PlanError, match=message):
        stage.carry_out(plan, folder)


@pytest.mark.parametrize("target", ["x86-64-v2", "cuda:h200"])
def test_the_plan_as_it_is_is_carried_out(stages: dict[str, Stage], tmp_path: Path, target: str) -> None:
    stage = stages[target]
    carried = stage.carry_out(stage.plan, tmp_path)
    assert carried.plan is not None and carried.plan.to_json() == stage.plan
    reported = [op.micro_kernel for kernel in carried.report.kernels for op in kernel.ops if op.micro_kernel]
    assert reported == [_contraction(stage.plan)["microKernel"]]


def test_a_plan_without_a_target_is_for_any(stages: dict[str, Stage], tmp_path: Path) -> None:
    stage = stages["x86-64-v2"]
    assert stage.carry_out({**stage.plan, "target": ""}, tmp_path).report.kernels


def test_a_plan_of_another_model_is_refused(stages: dict[str, Stage], w: Array, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Relu", ["s"], ["t"]),
        helper.make_node("LogSoftmax", ["t"], ["p"], axis=-1),
    ]
    other = make_model(nodes, [value("x", [ROWS, TERMS])], [value("p", [ROWS, COLUMNS])], {"w": w})
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(stages["x86-64-v2"].plan))
    with pytest.raises(tilewright.PlanError):
        tilewright.compile(other, "x86-64-v2", threads=1, plan=path)


def test_the_terms_of_a_block_are_carried_out(
    product: onnx.ModelProto, stages: dict[str, Stage], tmp_path: Path, w: Array
) -> None:
    """The third size of a micro kernel (K) is the plan's to choose. The sums are over 53 terms in f32."""
    plan = copy.deepcopy(stages["x86-64-v2"].plan)
    name, sizes = _contraction(plan)["microKernel"].split("-")
    label = f"{name}-{'x'.join(sizes.split('x')[:2])}x16"
    _contraction(plan)["microKernel"] = label
    _contraction(plan)["tilings"] = []  # they follow from the label
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    program = tilewright.compile(product, "x86-64-v2", threads=1, plan=path)
    assert label in program.explain()
    x = np.random.default_rng(1).standard_normal((ROWS, TERMS)).astype(np.float32)
    scores = np.exp(np.tanh(x.astype(np.float64) @ w.astype(np.float64)))
    np.testing.assert_allclose(program(x)[0], scores / scores.sum(axis=-1, keepdims=True), rtol=2e-5)
