"""A chain of ops that tests of `tilewright check` compile and cut."""

from __future__ import annotations

import numpy as np
import onnx
from conftest import make_model, value
from onnx import helper

RNG = np.random.default_rng(0)


WEIGHTS = {
    "w": RNG.standard_normal((12, 20)).astype(np.float32),
    "b": RNG.standard_normal(20).astype(np.float32),
}


def chain() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="product"),
        helper.make_node("Tanh", ["m"], ["t"], name="bend"),
        helper.make_node("Add", ["t", "b"], ["a"], name="shift"),
        helper.make_node("Exp", ["a"], ["e"], name="grow"),
        helper.make_node("Softmax", ["e"], ["y"], name="share"),
    ]
    return make_model(nodes, [value("x", [7, 12])], [value("y", [7, 20])], WEIGHTS)
