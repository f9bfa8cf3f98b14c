"""NonMaxSuppression as a Scan over the boxes of all classes, those with the best scores first.

The state says which boxes are kept. A box is kept if its score is above the threshold, if no kept box overlaps it by
more than the threshold, and if its class has not as many already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tilewright.frontends.rewrites.rule import Operation, Rule

_FLOAT = TensorProto.FLOAT
_DTYPE = np.dtype(np.float32)
_FIRST_OPSET = 13


class _Maker:
    """Nodes of the body of the Scan."""

    def __init__(self, name: str, prefix: str) -> None:
        self.nodes: list[NodeProto] = []
        self._name, self._prefix = name, prefix

    def make(self, op: str, *inputs: str, **attributes: Any) -> str:
        result = f"{self._prefix}.{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [result], name=self._name, **attributes))
        return result

    def constant(self, value: np.ndarray[Any, Any]) -> str:
        return self.make("Constant", value=numpy_helper.from_array(value))


def _suppress(operation: Operation) -> bool:
    if operation.opset < _FIRST_OPSET:
        operation.refuse(f"of opset {operation.opset} is not supported", hint="export it in a newer opset")
    boxes, scores = operation.static_shape(0), operation.static_shape(1)
    batch, classes, count = scores
    make = operation.make
    limits = [
        make("Cast", operation.inputs[2], to=_FLOAT) if operation.has(2) else operation.number(0, _DTYPE),
        operation.inputs[3] if operation.has(3) else operation.number(0, _DTYPE),
    ]
    most, overlap = (operation.reshape(limit, [1, 1, 1]) for limit in limits)
    if not boxes[1]:
        return operation.give(operation.constant(np.zeros((0, 3), np.int64)))
    sorted_scores, order = operation.make_many(
        "TopK", operation.inputs[1], operation.ints(count), count=2, axis=2, largest=1, sorted=1
    )
    corners = _corners(operation)  # 4 of [batch, 1, boxes]
    shape = operation.ints(batch, classes, count)
    parts = [
        make("GatherElements", make("Expand", corner, shape), order, axis=2) for corner in corners
    ]  # of [batch, classes, boxes]
    if operation.has(4):
        least = operation.reshape(operation.inputs[4], [1, 1, 1])
        valid = make("Cast", make("Greater", sorted_scores, least), to=_FLOAT)
    else:
        valid = operation.constant(np.ones((batch, classes, count), np.float32))
    scanned = [
        operation.transpose(make("Unsqueeze", part, operation.ints(3)), [2, 0, 1, 3]) for part in parts
    ]
    scanned.append(operation.transpose(make("Unsqueeze", valid, operation.ints(3)), [2, 0, 1, 3]))
    scanned.append(operation.constant(np.eye(count, dtype=np.float32).reshape(count, 1, 1, count)))
    body = _body(operation, parts, most, overlap, shape=(batch, classes, count))
    start = operation.constant(np.zeros((batch, classes, count), np.float32))
    kept = make("Scan", start, *scanned, body=body, num_scan_inputs=len(scanned))
    places = make("NonZero", make("Cast", kept, to=TensorProto.BOOL))
    triples = operation.transpose(places, [1, 0])  # [selected, 3]: batch, class, place in the order of scores
    box = make("Unsqueeze", make("GatherND", order, triples), operation.ints(1))
    return operation.give_declared(make("Concat", operation.slice(triples, 1, 0, 2), box, axis=1))


def _corners(operation: Operation) -> list[str]:
    """Makes the smaller and larger coordinates of every box along both dims: y1, x1, y2, x2."""
    make = operation.make
    turned = operation.transpose(operation.inputs[0], [0, 2, 1])
    given = [operation.slice(turned, 1, at, at + 1) for at in range(4)]
    if operation.attribute("center_point_box", 0):
        x, y, width, height = given
        half = operation.number(0.5, _DTYPE)
        halves = [make("Mul", size, half) for size in (height, width)]
        low = [make("Sub", centre, size) for centre, size in zip((y, x), halves, strict=True)]
        high = [make("Add", centre, size) for centre, size in zip((y, x), halves, strict=True)]
        return [*low, *high]
    first, second = given[:2], given[2:]
    low = [make("Min", a, b) for a, b in zip(first, second, strict=True)]
    high = [make("Max", a, b) for a, b in zip(first, second, strict=True)]
    return [*low, *high]


def _body(
    operation: Operation, parts: list[str], most: str, overlap: str, *, shape: tuple[int, int, int]
) -> Any:
    """Makes the step for one place in the order of scores: [batch, classes, 1] of a box, and the place as a row of
    zeros and a one."""
    prefix = f"{operation.outputs[0]}.step"
    b = _Maker(operation.name, prefix)
    make = b.make
    kept, *box, valid, place = (
        f"{prefix}.{name}" for name in ("kept", "y1", "x1", "y2", "x2", "valid", "place")
    )
    zero = b.constant(np.zeros((), np.float32))

    def area(y1: str, x1: str, y2: str, x2: str) -> str:
        return make("Mul", make("Sub", y2, y1), make("Sub", x2, x1))

    low = [make("Max", own, other) for own, other in zip(box[:2], parts[:2], strict=True)]
    high = [make("Min", own, other) for own, other in zip(box[2:], parts[2:], strict=True)]
    sides = [make("Max", make("Sub", h, o), zero) for h, o in zip(high, low, strict=True)]
    both = make("Mul", *sides)
    union = make("Sub", make("Add", area(*box), area(*parts)), both)
    # Boxes without an area overlap nothing.
    is_near = make("And", make("Greater", both, zero), make("Greater", make("Div", both, union), overlap))
    hits = make("Mul", kept, make("Cast", is_near, to=_FLOAT))
    last = b.constant(np.array([2]))
    hit = make("ReduceMax", hits, last) if operation.opset >= 18 else make("ReduceMax", hits, axes=[2])
    held = make("ReduceSum", kept, last)
    is_free = make("And", make("Equal", hit, zero), make("Less", held, most))
    chosen = make("Mul", make("Cast", is_free, to=_FLOAT), valid)
    after = make("Add", kept, make("Mul", chosen, place))
    batch, classes, count = shape
    inputs = [
        helper.make_tensor_value_info(kept, _FLOAT, shape),
        *(helper.make_tensor_value_info(name, _FLOAT, [batch, classes, 1]) for name in (*box, valid)),
        helper.make_tensor_value_info(place, _FLOAT, [1, 1, count]),
    ]
    outputs = [helper.make_tensor_value_info(after, _FLOAT, shape)]
    return helper.make_graph(b.nodes, prefix, inputs, outputs)


RULES = (Rule("NonMaxSuppression", _suppress, "IREE's importer supports some forms only"),)
