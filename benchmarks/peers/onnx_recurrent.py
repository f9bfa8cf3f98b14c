"""Stacks of ONNX's LSTM or GRU layers as one module of PyTorch, which cuDNN runs as a whole on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from onnx import ModelProto, NodeProto, helper, numpy_helper
from torch import nn

from benchmarks.peers import Array, UnsupportedError

_MOVING = {"Reshape", "Transpose", "Squeeze"}
_MODULES: dict[str, Any] = {"LSTM": nn.LSTM, "GRU": nn.GRU}
_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
"""Positions in ONNX of PyTorch's gates: ONNX has iofc and zrh, PyTorch ifgo and rzn."""


class RecurrentStack(nn.Module):
    """Layers of one kind and size over a sequence [steps, batch, features]; returns the outputs of the last layer."""

    def __init__(self, layers: nn.RNNBase) -> None:
        super().__init__()
        self._layers = layers

    def forward(self, sequence: torch.Tensor) -> tuple[torch.Tensor]:
        """Runs the stack; states begin with zeros."""
        return (self._layers(sequence)[0],)


def stack_of(model: ModelProto) -> RecurrentStack | None:
    """Returns the model as a stack of layers, or None if it is something else.

    Raises `UnsupportedError` for layers that PyTorch has in another form only.
    """
    layers = [node for node in model.graph.node if node.op_type in _MODULES]
    kinds = {node.op_type for node in layers}
    others = {node.op_type for node in model.graph.node} - kinds - _MOVING
    if len(kinds) != 1 or others:
        return None
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    (kind,) = kinds
    first = constants[layers[0].input[1]]
    directions, _, features = first.shape
    stack = _MODULES[kind](
        features, _hidden(layers[0]), num_layers=len(layers), bidirectional=directions == 2
    )
    for number, node in enumerate(layers):
        _check(node)
        for direction in range(directions):
            suffix = f"l{number}" + ("_reverse" if direction else "")
            for name, array in _parameters(node, constants, direction).items():
                getattr(stack, f"{name}_{suffix}").data = torch.from_numpy(array)
    return RecurrentStack(stack.requires_grad_(False))


def _check(node: NodeProto) -> None:
    if len(node.input) > 4 and any(node.input[4:]):
        raise UnsupportedError("the translation to torch lacks lengths and initial states of sequences")
    if node.op_type == "GRU" and not _attribute(node, "linear_before_reset", 0):
        raise UnsupportedError("PyTorch has no GRU that resets before it multiplies")


def _parameters(node: NodeProto, constants: dict[str, Array], direction: int) -> dict[str, Array]:
    gates, hidden = _GATES[node.op_type], _hidden(node)

    def ordered(rows: Array) -> Array:
        return np.ascontiguousarray(np.concatenate([rows[g * hidden : (g + 1) * hidden] for g in gates]))

    bias = constants[node.input[3]][direction]
    half = len(gates) * hidden
    return {
        "weight_ih": ordered(constants[node.input[1]][direction]),
        "weight_hh": ordered(constants[node.input[2]][direction]),
        "bias_ih": ordered(bias[:half]),
        "bias_hh": ordered(bias[half:]),
    }


def _hidden(node: NodeProto) -> int:
    return int(_attribute(node, "hidden_size", 0))


def _attribute(node: NodeProto, name: str, default: Any) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
