"""Convolutions of bytes with one window along a dim of an open batch: the window stays where it is."""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from onnx import TensorProto, helper, numpy_helper

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=2)]

_X_ZERO, _W_ZERO, _Y_ZERO = 5, 2, 3


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["ConvInteger", "QLinearConv"])
@pytest.mark.parametrize(("image", "pad"), [((5, 7), 0), ((9, 8), 1)], ids=["plain", "padded"])
def test_the_only_window_of_bytes_stays_where_it_is(
    op: str, dtype: type[np.integer], image: tuple[int, int], pad: int
) -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 9, (3, 2, 3, 3)).astype(dtype)
    zeros = {
        "zx": np.array(_X_ZERO, dtype), "zw": np.array(_W_ZERO, dtype), "zy": np.array(_Y_ZERO, dtype)
    }  # fmt: skip
    scales = {"sx": np.float32(0.25), "sw": np.float32(0.25), "sy": np.float32(2)}
    is_scaled = op == "QLinearConv"
    names = "x sx zx w sw zw sy zy" if is_scaled else "x w zx zw"
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node(op, names.split(), ["y"], strides=[8, 8], pads=[pad] * 4)],
        "batch",
        [helper.make_tensor_value_info("x", kind, ["batch", 2, *image])],
        [helper.make_tensor_value_info("y", kind if is_scaled else TensorProto.INT32, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in {"w": weights, **zeros, **scales}.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=9)
    program = tilewright.compile(model, threads=1)
    for batch in (3, 1):
        x = rng.integers(0, 100, (batch, 2, *image)).astype(dtype)
        padded = np.pad(x.astype(np.int64) - _X_ZERO, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        window = padded[:, :, :3, :3]
        expected = np.einsum("nchw,fchw->nf", window, weights.astype(np.int64) - _W_ZERO)
        if is_scaled:
            limits = np.iinfo(dtype)
            expected = np.clip(np.rint(expected / 32) + _Y_ZERO, limits.min, limits.max)
        np.testing.assert_array_equal(program(x)[0][:, :, 0, 0], expected)
