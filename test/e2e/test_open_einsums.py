"""Einsum of operands with several open dims: numpy's results for sizes that are 0, 1 or more."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from onnx import helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=4)]

_SIZES = {"a": 3, "b": 2, "c": 5}
_EQUATIONS = {
    "bij,jk->bik": (["a", "b", 4], [4, 4]),
    "bij,kj->bki": (["a", "b", 4], [5, 4]),
    "bij,jk,kl->bil": (["a", "b", 4], [4, "c"], ["c", 3]),
    "bqhd,bkhd->bhqk": (["a", "b", 3, 4], ["a", "c", 3, 4]),
    "bthd,hde->bte": (["a", "b", 3, 4], [3, 4, 5]),
    "bij,bij->": (["a", "b", 4], ["a", "b", 4]),
    "biij,bj->bi": (["a", "b", "b", 4], ["a", 4]),
    "ij,k": (["a", "b"], ["c"]),
    "bij,kj": (["a", "b", 4], [5, 4]),
    "bij,bjk": (["a", "b", "c"], ["a", "c", 4]),
    "...ij,...jk->...ik": (["a", 2, "b", "c"], ["c", 4]),
    "...i,...i->i...": (["a", "b", 4], [1, 4]),
}


_CASES = [
    *((equation, np.float32) for equation in _EQUATIONS),
    *(("bij,kj->bki", dtype) for dtype in (np.float16, np.float64, np.int32)),
]


@pytest.mark.parametrize(("equation", "dtype"), _CASES)
def test_products_of_open_dims_have_any_size(equation: str, dtype: type[np.generic]) -> None:
    shapes = _EQUATIONS[equation]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    rank = np.einsum(equation, *(np.zeros([_SIZES.get(str(d), d) for d in shape]) for shape in shapes)).ndim
    graph = helper.make_graph(
        [helper.make_node("Einsum", ["x", "y", "z"][: len(shapes)], ["r"], equation=equation)],
        "products",
        [helper.make_tensor_value_info(*each) for each in zip("xyz", [kind] * 3, shapes, strict=False)],
        [helper.make_tensor_value_info("r", kind, [f"r{axis}" for axis in range(rank)])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    program = tilewright.compile(model, threads=1)
    rng = np.random.default_rng(0)
    for sizes in (_SIZES, _SIZES | {"a": 1}, _SIZES | {"b": 1}, _SIZES | {"b": 0}):
        arrays = [
            rng.integers(-4, 5, [sizes.get(str(dim), dim) for dim in shape]).astype(dtype) for shape in shapes
        ]
        expected = np.einsum(equation, *(array.astype(np.float64) for array in arrays))
        (result,) = program(*arrays)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)  # of small integers, of which every sum is exact
