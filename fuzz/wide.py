"""Random graphs of contractions, windows, indices, quantisation, recurrences and control flow, among all other ops.

`random_wide` draws them for fixed shapes, `random_dynamic` for open ones. `random_special` draws elementwise ops,
reductions and movement for inputs with NaN, infinities, signed zeros, subnormal numbers and extreme integers.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import ModelProto

from fuzz import contracting, indexing, quantized, recurring, windows
from fuzz.builder import Array, Shape
from fuzz.elementwise import COMPARISONS
from fuzz.graphs import FAMILIES, Family, begin, finish, grow
from fuzz.pool import Pool
from fuzz.symbols import with_open_sizes

_MOST_NODES = 6
# Images of DepthToSpace and sequences of recurrent ops are rare among random shapes.
_TRIES = 40

NEW: tuple[Family, ...] = (
    Family(6, contracting.matmul, ("MatMul",)),
    Family(3, contracting.gemm, ("Gemm",)),
    Family(3, contracting.product, ("MatMul",)),
    Family(2, contracting.einsum, ("Einsum",)),
    Family(3, contracting.transposed_convolution, ("ConvTranspose",)),
    Family(2, contracting.global_pool, ("GlobalAveragePool", "GlobalMaxPool")),
    Family(4, windows.convolution, ("Conv",)),
    Family(3, windows.pooling, ("AveragePool", "MaxPool")),
    Family(3, windows.pad, ("Pad",)),
    Family(3, indexing.gather, ("Gather",)),
    Family(2, indexing.gather_elements, ("GatherElements",)),
    Family(2, indexing.gather_nd, ("GatherND",)),
    Family(3, indexing.scatter_elements, ("ScatterElements",)),
    Family(3, indexing.scatter_nd, ("ScatterND",)),
    Family(2, indexing.top_k, ("TopK",)),
    Family(2, indexing.cumulate, ("CumSum",)),
    Family(1, indexing.triangle, ("Trilu",)),
    Family(1, indexing.tile, ("Tile",)),
    Family(2, indexing.split, ("Split",)),
    Family(2, indexing.depth_to_space, ("DepthToSpace", "SpaceToDepth")),
    Family(4, indexing.resize, ("Resize",)),
    Family(3, quantized.rounded, ("QuantizeLinear",)),
    Family(3, quantized.matmul, ("QLinearMatMul", "MatMulInteger")),
    Family(3, quantized.convolution, ("QLinearConv", "ConvInteger")),
    Family(4, recurring.recurrent, recurring.RECURRENT),
    Family(2, recurring.branch, ("If",)),
    Family(3, recurring.loop, ("Loop",)),
    Family(3, recurring.scan, ("Scan",)),
)
"""Operators that `graphs` lacks."""

ALL: tuple[Family, ...] = (*FAMILIES, *NEW)


_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 11)
_MOST_ELEMENTS = 512


class _SmallPool(Pool):
    """A pool of small inputs, most of them images or sequences, so that compilation and the reference take little."""

    def shape(self) -> Shape:
        while True:
            rank = self.pick((1, 2, 2, 3, 3, 3, 4, 4))
            shape = tuple(self.pick(_SIZES) for _ in range(rank))
            if math.prod(shape) <= _MOST_ELEMENTS:
                return shape


def random_wide(seed: int) -> ModelProto:
    """Returns the random graph of all operators for this seed: 2 to about 10 nodes."""
    pool = _SmallPool(f"random_wide_{seed}", np.random.default_rng([seed, 5]))
    for _ in range(int(pool.rng.integers(1, 3))):
        begin(pool, NEW, tries=_TRIES)
    grow(pool, ALL, int(pool.rng.integers(2, _MOST_NODES + 1)))
    return finish(pool)


def random_dynamic(seed: int) -> ModelProto:
    """Returns a random graph with open dims, named after the sizes that its inputs have."""
    return with_open_sizes(random_wide(seed))


# With NaN, positions of maxima and casts to integers are not defined; integers beyond the range of f16 become infinite.
_UNDEFINED = frozenset(("ArgMax", "ArgMin", "Cast", "LayerNormalization"))
_SPECIAL = tuple(family for family in FAMILIES if not _UNDEFINED & set(family.ops))


def random_special(seed: int) -> ModelProto:
    """Returns a random graph on which all evaluations agree even for special values."""
    pool = _SmallPool(f"random_special_{seed}", np.random.default_rng([seed, 7]))
    for _ in range(int(pool.rng.integers(1, 3))):
        begin(pool, _SPECIAL)
    grow(pool, _SPECIAL, int(pool.rng.integers(2, _MOST_NODES + 1)))
    return finish(pool)


# These tell a subnormal number from zero, which programs on CPUs do not (docs/reference/numerics-edges.md).
_TELL_SUBNORMALS = frozenset((*COMPARISONS, "Floor", "Ceil", "Sign"))


def special_inputs(model: ModelProto, arrays: list[Array], seed: int) -> list[Array]:
    """Returns inputs of a model with special values at a fifth of their elements."""
    rng = np.random.default_rng([seed, 11])
    is_told = any(node.op_type in _TELL_SUBNORMALS for node in model.graph.node)
    return [_special(array, rng, is_told=is_told) for array in arrays]


def _special(array: Array, rng: np.random.Generator, *, is_told: bool) -> Array:
    if array.dtype == np.bool_:
        return array
    if np.issubdtype(array.dtype, np.integer):
        ends = np.iinfo(array.dtype)
        values = np.array([ends.min, ends.max, ends.min + 1, 0, -1], array.dtype)
    else:
        narrow = np.finfo(np.float32)
        tiny = float(narrow.smallest_normal if is_told else narrow.smallest_subnormal)
        if array.dtype == np.float16:
            tiny = 2.0**-24  # subnormal, but not in f32, in which programs compute
        values = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, tiny, -tiny]).astype(array.dtype)
    return np.where(rng.random(array.shape) < 0.2, rng.choice(values, array.shape), array)
