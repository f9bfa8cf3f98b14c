"""Quantised tensors and the arithmetic of ONNX's evaluators, for tests of quantised models."""

from __future__ import annotations

import functools

import numpy as np
import tilewright
from one_graph import one_graph

Array = np.ndarray


Numbers = dict[str, Array]


model_of = functools.partial(one_graph, opset=19)


ULP = 2.0**-24


def kernels_of_bytes(program: tilewright.Program) -> list[str]:
    names = [op.micro_kernel or "" for kernel in program.kernels for op in kernel.ops]
    return [name for name in names if name.startswith(("vpdpbusd", "pmaddwd", "amx_int8"))]


def check_ours(program: tilewright.Program, products: int = 1) -> None:
    left = [op for op in program.metadata.report.left_to_iree if op.is_dispatch]
    assert not left, left
    assert len(kernels_of_bytes(program)) == products, program.explain()
