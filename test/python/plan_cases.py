"""A model, its plans for a processor and a GPU, and changes of their fields."""

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


def ops_of(plan: Json) -> list[Json]:
    return [op for kernel in plan["kernels"] for part in kernel["groups"] for op in part["ops"]]


def group(plan: Json) -> Json:
    part: Json = kernel_of(plan)["groups"][0]
    return part


def kernel_of(plan: Json) -> Json:
    """Returns the kernel that has the contraction."""
    return next(k for k in plan["kernels"] if any(op["microKernel"] for p in k["groups"] for op in p["ops"]))


def contraction(plan: Json) -> Json:
    return next(op for op in ops_of(plan) if op["microKernel"])


def plain_op(plan: Json) -> Json:
    return next(op for op in ops_of(plan) if not op["microKernel"])


def put(find: Callable[[Json], Json], **fields: Any) -> Callable[[Json], None]:
    return lambda plan: find(plan).update(fields)


def change(apply: Callable[[Json], Any]) -> Callable[[Json], None]:
    def edit(plan: Json) -> None:
        apply(plan)

    return edit


def assert_refused(stage: Stage, folder: Path, edit: Callable[[Json], None], message: str) -> None:
    plan = copy.deepcopy(stage.plan)
    edit(plan)
    assert plan != stage.plan
    with pytest.raises(tilewright.PlanError, match=message):
        stage.carry_out(plan, folder)
