"""Recurrent operators, control flow and signals."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto, helper, numpy_helper

from benchmarks.workloads.operators.model import ELEMENTS, NUMPY_TYPES, OpModel

_UNARY = {"bool": "Not", "u8": "Identity"}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recur(m: OpModel) -> None:
    """Adds recurrent operators in all directions, with biases, lengths and states."""
    steps, batch, features, hidden = 5, 3, 7, 4
    x = m.input(steps, batch, features)
    lengths = m.constant(np.array([5, 2, 4], np.int32))
    for op, gates in _GATES.items():
        for direction in ("forward", "reverse", "bidirectional"):
            count = 2 if direction == "bidirectional" else 1
            rows = gates * hidden
            operands = [x, m.weights(count, rows, features), m.weights(count, rows, hidden)]
            operands += [m.weights(count, 2 * rows), lengths, m.weights(count, batch, hidden)]
            attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
            if op == "GRU":
                attributes["linear_before_reset"] = int(direction == "reverse")
            m.check(op, *operands, results=3 if op == "LSTM" else 2, **attributes)


def branch(m: OpModel) -> None:
    """Adds an If, a Loop that ends early and a Scan that runs backwards."""
    x = m.input(3, 7)
    element = ELEMENTS[m.dtype]
    if m.takes("If"):
        branches = [
            _graph(m, tag, op, x) for tag, op in (("then", "Identity"), ("else", _UNARY.get(m.dtype, "Neg")))
        ]
        condition = m.input(dtype="bool", name="condition")
        m.check("If", condition, shape=(3, 7), then_branch=branches[0], else_branch=branches[1])
    if m.takes("Loop"):
        start = (m.number(4, "i64"), m.constant(np.array(True)), m.numbers(3, 7))
        m.check("Loop", *start, shape=(3, 7), body=_loop(m, x, element))
    if m.takes("Scan"):
        m.check(
            *("Scan", m.numbers(7), x),
            results=2,
            body=_scan(m, element),
            num_scan_inputs=1,
            scan_input_directions=[1],
        )


def _graph(m: OpModel, tag: str, op: str, x: str) -> GraphProto:
    value = helper.make_tensor_value_info(f"{tag}_y", ELEMENTS[m.dtype], [3, 7])
    return helper.make_graph([helper.make_node(op, [x], [f"{tag}_y"])], tag, [], [value])


def _loop(m: OpModel, x: str, element: int) -> GraphProto:
    half, two = np.array(0.5 if m.is_float else 1, NUMPY_TYPES[m.dtype]), np.array(2, np.int64)
    nodes = [
        helper.make_node("Constant", [], ["loop_half"], value=numpy_helper.from_array(half)),
        helper.make_node("Constant", [], ["loop_two"], value=numpy_helper.from_array(two)),
        helper.make_node("Less", ["loop_i", "loop_two"], ["loop_more"]),
        helper.make_node("And" if m.dtype == "bool" else "Mul", ["loop_s", "loop_half"], ["loop_m"]),
        helper.make_node("Xor" if m.dtype == "bool" else "Add", ["loop_m", x], ["loop_y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("loop_i", TensorProto.INT64, []),
        helper.make_tensor_value_info("loop_go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("loop_s", element, [3, 7]),
    ]
    outputs = [
        helper.make_tensor_value_info("loop_more", TensorProto.BOOL, []),
        helper.make_tensor_value_info("loop_y", element, [3, 7]),
    ]
    return helper.make_graph(nodes, "loop", inputs, outputs)


def _scan(m: OpModel, element: int) -> GraphProto:
    nodes = [
        helper.make_node("Xor" if m.dtype == "bool" else "Add", ["scan_s", "scan_e"], ["scan_n"]),
        helper.make_node("Or" if m.dtype == "bool" else "Max", ["scan_n", "scan_e"], ["scan_y"]),
    ]
    values = [helper.make_tensor_value_info(f"scan_{name}", element, [7]) for name in "seny"]
    return helper.make_graph(nodes, "scan", values[:2], values[2:])


def signal(m: OpModel) -> None:
    """Adds Fourier transforms and windows."""
    x = m.input(2, 16, 1)
    m.check("DFT", x, "", m.number(1, "i64"))
    m.check("DFT", m.input(2, 16, 2), "", m.number(1, "i64"), inverse=1)
    m.check("DFT", x, "", m.number(1, "i64"), onesided=1)
