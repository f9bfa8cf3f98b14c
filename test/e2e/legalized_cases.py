"""Ops in models of their own, compared with the reference of their rule: numpy, or ONNX's evaluator.

Cases of one kind are one model, because each module has a fixed cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tilewright
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray[Any, Any]


OPSET = 21


def value(name: str, array: Array) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [value(name, array) for name, array in inputs.items()],
        [value(name, array) for name, array in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def check(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    *,
    rtol: float = 0.0,
) -> None:
    model = model_of(nodes, inputs, expected, constants)
    results = tilewright.compile(model, threads=1)(*inputs.values())
    for (name, wanted), y in zip(expected.items(), results, strict=True):
        assert y.dtype == wanted.dtype, name
        if wanted.dtype.kind in "iub":
            np.testing.assert_array_equal(y, wanted, err_msg=name)
        else:
            np.testing.assert_allclose(
                y.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=rtol, err_msg=name
            )


def evaluated(
    nodes: Sequence[NodeProto], inputs: Mapping[str, Array], constants: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Returns what ONNX's evaluator computes; outputs of all nodes are results."""
    names = [name for node in nodes for name in node.output]
    model = model_of(nodes, inputs, {name: np.zeros(()) for name in names}, constants)
    with np.errstate(all="ignore"):
        results = ReferenceEvaluator(model).run(None, dict(inputs))
    return dict(zip(names, (np.asarray(result) for result in results), strict=True))
