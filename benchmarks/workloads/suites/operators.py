"""Single operators in every element type, several in a model, to check a GPU's back end with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from onnx import ModelProto

from benchmarks.workloads.operators import (
    contracting,
    elementwise,
    moving,
    newest,
    quantized,
    reducing,
    sequences,
)
from benchmarks.workloads.operators.model import ELEMENTS, FLOATS, NEWEST_OPSET, OPSET, OpModel
from benchmarks.workloads.workload import Workload

_Family = Callable[[OpModel], None]

_OF_FLOATS: dict[str, tuple[_Family, ...]] = {
    "unary": (elementwise.unary,),
    "binary": (elementwise.binary,),
    "cast": (elementwise.cast,),
    "reduce": (reducing.reduce, reducing.search),
    "normalize": (reducing.normalize, quantized.quantize),
    "move": (moving.move,),
    "index": (moving.index,),
    "multiply": (contracting.multiply,),
    "convolve": (contracting.convolve,),
    "resample": (contracting.resample,),
    "sequence": (sequences.recur, sequences.branch, sequences.signal),
    "newest": (newest.newest,),
}
_OF_OTHERS: dict[str, tuple[_Family, ...]] = {
    "compute": (
        elementwise.unary,
        elementwise.binary,
        reducing.reduce,
        reducing.search,
        contracting.multiply,
    ),
    "move": (moving.move,),
    "index": (
        moving.index,
        contracting.convolve,
        contracting.resample,
        quantized.quantize,
        quantized.codes,
        sequences.branch,
    ),
    "newest": (newest.newest, elementwise.cast),
}
"""Families of operators; each is one model in each type. Those of integers and bool are larger, because fewer
operators take them."""


def operators() -> list[Workload]:
    """Returns the suite `ops`."""
    return list(_workloads())


def _workloads() -> Iterator[Workload]:
    for dtype in ELEMENTS:
        for family, adders in (_OF_FLOATS if dtype in FLOATS else _OF_OTHERS).items():
            name = f"ops-{family}-{dtype}"
            opset = NEWEST_OPSET if family == "newest" else OPSET
            if not _made(name, dtype, opset, adders).is_empty:
                yield Workload(
                    name=name,
                    build=partial(_build, name, dtype, opset, adders),
                    description=f"single operators of the family {family} in {dtype}",
                    suite="ops",
                    dtype=dtype,
                )


def _made(name: str, dtype: str, opset: int, adders: tuple[_Family, ...]) -> OpModel:
    model = OpModel(name, dtype, opset=opset)
    for add in adders:
        add(model)
    return model


def _build(name: str, dtype: str, opset: int, adders: tuple[_Family, ...]) -> ModelProto:
    return _made(name, dtype, opset, adders).build()
