"""Scan of opset 8, which differs from later ones: all inputs and outputs begin with a batch dim, and the first input is
an optional tensor of sequence lengths.

A Scan over the batch takes its place, whose body is a Scan of opset 9 over the sequence. A model with such an op is
declared as one of opset 9, whose other ops mean the same. ONNX's own converter only supports batches of one.
"""

from __future__ import annotations

import onnx
from onnx import GraphProto, NodeProto, TypeProto, ValueInfoProto, helper

from tilewright.errors import ModelError

_CHANGED = ("BatchNormalization", "Upsample")
"""Other ops that opset 9 changed."""


def split_batches(model: onnx.ModelProto) -> None:
    """Rewrites a model of opset 8, in place; types need not be known. Raises `ModelError` for a Scan with sequence
    lengths."""
    versions = [o for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if max((o.version for o in versions), default=0) != 8 or not any(
        n.op_type == "Scan" for n in model.graph.node
    ):
        return
    changed = next((node for node in model.graph.node if node.op_type in _CHANGED), None)
    if changed is not None:
        raise ModelError(
            f"{changed.op_type} beside a Scan of opset 8 is not supported",
            where=f"'{changed.name}'",
            hint="export the model in opset 9 or later",
        )
    nodes = [_split(node) if node.op_type == "Scan" else node for node in model.graph.node]
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)
    for version in versions:
        version.version = 9


def _split(node: NodeProto) -> NodeProto:
    lengths, *inputs = node.input
    if lengths:
        raise ModelError(
            "a Scan of opset 8 with sequence lengths is not supported",
            where=f"'{node.name}'",
            hint="mask the steps behind the end of a sequence in the body",
        )
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    body, scanned = attributes["body"], attributes["num_scan_inputs"]
    directions = attributes.get("directions") or [0] * scanned
    prefix = f"{next(filter(None, node.output))}.sample"
    given = [f"{prefix}.{number}" for number in range(len(inputs))]
    results = [f"{prefix}.result_{number}" for number in range(len(node.output))]
    of_sample = helper.make_node(
        "Scan",
        given,
        results,
        name=node.name,
        body=body,
        num_scan_inputs=scanned,
        scan_input_directions=directions,
    )
    states = len(inputs) - scanned
    over_batch = GraphProto(
        name=prefix,
        node=[of_sample],
        input=[
            _whole(name, value, is_slice=number >= states)
            for number, (name, value) in enumerate(zip(given, body.input, strict=True))
        ],
        output=[
            _whole(name, value, is_slice=number >= states)
            for number, (name, value) in enumerate(zip(results, body.output, strict=True))
        ],
    )
    return helper.make_node(
        "Scan", inputs, list(node.output), name=node.name, body=over_batch, num_scan_inputs=len(inputs)
    )


def _whole(name: str, value: ValueInfoProto, *, is_slice: bool) -> ValueInfoProto:
    """Describes what belongs to a sample: a state, or what consists of slices."""
    kind = TypeProto()
    kind.CopyFrom(value.type)
    if is_slice and kind.tensor_type.HasField("shape"):
        dims = [onnx.TensorShapeProto.Dimension(), *kind.tensor_type.shape.dim]
        kind.tensor_type.shape.CopyFrom(onnx.TensorShapeProto(dim=dims))
    return ValueInfoProto(name=name, type=kind)
