"""Edits of one field of a plan, and what comes of each: other kernels, or a refusal.

Models are small, and a plan is carried out without IREE behind it, which takes some tenths of a second.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto
from plan_cases import Stage
from tilewright.api.stitch import LAUNCHES, kernel_files
from tilewright.records.encoding import camel_case
from tilewright.records.targets import resolve_targets
from tilewright.worker.process import Worker

from benchmarks.workloads import RecurrentOptions, recurrent
from benchmarks.workloads.builder import GraphBuilder, layer_norm, rms_norm

Json = dict[str, Any]

_STEP = re.compile(r"\w+(?=[.[]|$)|\[[^]]*(?=\])")
_TENSOR = re.compile(r"(in\d+|op\d+\.\d+)\.")

FORMS_ONLY: Json = {"kernels": [], "edges": [], "left": [], "streams": [], "loops": []}
"""What else an edit of a form changes, because kernels are planned anew."""


@dataclass(frozen=True)
class Edit:
    """An edit of the field at `path` in the plan of a model.

    A path names members, such as "edges[3].scope". Brackets hold the number of an entry; or "member=value", for the
    first entry that has it; or "member", for the first entry in which that is not empty. "group." stands for the first
    group, "product." for its first op with a micro kernel, and "in0." or "op1.0." for its tensor of that name.
    """

    model: str
    path: str
    value: Any
    refusal: str = ""
    """Pattern of the message with which the plan is refused; "": it makes other kernels."""
    also: Json = field(default_factory=dict)
    """Values of other fields that follow from the edited one, by path."""

    def __str__(self) -> str:
        return f"{self.model} {self.path} {self.value}{' refused' if self.refusal else ''}"

    def is_of(self, name: str) -> bool:
        """Returns true if the edit is of this field, or of an element of it."""
        path = re.sub(r"\[[^]]*\]", "[]", _full(self.path))
        return path == name or path.startswith(f"{name}[")

    def apply(self, plan: Json) -> Json:
        """Returns an edited copy of a plan that has another value at the path."""
        edited = copy.deepcopy(plan)
        assert value_at(edited, self.path) != self.value
        edits = {self.path: self.value, **self.also}
        places = [(_find(edited, path), value) for path, value in edits.items()]
        for (inside, key), value in places:
            inside[key] = value
        return edited


def _full(path: str) -> str:
    """Replaces the words that stand for a group, an op or a tensor."""
    path = re.sub(_TENSOR, r"group.tensors[tensor=\1].", path)
    path = path.replace("product.", "group.ops[microKernel].", 1)
    return path.replace("group.", "kernels[0].groups[0].", 1)


def _number(entries: list[Json], chosen: str) -> int:
    """Returns the number of the entry that brackets select."""
    if chosen.isdigit():
        return int(chosen)
    member, _, value = chosen.partition("=")
    return next(
        n for n, entry in enumerate(entries) if (str(entry[member]) == value if value else entry[member])
    )


def _find(plan: Json, path: str) -> tuple[Any, Any]:
    """Returns the record or the list that a path ends in, and the member or the number there."""
    inside: Any = plan
    key: Any = None
    for step in _STEP.findall(_full(path)):
        inside = inside if key is None else inside[key]
        key = _number(inside, step[1:]) if step.startswith("[") else step
    return inside, key


def value_at(plan: Json, path: str) -> Any:
    inside, key = _find(plan, path)
    return inside[key]


def fields_of(record: type, path: str = "") -> Iterator[str]:
    """Yields the paths of all fields of a record that are no records themselves, without numbers of entries."""
    hints = get_type_hints(record)
    for one in fields(record):
        name, kind = path + camel_case(one.name), hints[one.name]
        inner = next((part for part in (kind, *get_args(kind)) if is_dataclass(part)), None)
        if not isinstance(inner, type):
            yield name
        else:
            yield from fields_of(inner, f"{name}[]." if get_origin(kind) is list else f"{name}.")


def _product() -> onnx.ModelProto:
    g = GraphBuilder("product")
    scores = g.op("Add", g.op("MatMul", g.input("x", (37, 53)), g.weight((53, 48), fan_in=53)), g.vector(48))
    g.output(g.op("Softmax", g.op("Tanh", scores), axis=-1), (37, 48))
    return g.build()


def _odd() -> onnx.ModelProto:
    g = GraphBuilder("odd")
    g.output(g.op("MatMul", g.input("x", (13, 33)), g.weight((33, 35), fan_in=33)), (13, 35))
    return g.build()


def _rows() -> onnx.ModelProto:
    g = GraphBuilder("rows")
    g.output(layer_norm(g, g.input("x", (41, 1000)), 1000), (41, 1000))
    return g.build()


def _half() -> onnx.ModelProto:
    g = GraphBuilder("half")
    x = g.input("x", (37, 48), TensorProto.FLOAT16)
    g.output(g.op("Softmax", g.op("Add", g.op("Tanh", x), x), axis=-1), (37, 48), TensorProto.FLOAT16)
    return g.build()


def _heads() -> onnx.ModelProto:
    g = GraphBuilder("heads")
    x = g.input("x", (12, 64))
    for _ in range(3):
        g.output(g.op("MatMul", x, g.weight((64, 32), fan_in=64)), (12, 32))
    return g.build()


def _long() -> onnx.ModelProto:
    g = GraphBuilder("long")
    g.output(g.op("MatMul", g.input("x", (1, 8209)), g.weight((8209, 768), fan_in=8209)), (1, 768))
    return g.build()


def _inputs() -> onnx.ModelProto:
    """The matrix is no weight, so that nothing packs it, and larger than the caches of a core."""
    g = GraphBuilder("inputs")
    g.output(g.op("MatMul", g.input("x", (1, 8209)), g.input("w", (8209, 768))), (1, 768))
    return g.build()


def _residual() -> onnx.ModelProto:
    g = GraphBuilder("residual")
    x = g.input("x", (128, 512))
    kept = g.op("Add", g.op("MatMul", x, g.weight((512, 512), fan_in=512)), x)
    hidden = g.op("MatMul", rms_norm(g, kept, 512), g.weight((512, 1376), fan_in=512))
    last = g.op("MatMul", g.op("Relu", hidden), g.weight((1376, 512), fan_in=1376))
    g.output(g.op("Add", last, kept), (128, 512))
    return g.build()


def _dense() -> onnx.ModelProto:
    g, rng = GraphBuilder("dense"), np.random.default_rng(3)
    x = g.input("x", (1024, 512), TensorProto.FLOAT16)
    y = g.op("MatMul", x, g.constant(rng.standard_normal((512, 512)).astype(np.float16)))
    g.output(y, (1024, 512), TensorProto.FLOAT16)
    return g.build()


def _chain() -> onnx.ModelProto:
    g, rng = GraphBuilder("chain"), np.random.default_rng(4)
    first, second = (g.constant(rng.standard_normal((128, 128)).astype(np.float16)) for _ in range(2))
    x = g.input("x", (256, 128), TensorProto.FLOAT16)
    y = g.op("MatMul", g.op("Relu", g.op("MatMul", x, first)), second)
    g.output(y, (256, 128), TensorProto.FLOAT16)
    return g.build()


def _exponentials() -> onnx.ModelProto:
    g, half = GraphBuilder("exponentials"), TensorProto.FLOAT16
    y = g.op("MatMul", g.input("a", (128, 64), half), g.op("Exp", g.input("b", (64, 128), half)))
    g.output(y, (128, 128), half)
    return g.build()


def _exponentials_twice() -> onnx.ModelProto:
    """A sum and another op read exponentials, in the nest of the maximum and in a later one."""
    g = GraphBuilder("exponentials twice")
    x = g.input("x", (41, 1000))
    axis = g.constant(np.array([1], dtype=np.int64))
    e = g.op("Exp", g.op("Sub", x, g.op("ReduceMax", x, axes=[1], keepdims=1)))
    g.output(g.op("ReduceSum", e, axis, keepdims=0), (41,))
    g.output(g.op("Tanh", g.op("Add", e, e)), (41, 1000))
    return g.build()


def _shifted() -> onnx.ModelProto:
    """Two reads of an input differ, and only one of them is repeated."""
    g = GraphBuilder("shifted")
    x = g.input("x", (64, 1128))
    first, last = (
        g.op("Slice", x, *(g.constant(np.array([n], dtype=np.int64)) for n in (start, start + 1000, 1)))
        for start in (0, 128)
    )
    g.output(g.op("Add", layer_norm(g, first, 1000), last), (64, 1000))
    return g.build()


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "product": _product,
    "odd": _odd,
    "rows": _rows,
    "half": _half,
    "heads": _heads,
    "long": _long,
    "inputs": _inputs,
    "residual": _residual,
    "dense": _dense,
    "chain": _chain,
    "exponentials": _exponentials,
    "exponentials twice": _exponentials_twice,
    "shifted": _shifted,
    "loop": lambda: recurrent(RecurrentOptions(layers=1, steps=4, hidden=7, batch=3)),
    "layers": lambda: recurrent(RecurrentOptions(layers=2, steps=4, hidden=16, batch=1)),
}


@dataclass(frozen=True)
class Bench:
    """Plans of the models for one target, and the kernels that they make."""

    target: str
    worker: Worker
    folder: Path
    _stages: dict[str, Stage] = field(default_factory=dict)
    _kernels: dict[str, list[bytes]] = field(default_factory=dict)

    def stage(self, model: str) -> Stage:
        if model not in self._stages:
            folder = self.folder / model
            program = tilewright.compile(
                MODELS[model](), self.target, threads=1, tuning=False, deploy=False, dump_dir=folder
            )
            plan = program.plan
            assert plan is not None
            assert not any("failed" in note for note in program.metadata.notes)
            text = (folder / "2-preprocessing.mlir").read_text()
            targets = resolve_targets(self.target, threads=1)
            self._stages[model] = Stage(text, targets, plan.to_json(), self.worker)
        return self._stages[model]

    def carry_out(self, model: str, plan: Json, folder: Path) -> tuple[Json, list[bytes]]:
        """Returns the plan as it was carried out, and the code and launches of its kernels."""
        stage = self.stage(model)
        folder.mkdir()
        carried = stage.carry_out(plan, folder)
        assert carried.plan is not None
        names = [*kernel_files(stage.targets), LAUNCHES]
        return carried.plan, [(folder / name).read_bytes() for name in names]

    def kernels(self, model: str) -> list[bytes]:
        """Returns the kernels of the plan as it is."""
        if model not in self._kernels:
            plan, made = self.carry_out(model, self.stage(model).plan, self.folder / f"{model}-as-it-is")
            assert plan == self.stage(model).plan
            self._kernels[model] = made
        return self._kernels[model]


def check(bench: Bench, edit: Edit, folder: Path) -> None:
    """Asserts that a plan with the edit makes other kernels, and is what the program says it has; or is refused."""
    plan = edit.apply(bench.stage(edit.model).plan)
    if edit.refusal:
        # some fields are refused by the pass that would carry them out
        with pytest.raises((tilewright.PlanError, tilewright.PassError), match=edit.refusal):
            bench.carry_out(edit.model, plan, folder)
        return
    usual = bench.kernels(edit.model)
    carried, kernels = bench.carry_out(edit.model, plan, folder)
    assert value_at(carried, edit.path) == edit.value
    assert kernels != usual
