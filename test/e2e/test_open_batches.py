"""Rules of ops on images and signals hold for a batch of unknown size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import tilewright
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from tilewright.reference.oracle import Array, run_double_onnx, widen, widen_array

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=8)]


@dataclass(frozen=True)
class _Case:
    """An op on a batch of samples."""

    node: NodeProto
    samples: dict[str, tuple[int, ...]]
    """Shapes of the inputs behind the batch."""
    constants: dict[str, Array] = field(default_factory=dict)
    opset: int = 20
    results: tuple[int, ...] = (TensorProto.FLOAT,)


def _node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"the_{op}", **attributes)


def _weights(*shape: int) -> Array:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


_TURNED = {"w": _weights(4, 2, 3, 2)}
_CASES = {
    "convtranspose-groups": _Case(
        _node("ConvTranspose", "x w", group=2, strides=[2, 3]), {"x": (4, 5, 3)}, _TURNED
    ),
    "convtranspose-same": _Case(
        _node("ConvTranspose", "x w", auto_pad="SAME_UPPER", strides=[2, 2]), {"x": (4, 5, 3)}, _TURNED
    ),
    "maxpool-one-window": _Case(
        _node("MaxPool", "x", kernel_shape=[3, 2], pads=[0, 1, 0, 1], strides=[1, 3]), {"x": (2, 7, 2)}
    ),
    "maxpool-one-window-without-padding": _Case(
        _node("MaxPool", "x", kernel_shape=[3], strides=[3]), {"x": (2, 5)}
    ),
    "maxpool-uneven": _Case(
        _node("MaxPool", "x", kernel_shape=[3, 3], pads=[0, 0, 1, 1], strides=[2, 2]), {"x": (2, 7, 8)}
    ),
    "averagepool-one-window": _Case(
        _node("AveragePool", "x", kernel_shape=[3, 2], pads=[0, 1, 0, 1], strides=[1, 3]), {"x": (2, 7, 2)}
    ),
    "conv-one-window": _Case(
        _node("Conv", "x w", pads=[1, 1, 1, 1], strides=[7, 7]), {"x": (2, 9, 8)}, {"w": _weights(3, 2, 3, 3)}
    ),
    "dft": _Case(_node("DFT", "x", axis=1), {"x": (7, 1)}, opset=19),
    "dft-inverse": _Case(_node("DFT", "x", axis=1, inverse=1), {"x": (6, 2)}, opset=19),
    "lppool": _Case(
        _node("LpPool", "x", kernel_shape=[3, 2], auto_pad="SAME_UPPER", strides=[2, 1]), {"x": (3, 7, 5)}
    ),
    **{
        f"{op.lower()}-ceil-in-padding": _Case(
            _node(op, "x", kernel_shape=[2, 2], strides=[3, 3], pads=[0, 0, 1, 1], ceil_mode=1),
            {"x": (2, 6, 7)},
        )
        for op in ("AveragePool", "MaxPool", "LpPool")
    },
    "lppool-one-window": _Case(_node("LpPool", "x", kernel_shape=[3, 2], strides=[3, 3]), {"x": (2, 4, 3)}),
    "depthtospace": _Case(_node("DepthToSpace", "x", blocksize=2, mode="CRD"), {"x": (12, 3, 2)}),
    "dropout": _Case(
        _node("Dropout", "x", "y mask"), {"x": (3, 2)}, results=(TensorProto.FLOAT, TensorProto.BOOL)
    ),
    "pad-reflect": _Case(
        _node("Pad", "x pads", mode="reflect"), {"x": (4, 5)}, {"pads": np.array([0, 1, 2, 0, 3, 1])}
    ),
    "pad-wrap": _Case(
        _node("Pad", "x pads", mode="wrap"), {"x": (4, 5)}, {"pads": np.array([0, 1, 2, 0, 3, 1])}
    ),
    "gridsample": _Case(
        _node("GridSample", "x grid", mode="nearest", padding_mode="reflection"),
        {"x": (2, 5, 4), "grid": (3, 2, 2)},
    ),
    "col2im": _Case(
        _node("Col2Im", "x image block"),
        {"x": (8, 12)},
        {"image": np.array([4, 5]), "block": np.array([2, 2])},
    ),
}


def _model(case: _Case, batch: str | int) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, *sample])
        for name, sample in case.samples.items()
    ]
    outputs = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(case.node.output, case.results, strict=True)
    ]
    constants = [numpy_helper.from_array(value, name) for name, value in case.constants.items()]
    graph = helper.make_graph([case.node], "batch", inputs, outputs, constants)
    opset = helper.make_opsetid("", case.opset)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9)


@pytest.mark.parametrize("name", _CASES)
def test_an_op_is_right_for_a_batch_of_any_size(name: str) -> None:
    case = _CASES[name]
    program = tilewright.compile(_model(case, "batch"), threads=1)
    for batch in (3, 1):
        arrays = [_weights(batch, *sample) for sample in case.samples.values()]
        expected = run_double_onnx(widen(_model(case, batch)), [widen_array(array) for array in arrays])
        for y, y64 in zip(program(*arrays), expected, strict=True):
            np.testing.assert_allclose(y, y64, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["convtranspose-same", "dft", "lppool", "depthtospace", "pad-reflect", "gridsample"]
)
def test_an_image_of_unknown_size_is_refused_with_what_helps(name: str) -> None:
    model = _model(_CASES[name], "batch")
    model.graph.input[0].type.tensor_type.shape.dim[-2].dim_param = "rows"
    if name == "dft":
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "rows"
    with pytest.raises(tilewright.ModelError, match=r"the_.*dims="):
        tilewright.compile(model, threads=1)
    tilewright.compile(model, threads=1, dims={"batch": 2, "rows": _CASES[name].samples["x"][-2]})
