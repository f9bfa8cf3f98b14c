"""Pools with ceil_mode in branches and bodies: no window begins in the padding behind the image."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from control_flow_models import BOOL, INT64, Array, compiled, equal, graph_of, node, value
from onnx import NodeProto

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]

_POOLS: dict[str, Callable[..., Array]] = {"MaxPool": np.nanmax, "AveragePool": np.nanmean}


def _pool(op: str, x: str, y: str) -> NodeProto:
    """Returns a pool of 5 x 7 elements in 2 x 3 windows; ONNX's inference gives 3 x 4."""
    return node(op, [x], [y], kernel_shape=[2, 2], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1)


def _pooled(op: str, x: Array) -> Array:
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=np.nan)
    windows = [[padded[:, :, i : i + 2, j : j + 2] for j in (0, 3, 6)] for i in (0, 3)]
    return np.array([[_POOLS[op](window, axis=(2, 3)) for window in row] for row in windows]).transpose(
        2, 3, 0, 1
    )


@pytest.mark.parametrize("op", _POOLS)
def test_branches_have_no_window_in_the_padding(op: str) -> None:
    """One branch reads its image from outside, the other computes it."""
    branches = {
        "then_branch": graph_of([_pool(op, "x", "a")], [], [value("a", [1, 2, None, None])]),
        "else_branch": graph_of(
            [node("Neg", ["x"], ["less"]), _pool(op, "less", "b")], [], [value("b", [1, 2, None, None])]
        ),
    }
    program = compiled(
        [node("If", ["chosen"], ["y"], **branches)],
        [value("chosen", [], BOOL), value("x", [1, 2, 5, 7])],
        [value("y", [1, 2, None, None])],
    )
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    equal(program(np.array(True), x), _pooled(op, x))
    equal(program(np.array(False), x), _pooled(op, -x))


@pytest.mark.parametrize("op", _POOLS)
def test_bodies_have_no_window_in_the_padding(op: str) -> None:
    body = graph_of(
        [
            _pool(op, "x", "pooled"),
            node("Add", ["x", "x"], ["next"]),
            node("Identity", ["going"], ["still"]),
        ],
        [value("i", [], INT64), value("going", [], BOOL), value("x", [1, 2, 5, 7])],
        [value("still", [], BOOL), value("next", [1, 2, 5, 7]), value("pooled", [1, 2, None, None])],
    )
    program = compiled(
        [node("Loop", ["count", "", "x0"], ["last", "y"], body=body)],
        [value("x0", [1, 2, 5, 7])],
        [value("y", [3, 1, 2, None, None])],
        {"count": np.int64(3)},
    )
    x = np.random.default_rng(1).standard_normal((1, 2, 5, 7)).astype(np.float32)
    equal(program(x), np.stack([_pooled(op, x * factor) for factor in (1, 2, 4)]))
