"""Initializers of ONNX models that are inputs, too: defaults, which callers may override.

Before IR version 4, every initializer had to be an input, so there it says nothing and they are constants, as in ONNX
Runtime. Since version 4 it means that a caller may give another value. Integers and booleans stay constants even then,
because they are shapes, axes and indices, which a compiler must know.
"""

from __future__ import annotations

import onnx
from onnx import TensorProto

_FIRST_IR_VERSION = 4
"""First IR version in which initializers need not be inputs."""

_INTEGERS = frozenset(
    (
        *(getattr(TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)),
        TensorProto.BOOL,
        TensorProto.STRING,
    )
)


def overridable(model: onnx.ModelProto) -> list[str]:
    """Returns the names of the initializers that callers may override, in the order of the inputs."""
    if model.ir_version < _FIRST_IR_VERSION:
        return []
    values = {tensor.name for tensor in model.graph.initializer if tensor.data_type not in _INTEGERS}
    return [value.name for value in model.graph.input if value.name in values]


def open_inputs(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    """Returns a model in which these initializers are inputs only, behind all others."""
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    graph = opened.graph
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in names]
    defaults = [
        onnx.helper.make_tensor_value_info(name, initializers[name].data_type, list(initializers[name].dims))
        for name in names
    ]
    kept = [tensor for tensor in graph.initializer if tensor.name not in names]
    for field, values in ((graph.input, [*inputs, *defaults]), (graph.initializer, kept)):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        del field[:]
        field.extend(copies)
    return opened
