"""Reduction of a failing model: drops outputs and nodes, cuts edges, and shrinks axes while the model fails alike.

The search is greedy with the largest steps first: it continues from each candidate that still fails, until none does
or the trials are used up. Only valid models are candidates.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, helper, numpy_helper

Fails = Callable[[ModelProto], bool]

_MAX_TRIALS = 150
_SMALLER = (1, 2, 3)


def shrink(model: ModelProto, fails: Fails, *, trials: int = _MAX_TRIALS) -> ModelProto:
    """Returns the smallest model found for which `fails` still holds."""
    progress = True
    while progress and trials > 0:
        progress = False
        for candidate in _candidates(model):
            if trials <= 0:
                break
            if not _is_smaller(candidate, model) or not _is_valid(candidate):
                continue
            trials -= 1
            if fails(candidate):
                model, progress = candidate, True
                break
    return model


def _candidates(model: ModelProto) -> Iterator[ModelProto]:
    """Yields reduced models, those with the largest reduction first."""
    inferred = onnx.shape_inference.infer_shapes(model)
    types = _types(inferred.graph)
    yield from _of_half_the_outputs(model)
    yield from _ending_early(model, types)
    yield from _beginning_late(model, types)
    yield from _without_one_node(model, types)
    yield from _of_smaller_axes(model)


def _types(graph: GraphProto) -> dict[str, onnx.ValueInfoProto]:
    return {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}


def _of_half_the_outputs(model: ModelProto) -> Iterator[ModelProto]:
    outputs = list(model.graph.output)
    size = len(outputs) // 2
    while size >= 1:
        for start in range(0, len(outputs), size):
            yield _rebuilt(model, outputs=outputs[start : start + size])
        size //= 2


def _ending_early(model: ModelProto, types: dict[str, onnx.ValueInfoProto]) -> Iterator[ModelProto]:
    """Yields models with one inner value as the only output."""
    for node in model.graph.node:
        if node.output[0] in types:
            yield _rebuilt(model, outputs=[types[node.output[0]]])


def _beginning_late(model: ModelProto, types: dict[str, onnx.ValueInfoProto]) -> Iterator[ModelProto]:
    """Yields models with one inner value as an input; nodes that only it needed are removed."""
    results = {value.name for value in model.graph.output}
    for node in reversed(model.graph.node):
        if node.output[0] in types and node.output[0] not in results:
            nodes = [other for other in model.graph.node if other is not node]
            yield _rebuilt(model, nodes=nodes, inputs=[*model.graph.input, types[node.output[0]]])


def _without_one_node(model: ModelProto, types: dict[str, onnx.ValueInfoProto]) -> Iterator[ModelProto]:
    """Yields models in which an operand of the same type replaces a node's result."""
    for node in model.graph.node:
        result = types.get(node.output[0])
        operands = [types[name] for name in node.input if name in types]
        alike = [value for value in operands if result is not None and value.type == result.type]
        if alike:
            yield _bypassed(model, node, alike[0].name)


def _bypassed(model: ModelProto, gone: onnx.NodeProto, operand: str) -> ModelProto:
    nodes = []
    for node in model.graph.node:
        if node is gone:
            continue
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [operand if name == gone.output[0] else name for name in node.input]
        nodes.append(copy)
    outputs = [value for value in model.graph.output if value.name != gone.output[0]]
    return _rebuilt(model, nodes=nodes, outputs=outputs)


def _of_smaller_axes(model: ModelProto) -> Iterator[ModelProto]:
    """Yields models with fewer elements along every axis of one size: of inputs, constants, and shapes that are
    constants."""
    inputs = [dim.dim_value for value in model.graph.input for dim in value.type.tensor_type.shape.dim]
    sizes = sorted({*inputs, *itertools.chain(*(tensor.dims for tensor in model.graph.initializer))})
    for size, smaller in itertools.product(reversed(sizes), _SMALLER):
        if smaller < size:
            yield _resized(model, size, smaller)


def _resized(model: ModelProto, size: int, smaller: int) -> ModelProto:
    resized = ModelProto()
    resized.CopyFrom(model)
    graph = resized.graph
    for value in graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value == size:
                dim.dim_value = smaller
    for tensor in graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.int64 and array.ndim == 1:
            # The constant may be a shape.
            array = np.where(array == size, smaller, array)
        array = array[tuple(slice(smaller if axis == size else None) for axis in array.shape)]
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return _with_inferred_outputs(resized)


def _with_inferred_outputs(model: ModelProto) -> ModelProto:
    """Returns the model with the output shapes that follow from the inputs."""
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def _rebuilt(
    model: ModelProto,
    *,
    nodes: list[onnx.NodeProto] | None = None,
    inputs: list[onnx.ValueInfoProto] | None = None,
    outputs: list[onnx.ValueInfoProto] | None = None,
) -> ModelProto:
    """Returns the model with other parts, and without nodes that no output needs."""
    graph = model.graph
    nodes = list(graph.node) if nodes is None else nodes
    outputs = list(graph.output) if outputs is None else outputs
    needed = {value.name for value in outputs}
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    rebuilt = helper.make_graph(
        kept[::-1],
        graph.name,
        [value for value in (inputs or graph.input) if value.name in needed],
        outputs,
        [tensor for tensor in graph.initializer if tensor.name in needed],
    )
    return helper.make_model(rebuilt, opset_imports=model.opset_import, ir_version=model.ir_version)


def _is_smaller(candidate: ModelProto, model: ModelProto) -> bool:
    return _size(candidate) < _size(model)


def _size(model: ModelProto) -> tuple[int, int, int, int]:
    graph = model.graph
    return len(graph.node), len(graph.output), len(graph.input), model.ByteSize() + _elements(graph)


def _elements(graph: GraphProto) -> int:
    dims = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.input]
    return sum(int(np.prod(sizes)) for sizes in dims)


def _is_valid(model: ModelProto) -> bool:
    if not model.graph.node or not model.graph.output:
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    shapes = (value.type.tensor_type for value in model.graph.output)
    return all(shape.HasField("shape") and all(dim.dim_value for dim in shape.shape.dim) for shape in shapes)
