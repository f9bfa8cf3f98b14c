"""Matmuls in Triton as in its tutorial: tiles of the result, blocks grouped for the L2, and a few tuned tile shapes.

Only workloads that are one matmul of two matrices run here. Sums are in f32, and f32 is multiplied in f32, as in all
other systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from onnx import numpy_helper

from benchmarks.gpu_check.case import Case
from benchmarks.gpu_check.through_torch import TorchEager, TorchProgram, inputs_of
from benchmarks.peers import UnsupportedError
from benchmarks.peers.onnx_to_torch import to_tensor

_GROUP = 8
_SHAPES = (
    (128, 256, 64, 3, 8), (128, 128, 64, 3, 8), (128, 128, 32, 4, 4), (64, 128, 64, 4, 4),
    (64, 64, 64, 4, 4), (16, 128, 128, 4, 4), (16, 64, 128, 4, 4), (16, 32, 128, 5, 4),
)  # fmt: skip
"""M, N and K of a tile, number of stages, number of warps."""


@triton.autotune(
    configs=[
        triton.Config({"ROWS": rows, "COLUMNS": columns, "TERMS": terms}, num_stages=stages, num_warps=warps)
        for rows, columns, terms, stages, warps in _SHAPES
    ],
    key=["m", "n", "k"],
)
@triton.jit
def _multiply(  # noqa: ANN202 - Triton interprets annotations
    a, b, c, m, n, k,  # noqa: ANN001
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, TERMS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    row_blocks, column_blocks = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    first = block // (GROUP * column_blocks) * GROUP
    height = min(row_blocks - first, GROUP)
    within = block % (GROUP * column_blocks)
    rows = (first + within % height) * ROWS + tl.arange(0, ROWS)
    columns = within // height * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, k, TERMS):
        terms = start + tl.arange(0, TERMS)
        left = tl.load(
            a + rows[:, None] * k + terms[None, :], (rows[:, None] < m) & (terms[None, :] < k), 0.0
        )
        right = tl.load(
            b + terms[:, None] * n + columns[None, :], (terms[:, None] < k) & (columns[None, :] < n), 0.0
        )
        sums = tl.dot(left, right, sums, input_precision="ieee")
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(c.dtype.element_ty), inside)


class TritonMatmul(TorchEager):
    """System that runs matmuls in Triton."""

    def versions(self) -> dict[str, Any]:
        """Returns the versions of Triton and PyTorch."""
        return {**super().versions(), "triton": triton.__version__}

    def prepare(self, case: Case) -> TorchProgram:
        """Prepares the matmul; the first call tries the tile shapes."""
        return TorchProgram(_to_function(case), inputs_of(case))


def _to_function(case: Case) -> Callable[..., tuple[torch.Tensor]]:
    graph = case.model.graph
    if [node.op_type for node in graph.node] != ["MatMul"]:
        raise UnsupportedError("it is more than one matmul")
    constants = {t.name: to_tensor(numpy_helper.to_array(t)).cuda() for t in graph.initializer}
    names = [value.name for value in graph.input if value.name not in constants]

    def call(*inputs: torch.Tensor) -> tuple[torch.Tensor]:
        known = {**constants, **dict(zip(names, inputs, strict=True))}
        a, b = (known[name].contiguous() for name in graph.node[0].input)
        if a.ndim != 2 or b.ndim != 2:
            raise UnsupportedError("it is a batch of matmuls")
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty((m, n), dtype=a.dtype, device=a.device)

        def blocks(shape: Any) -> tuple[int]:
            return (triton.cdiv(m, shape["ROWS"]) * triton.cdiv(n, shape["COLUMNS"]),)

        _multiply[blocks](a, b, c, m, n, k, GROUP=_GROUP)
        return (c,)

    return call
