"""Rewrites of f16 and bf16 ops that sum, so that they are computed in f32 and rounded once.

ONNX defines the result of such an op and names no type for intermediate values. IREE's importer keeps sums and squares
in the type of the operands: a mean of 1024 numbers near 100 is infinite in f16, because the sum is rounded before it
is divided, and a sum of ones in bf16 stops at 256. Values that the model itself has between a sum and a division stay
as they are: a ReduceSum before a Div is rounded.
"""

from __future__ import annotations

import onnx
from onnx import NodeProto, TensorProto, helper

from tilewright.frontends.rewrites.graph import Scope, replace_nodes
from tilewright.frontends.rewrites.rule import Types

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)

_SUMMING = frozenset(
    {
        "AveragePool",
        "CumSum",
        "GlobalAveragePool",
        "GlobalLpPool",
        "LRN",
        "LogSoftmax",
        "LpNormalization",
        "LpPool",
        "Mean",
        "MeanVarianceNormalization",
        "Mod",
        "NegativeLogLikelihoodLoss",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMean",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
        "SoftmaxCrossEntropyLoss",
        "Sum",
    }
)
"""Ops of which IREE keeps sums in the type of the operands; those of Mod are x - y * trunc(x / y). It accumulates
Softmax, LayerNormalization, InstanceNormalization, BatchNormalization, matmuls and convolutions in f32."""


def sum_in_f32(model: onnx.ModelProto) -> bool:
    """Rewrites a model whose types have been inferred, in place; returns True if the model changed."""

    def replace(node: NodeProto, scope: Scope) -> list[NodeProto] | None:
        return _in_f32(node, scope.types) if _is_narrow_sum(node, scope.types) else None

    return replace_nodes(model.graph, replace)


def _is_narrow_sum(node: NodeProto, types: Types) -> bool:
    is_summing = node.op_type in _SUMMING or _sums_between(node)
    return node.domain in ("", "ai.onnx") and is_summing and types.get(node.input[0]) in _NARROW


def _sums_between(node: NodeProto) -> bool:
    """Returns True if an op sums something besides its contraction, before its last step."""
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type == "BatchNormalization":
        return bool(attributes.get("training_mode"))
    if node.op_type == "Gemm":
        return bool(attributes.get("alpha", 1.0) != 1.0)
    if node.op_type == "Resize":  # IREE refuses a Resize of f16 whose scales are f32, as ONNX's are
        return bool(attributes.get("mode", b"nearest") != b"nearest")
    if node.op_type == "Einsum":
        return not _is_one_contraction(attributes["equation"].decode(), len(node.input))
    return False


def _is_one_contraction(equation: str, operands: int) -> bool:
    """Returns True if every label of two operands also occurs in the other operand or the result, so that a matmul
    computes the whole einsum."""
    reads, _, result = equation.replace(" ", "").partition("->")
    if operands != 2:
        return False
    left, right = (set(labels) for labels in reads.split(","))
    return not result or not (left ^ right) - set(result)


def _in_f32(node: NodeProto, types: Types) -> list[NodeProto]:
    """Puts the op between casts of its narrow operands and results."""
    before, after = [], []
    wide = NodeProto()
    wide.CopyFrom(node)
    for index, operand in enumerate(node.input):
        if types.get(operand) in _NARROW:
            wide.input[index] = f"{node.output[0]}.operand_{index}_in_f32"
            before.append(_cast(node, operand, wide.input[index], TensorProto.FLOAT))
    for index, result in enumerate(node.output):
        # The mean and deviation of a LayerNormalization may have another type than its first result.
        kind = types.get(result, types[node.input[0]] if index == 0 else TensorProto.UNDEFINED)
        if result and kind in _NARROW:
            wide.output[index] = f"{result}.in_f32"
            after.append(_cast(node, wide.output[index], result, kind))
    return [*before, wide, *after]


def _cast(node: NodeProto, value: str, result: str, kind: int) -> NodeProto:
    return helper.make_node("Cast", [value], [result], name=node.name, to=kind)
