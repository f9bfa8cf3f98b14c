"""Attention in its ways of spelling, and the kernels of a program."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import tilewright
from onnx import TensorProto, numpy_helper
from tilewright.reference.oracle import float64_reference

from benchmarks.workloads.builder import GraphBuilder, repeat_heads, split_heads
from benchmarks.workloads.narrow import to_narrow


def narrowed(model: onnx.ModelProto, dtype: str) -> onnx.ModelProto:
    """Returns the model with `dtype` in place of every float32."""
    if dtype == "bf16":
        return to_narrow(model, "bf16")
    if dtype == "f16":
        for tensor in model.graph.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                array = rounded(numpy_helper.to_array(tensor), dtype)
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        for value in (*model.graph.input, *model.graph.output):
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """Returns the array as `dtype`; its lowest number replaces finite numbers that are lower."""
    types: dict[str, tuple[Any, float]] = {
        "f32": (np.float32, LOWEST),
        "bf16": (ml_dtypes.bfloat16, float(ml_dtypes.finfo(ml_dtypes.bfloat16).min)),
        "f16": (np.float16, float(np.finfo(np.float16).min)),
    }
    kind, lowest = types[dtype]
    return np.where(np.isfinite(array), np.maximum(array, np.float32(lowest)), array).astype(kind)


LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True, kw_only=True)
class Attention:
    """A model of softmax(query @ keyᵀ · scale + mask) @ value, in one of the forms in which models write it."""

    heads: int = 3
    key_heads: int = 3
    queries: int = 37
    keys: int = 53
    head_size: int = 24
    value_size: int = 20
    mask: str = "none"
    """none, causal, infinite (causal, and the first rows have no keys), before (causal, written with indices), keys
    (hides some keys from all queries), rows (hides all keys from one query)"""
    scale: str = "scores"
    """operand that is scaled: the scores or the query"""
    transposed_key: bool = False
    """True if the key comes as [head size, keys]"""
    dtype: str = "f32"
    """f32, bf16 or f16"""
    heads_inside: bool = False
    """True if inputs are [sequence, heads · size], as from a projection, and are split in the model"""
    four: bool = True
    """True for [batch, heads, …], False for [heads, …]"""
    batch: int = 1

    def build(self) -> onnx.ModelProto:
        g = GraphBuilder("attention")
        query = self._heads(g, "query", self.heads, self.queries, self.head_size)
        if self.transposed_key:
            key = g.input("key", (*self._lead(self.key_heads), self.head_size, self.keys))
        else:
            key = self._heads(g, "key", self.key_heads, self.keys, self.head_size)
            key = self._repeated(g, key, self.head_size)
            axes = [*range(len(self._lead(1)))]
            key = g.op("Transpose", key, perm=[*axes, len(axes) + 1, len(axes)])
        value = self._heads(g, "value", self.key_heads, self.keys, self.value_size)
        value = self._repeated(g, value, self.value_size)
        factor = g.scalar(1 / math.sqrt(self.head_size))
        if self.scale == "query":
            query = g.op("Mul", query, factor)
        scores = g.op("MatMul", query, key)
        if self.scale == "scores":
            scores = g.op("Mul", scores, factor)
        scores = self._masked(g, scores)
        result = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
        g.output(result, (*self._lead(self.heads), self.queries, self.value_size))
        return narrowed(g.build(), self.dtype)

    def _lead(self, heads: int) -> tuple[int, ...]:
        return (self.batch, heads) if self.four else (heads,)

    def _heads(self, g: GraphBuilder, name: str, heads: int, rows: int, size: int) -> str:
        if not self.heads_inside:
            return g.input(name, (*self._lead(heads), rows, size))
        x = g.input(name, (self.batch, rows, heads * size))
        return split_heads(g, x, batch=self.batch, sequence=rows, heads=heads, head_size=size)

    def _repeated(self, g: GraphBuilder, x: str, size: int) -> str:
        shape = (self.batch, self.key_heads, self.keys, size)
        return repeat_heads(g, x, shape=shape, group=self.heads // self.key_heads)

    def _masked(self, g: GraphBuilder, scores: str) -> str:
        if self.mask == "causal":
            above = np.triu(np.full((self.queries, self.keys), LOWEST, dtype=np.float32), k=1)
            return g.op("Add", scores, g.constant(above, "above"))
        if self.mask == "infinite":
            above = np.triu(np.full((self.queries, self.keys), -np.inf, dtype=np.float32), k=-3)
            return g.op("Add", scores, g.constant(above, "above"))
        if self.mask == "before":
            first, end, more, one = (
                g.constant(np.array(n)) for n in (0, self.keys, self.keys - self.queries, 1)
            )
            key, last = g.op("Range", first, end, one), g.op("Range", more, end, one)
            last = g.op("Unsqueeze", last, g.ints([1]))
            return g.op("Where", g.op("LessOrEqual", key, last), scores, g.scalar(-np.inf))
        if self.mask == "keys":
            return g.op("Add", scores, g.input("mask", (1, 1, 1, self.keys)))
        if self.mask == "rows":
            return g.op("Add", scores, g.input("mask", (1, 1, self.queries, self.keys)))
        return scores

    def inputs(self, program: tilewright.Program) -> list[np.ndarray]:
        rng = np.random.default_rng(5)
        made = [rng.standard_normal(spec.shape).astype(np.float32) for spec in program.signature.inputs]
        if self.mask == "keys":
            made[-1] = np.where(made[-1] > 0, np.float32(LOWEST), np.float32(0))
        if self.mask == "rows":
            made[-1] = np.where(made[-1] > 0, np.float32(-np.inf), np.float32(0))
            made[-1][..., 2, :] = -np.inf
        return [rounded(array, self.dtype) for array in made]


PLAIN = Attention()


def kernels(program: tilewright.Program) -> list[str]:
    return [kernel.name for kernel in program.metadata.report.kernels]


def leave_blockings_open(part: Any) -> None:
    """Lets the compiler choose register blocks anew for a group of a plan whose tiles were changed."""
    for op in part.ops:
        op.blocking = None


def in_blocks(
    model: onnx.ModelProto, keys: int, block: int, *, form: str = "online softmax of blocks", rows: int = 0
) -> tilewright.Program:
    """Returns the model's kernel with tiles that walk the keys in blocks, whatever the planner prefers."""
    plan = tilewright.compile(model, threads=[3]).plan
    (kernel,) = (kernel for kernel in plan.kernels if kernel.name.startswith("contract"))
    part = kernel.groups[0]
    (dim,) = (dim for dim, extent in enumerate(part.extents) if extent == keys and dim not in part.grid)
    part.tiles[dim] = block
    if rows:
        part.tiles[part.grid[-1]] = rows
    # A maximum and a sum run along the keys; the maximum comes first.
    maximum = next(
        op for op in part.ops if op.root and op.tilings[0].sizes[-1] == keys and op.numerics.accumulation
    )
    maximum.form = form
    leave_blockings_open(part)
    return tilewright.compile(model, threads=[3], plan=plan)


def one_right_kernel(attention: Attention, *, threads: int) -> tilewright.Program:
    model = attention.build()
    program = tilewright.compile(model, threads=[threads])
    inputs = attention.inputs(program)
    (expected,) = float64_reference(model, inputs)
    error = program(*inputs)[0].astype(np.float64) - expected
    unit = {"f32": 2.0**-22, "bf16": 2.0**-9}[attention.dtype]
    assert np.linalg.norm(error) <= 4 * unit * np.linalg.norm(expected)
    assert len(kernels(program)) == 1, kernels(program)
    return program
