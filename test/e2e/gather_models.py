"""Models that read elements at places that the graph computes, with their inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import tilewright
from onnx import TensorProto, helper

from benchmarks.workloads.builder import GraphBuilder

ROWS, _COLUMNS, PICKED = 37, 21, 13
TYPES = {
    "f32": TensorProto.FLOAT,
    "f16": TensorProto.FLOAT16,
    "i64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}

Model = tuple[onnx.ModelProto, list[np.ndarray]]


def _table(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "i64":
        return rng.integers(-(1 << 40), 1 << 40, shape)
    return rng.standard_normal(shape).astype(helper.tensor_dtype_to_np_dtype(TYPES[dtype]))


def _places(size: int, *shape: int) -> np.ndarray:
    """Places along a dim of `size`, half of them from its end."""
    return np.random.default_rng(5).integers(-size, size, shape)


def rows(dtype: str) -> Model:
    g = GraphBuilder("rows")
    x, at = g.input("x", [ROWS, _COLUMNS], TYPES[dtype]), g.input("at", [PICKED], TensorProto.INT64)
    g.output(g.op("Gather", x, at, axis=0), [PICKED, _COLUMNS], TYPES[dtype])
    return g.build(), [_table(dtype, ROWS, _COLUMNS), _places(ROWS, PICKED)]


def columns(dtype: str) -> Model:
    g = GraphBuilder("columns")
    x, at = g.input("x", [ROWS, _COLUMNS], TYPES[dtype]), g.input("at", [2, PICKED], TensorProto.INT64)
    g.output(g.op("Gather", x, at, axis=1), [ROWS, 2, PICKED], TYPES[dtype])
    return g.build(), [_table(dtype, ROWS, _COLUMNS), _places(_COLUMNS, 2, PICKED)]


def elements(dtype: str) -> Model:
    g = GraphBuilder("elements")
    x, at = g.input("x", [ROWS, _COLUMNS], TYPES[dtype]), g.input("at", [PICKED, _COLUMNS], TensorProto.INT64)
    g.output(g.op("GatherElements", x, at, axis=0), [PICKED, _COLUMNS], TYPES[dtype])
    return g.build(), [_table(dtype, ROWS, _COLUMNS), _places(ROWS, PICKED, _COLUMNS)]


def points(dtype: str) -> Model:
    g = GraphBuilder("points")
    x, at = g.input("x", [ROWS, _COLUMNS, 4], TYPES[dtype]), g.input("at", [PICKED, 2], TensorProto.INT64)
    g.output(g.op("GatherND", x, at), [PICKED, 4], TYPES[dtype])
    places = np.stack([_places(size, PICKED) % size for size in (ROWS, _COLUMNS)], axis=1)
    return g.build(), [_table(dtype, ROWS, _COLUMNS, 4), places]


def bag(g: GraphBuilder) -> tuple[str, list[int]]:
    picked = g.op("Gather", g.input("x", [ROWS, 16]), g.input("at", [PICKED, 5], TensorProto.INT64), axis=0)
    return g.op("ReduceSum", picked, g.ints([1]), keepdims=0), [PICKED, 16]


def embedding(g: GraphBuilder) -> tuple[str, list[int]]:
    picked = g.op("Gather", g.input("x", [ROWS, 48]), g.input("at", [2, PICKED], TensorProto.INT64), axis=0)
    y = g.op("Add", picked, g.weight([PICKED, 48], fan_in=1))
    return g.op("LayerNormalization", y, g.vector(48), g.vector(48), axis=-1, epsilon=1e-5), [2, PICKED, 48]


def product(g: GraphBuilder) -> tuple[str, list[int]]:
    picked = g.op("Gather", g.input("x", [ROWS, 48]), g.input("at", [PICKED], TensorProto.INT64), axis=0)
    return g.op("MatMul", picked, g.weight([48, 33], fan_in=48)), [PICKED, 33]


def of_computed(g: GraphBuilder) -> tuple[str, list[int]]:
    table = g.op("Softmax", g.input("x", [ROWS, 48]), axis=-1)
    picked = g.op("Gather", table, g.input("at", [ROWS], TensorProto.INT64), axis=0)
    return g.op("Add", picked, table), [ROWS, 48]


def computed_places(g: GraphBuilder) -> tuple[str, list[int]]:
    x, at = g.input("x", [ROWS, 48]), g.input("at", [PICKED], TensorProto.INT64)
    doubled = g.op("Mod", g.op("Add", at, at), g.constant(np.array(ROWS, np.int64)))
    return g.op("Sigmoid", g.op("Gather", x, doubled, axis=0)), [PICKED, 48]


def padded(g: GraphBuilder) -> tuple[str, list[int]]:
    picked = g.op("Gather", g.input("x", [ROWS, 48]), g.input("at", [PICKED], TensorProto.INT64), axis=0)
    return g.op("Pad", g.op("Exp", picked), g.ints([2, 3, 1, 5])), [PICKED + 3, 56]


def known(g: GraphBuilder) -> tuple[str, list[int]]:
    x = g.input("x", [ROWS, 3, 48])
    g.input("at", [PICKED], TensorProto.INT64)
    both = [g.op("Gather", x, g.constant(np.array(at, np.int64)), axis=1) for at in (2, -3)]
    return g.op("Sub", *both), [ROWS, 48]


Reading = Callable[[GraphBuilder], tuple[str, list[int]]]
GATHERS = [rows, columns, elements, points]
READINGS = [bag, embedding, product, of_computed, computed_places, padded, known]


def reading_model(reading: Reading) -> onnx.ModelProto:
    """Builds a model that computes with what it gathers: f32 inputs x [ROWS, ...], places `at` along ROWS."""
    g = GraphBuilder("reading")
    g.output(*reading(g))
    return g.build()


def reading_inputs(program: tilewright.Program) -> list[np.ndarray]:
    """Returns random elements, and places of which half count from the end."""
    return [
        _table("f32", *spec.shape) if spec.numpy_dtype == np.float32 else _places(ROWS, *spec.shape)
        for spec in program.signature.inputs
    ]
