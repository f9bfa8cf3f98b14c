"""Models with weights for tests of the ONNX front end."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from conftest import make_model, value
from onnx import helper
from tilewright.frontends.weights import MINIMUM_PARAMETER_ELEMENTS

Array = np.ndarray[Any, Any]


SIZE = MINIMUM_PARAMETER_ELEMENTS + 1


def large_weight() -> Array:
    """Returns a weight that is large enough to become a parameter."""
    return np.random.default_rng(3).standard_normal(SIZE).astype(np.float32)


def adding(initializers: dict[str, Array]) -> onnx.ModelProto:
    """Returns a model that adds every initializer to x."""
    nodes, last = [], "x"
    for number, name in enumerate(initializers):
        nodes.append(helper.make_node("Add", [last, name], [f"sum{number}"]))
        last = f"sum{number}"
    return make_model(nodes, [value("x", [SIZE])], [value(last, [SIZE])], initializers)
