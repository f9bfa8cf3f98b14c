"""Functions in a model, and ops that ONNX defines by other ops, spelled out where IREE's importer does not know them.

Of the losses it knows some: not those of more than one number for each sample, and it takes means over weights wrongly.
"""

from __future__ import annotations

import onnx
from onnx import defs, helper, inliner

_UNKNOWN = [
    "AffineGrid",
    "Attention",
    "CausalConvWithState",
    "NegativeLogLikelihoodLoss",
    "RMSNormalization",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
    "SwiGLU",
    "Swish",
]


def inline_functions(model: onnx.ModelProto) -> None:
    """The functions that a model brings along, in place; types need not be known."""
    if model.functions:
        model.CopyFrom(inliner.inline_local_functions(model, convert_version=True))
        _name_nodes(model)


def spell_out_functions(model: onnx.ModelProto) -> bool:
    """Rewrites a model whose types are inferred, in place; whether there was anything to rewrite."""
    unknown = [
        node for node in model.graph.node if node.op_type in _UNKNOWN and node.domain in ("", "ai.onnx")
    ]
    if not unknown:
        return False
    for node in unknown:
        _give_defaults(node, max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")))
    # The inliner knows no types of weights but those that are declared.
    declared = {value.name for value in [*model.graph.input, *model.graph.value_info]}
    model.graph.value_info.extend(
        helper.make_tensor_value_info(t.name, t.data_type, t.dims)
        for t in model.graph.initializer
        if t.name not in declared
    )
    # Nor of an input that is left out before one that is there.
    model.graph.value_info.append(helper.make_tensor_value_info("", onnx.TensorProto.UNDEFINED, None))
    chosen = [("", name) for name in _UNKNOWN]
    model.CopyFrom(inliner.inline_selected_functions(model, chosen, inline_schema_functions=True))
    _name_nodes(model)
    return True


def _give_defaults(node: onnx.NodeProto, opset: int) -> None:
    """To the attributes that are left out, which the inliner leaves without a value."""
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in defs.get_schema(node.op_type, opset, "").attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _name_nodes(model: onnx.ModelProto) -> None:
    """Names become locations; those inside a definition have none."""
    for node in model.graph.node:
        node.name = node.name or next(filter(None, node.output), node.op_type)
