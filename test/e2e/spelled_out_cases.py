"""Ops in models of their own, compared with ONNX's evaluator."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import tilewright
from one_graph import Array, one_graph
from onnx import NodeProto, TensorProto
from onnx.reference import ReferenceEvaluator

OPSET = 23


def run_beside_onnx(
    node: NodeProto, inputs: Mapping[str, Array], constants: Mapping[str, Array] | None = None
) -> tilewright.Program:
    """Compares the only result, and returns the compiled program."""
    constants = constants or {}
    (expected,) = ReferenceEvaluator(node, opsets={"": OPSET}).run(None, {**inputs, **constants})
    model = one_graph([node], inputs, constants, (TensorProto.FLOAT, expected.shape), opset=OPSET)
    program = tilewright.compile(model, threads=1)
    np.testing.assert_allclose(program(*inputs.values())[0], expected, rtol=1e-5, atol=1e-5)
    return program


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
