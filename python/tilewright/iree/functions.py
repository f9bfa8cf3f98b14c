"""Functions in a model, and ops that ONNX defines by other ops, spelled out where IREE's importer does not know them.

Of the losses it knows some: not those of more than one number for each sample, and it takes means over weights wrongly.
"""

from __future__ import annotations

import onnx
from onnx import helper, inliner

_UNKNOWN = [
    "AffineGrid",
    "Attention",
    "NegativeLogLikelihoodLoss",
    "RMSNormalization",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
]


def inline_functions(model: onnx.ModelProto) -> None:
    """The functions that a model brings along, in place; types need not be known."""
    if model.functions:
        model.CopyFrom(inliner.inline_local_functions(model, convert_version=True))
        _name_nodes(model)


def spell_out_functions(model: onnx.ModelProto) -> bool:
    """Rewrites a model whose types are inferred, in place; whether there was anything to rewrite."""
    if not any(node.op_type in _UNKNOWN and node.domain in ("", "ai.onnx") for node in model.graph.node):
        return False
    # The inliner knows no types of weights but those that are declared.
    declared = {value.name for value in [*model.graph.input, *model.graph.value_info]}
    model.graph.value_info.extend(
        helper.make_tensor_value_info(t.name, t.data_type, t.dims)
        for t in model.graph.initializer
        if t.name not in declared
    )
    chosen = [("", name) for name in _UNKNOWN]
    model.CopyFrom(inliner.inline_selected_functions(model, chosen, inline_schema_functions=True))
    _name_nodes(model)
    return True


def _name_nodes(model: onnx.ModelProto) -> None:
    """Names become locations; those inside a definition have none."""
    for node in model.graph.node:
        node.name = node.name or next(filter(None, node.output), node.op_type)
