"""Converts ONNX to PyTorch, as a user of PyTorch would write the model.

Every operator becomes torch operations, traced into one flat `torch.fx.GraphModule`, so that running it costs what
hand-written code costs. Weights are buffers, scalars are Python numbers, and shapes are known. Where ONNX spells out
what torch has a function for (gelu, silu, attention), the function is called: see `_Idioms`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from torch import fx, nn
from torch.fx.proxy import GraphAppendingTracer

from benchmarks.peers import Array, UnsupportedError
from benchmarks.repetition import graph_inputs, is_barrier

Tensor = torch.Tensor
Barrier = Callable[[Any], Any]

_TYPES = {
    TensorProto.FLOAT: torch.float32,
    TensorProto.DOUBLE: torch.float64,
    TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16,
    TensorProto.INT32: torch.int32,
    TensorProto.INT64: torch.int64,
    TensorProto.BOOL: torch.bool,
}

# An additive mask value that hides a score.
_HIDDEN = -65504.0


def to_tensor(array: Array) -> Tensor:
    """Returns a tensor on the array's memory; torch does not accept numpy's bfloat16 directly."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_module(model: ModelProto, *, barrier: Barrier) -> fx.GraphModule:
    """Returns the model as a module that takes its inputs in order and returns a tuple; calls `barrier` at every
    barrier."""
    return _Tracer(model, barrier).module()


class _Tracer:
    def __init__(self, model: ModelProto, barrier: Barrier) -> None:
        self._model, self._barrier = model, barrier
        self._root = nn.Module()
        self._graph = fx.Graph()
        self._tracer = GraphAppendingTracer(self._graph)
        self._static: dict[str, Array] = {}
        self._values: dict[str, Any] = {}
        self._producers = {name: node for node in model.graph.node for name in node.output}

    def module(self) -> fx.GraphModule:
        for value in graph_inputs(self._model):
            self._values[value.name] = self._proxy(self._graph.placeholder(_identifier(value.name)))
        for tensor in self._model.graph.initializer:
            self._static[tensor.name] = numpy_helper.to_array(tensor)
        idioms = _Idioms(self._model)
        for node in self._model.graph.node:
            self._append(node, idioms)
        results = tuple(self.tensor(output.name).node for output in self._model.graph.output)
        self._graph.output(results)
        self._graph.eliminate_dead_code()
        return fx.GraphModule(self._root, self._graph)

    def _append(self, node: NodeProto, idioms: _Idioms) -> None:
        idiom = idioms.at(node)
        if idiom is not None:
            function, sources = idiom
            self._values[node.output[0]] = function(*(self.tensor(source) for source in sources))
            return
        if is_barrier(node):
            self._values[node.output[0]] = self._barrier(self.tensor(node.input[0]))
            return
        convert = _OPERATORS.get(node.op_type)
        if convert is None:
            raise UnsupportedError(f"the translation to torch lacks {node.op_type}")
        results = convert(_Node(node, self))
        for name, result in zip(
            node.output, results if isinstance(results, list | tuple) else [results], strict=True
        ):
            self._values[name] = result

    def _proxy(self, node: fx.Node) -> fx.Proxy:
        return fx.Proxy(node, self._tracer)

    def static(self, name: str) -> Array:
        """Returns a value that is known at compile time: a shape, axes or split sizes."""
        if name not in self._static:
            raise UnsupportedError(f"the translation to torch needs '{name}' as a constant")
        return self._static[name]

    def tensor(self, name: str) -> Any:
        """Returns a value as a tensor."""
        if name not in self._values:
            identifier = _identifier(name)
            self._root.register_buffer(identifier, to_tensor(np.array(self.static(name))))
            self._values[name] = self._proxy(self._graph.get_attr(identifier))
        return self._values[name]

    def operand(self, name: str) -> Any:
        """Returns a value as a tensor or, if it is a scalar constant, as a number, as in x * 0.5."""
        constant = self._static.get(name)
        is_scalar = constant is not None and constant.size == 1 and constant.ndim == 0
        return constant.item() if is_scalar and constant is not None else self.tensor(name)


class _Node:
    """An ONNX node as its operator's function sees it."""

    def __init__(self, node: NodeProto, tracer: _Tracer) -> None:
        self._node, self._tracer = node, tracer
        self._attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def __len__(self) -> int:
        return len(self._node.input)

    def __getitem__(self, index: int) -> Any:
        return self._tracer.tensor(self._node.input[index])

    def operands(self) -> list[Any]:
        return [self._tracer.operand(name) for name in self._node.input]

    def has(self, index: int) -> bool:
        return index < len(self._node.input) and bool(self._node.input[index])

    def ints(self, index: int) -> list[int]:
        return [int(value) for value in np.ravel(self._tracer.static(self._node.input[index]))]

    def attribute(self, name: str, default: Any = None) -> Any:
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def axes(self) -> list[int]:
        """Axes, which later opsets have as an input."""
        if "axes" in self._attributes:
            return list(self._attributes["axes"])
        return self.ints(1)


Operator = Callable[[_Node], Any]


def _arithmetic(function: Callable[[Any, Any], Any]) -> Operator:
    return lambda node: function(*node.operands())


def _unary(function: Callable[[Any], Any]) -> Operator:
    return lambda node: function(node[0])


def _extremum(function: Callable[..., Any], bound: str) -> Operator:
    def convert(node: _Node) -> Any:
        first, second = node.operands()
        if isinstance(second, float):
            return torch.clamp(first, min=second) if bound == "min" else torch.clamp(first, max=second)
        return function(first, second)

    return convert


def _reduction(function: Callable[..., Any]) -> Operator:
    return lambda node: function(node[0], node.axes(), bool(node.attribute("keepdims", 1)))


def _pow(node: _Node) -> Any:
    base, exponent = node.operands()
    return torch.pow(
        base, int(exponent) if isinstance(exponent, float) and exponent.is_integer() else exponent
    )


def _layer_norm(node: _Node) -> Any:
    weight = node._tracer.static(node._node.input[1])
    bias = node[2] if node.has(2) else None
    return F.layer_norm(node[0], weight.shape, node[1], bias, node.attribute("epsilon", 1e-5))


def _slice(node: _Node) -> Any:
    starts, ends = node.ints(1), node.ints(2)
    axes = node.ints(3) if node.has(3) else list(range(len(starts)))
    steps = node.ints(4) if node.has(4) else [1] * len(starts)
    value = node[0]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        value = torch.ops.aten.slice.Tensor(value, axis, start, end, step)
    return value


def _reshape(node: _Node) -> Any:
    value = node[0]
    return value.reshape([value.size(axis) if size == 0 else size for axis, size in enumerate(node.ints(1))])


def _unsqueeze(node: _Node) -> Any:
    value = node[0]
    for axis in sorted(node.axes()):
        value = value.unsqueeze(axis)
    return value


def _squeeze(node: _Node) -> Any:
    return torch.squeeze(node[0], node.axes())


def _gather(node: _Node) -> Any:
    axis = node.attribute("axis", 0)
    name = node._node.input[1]
    if name in node._tracer._static and node._tracer._static[name].ndim == 0:
        return node[0].select(axis, int(node._tracer._static[name]))
    return torch.ops.aten.index.Tensor(node[0], [None] * axis + [node[1]])


def _matmul(node: _Node) -> Any:
    return torch.matmul(node[0], node[1])


def _gemm(node: _Node) -> Any:
    a = node[0].t() if node.attribute("transA", 0) else node[0]
    b = node[1].t() if node.attribute("transB", 0) else node[1]
    if not node.has(2):
        return torch.mm(a, b)
    return torch.addmm(node[2], a, b, beta=node.attribute("beta", 1.0), alpha=node.attribute("alpha", 1.0))


def _symmetric(pads: Sequence[int]) -> list[int]:
    half = len(pads) // 2
    if list(pads[:half]) != list(pads[half:]):
        raise UnsupportedError("the translation to torch lacks asymmetric padding")
    return list(pads[:half])


def _conv(node: _Node) -> Any:
    rank = len(node.attribute("kernel_shape"))
    bias = node[2] if node.has(2) else None
    function = {1: F.conv1d, 2: F.conv2d}[rank]
    return function(
        node[0],
        node[1],
        bias,
        node.attribute("strides", [1] * rank),
        _symmetric(node.attribute("pads", [0] * 2 * rank)),
        node.attribute("dilations", [1] * rank),
        node.attribute("group", 1),
    )


def _conv_transpose(node: _Node) -> Any:
    rank = len(node.attribute("kernel_shape"))
    function = {1: F.conv_transpose1d, 2: F.conv_transpose2d}[rank]
    return function(
        node[0],
        node[1],
        node[2] if node.has(2) else None,
        node.attribute("strides", [1] * rank),
        _symmetric(node.attribute("pads", [0] * 2 * rank)),
        node.attribute("output_padding", [0] * rank),
        node.attribute("group", 1),
        node.attribute("dilations", [1] * rank),
    )


def _average_pool(node: _Node) -> Any:
    return F.avg_pool2d(
        node[0],
        node.attribute("kernel_shape"),
        node.attribute("strides", [1, 1]),
        _symmetric(node.attribute("pads", [0, 0, 0, 0])),
        count_include_pad=bool(node.attribute("count_include_pad", 0)),
    )


def _clip(node: _Node) -> Any:
    low, high = (node._tracer.operand(node._node.input[i]) if node.has(i) else None for i in (1, 2))
    return torch.clamp(node[0], low, high)


def _instance_norm(node: _Node) -> Any:
    return F.instance_norm(node[0], weight=node[1], bias=node[2], eps=node.attribute("epsilon", 1e-5))


def _resize(node: _Node) -> Any:
    modes = node.attribute("mode", "nearest"), node.attribute("coordinate_transformation_mode", "half_pixel")
    if modes != ("nearest", "asymmetric") or not node.has(3):
        raise UnsupportedError("the translation to torch lacks this kind of Resize")
    return F.interpolate(node[0], node.ints(3)[2:], mode="nearest")


def _max_pool(node: _Node) -> Any:
    kernel = node.attribute("kernel_shape")
    pads = _symmetric(node.attribute("pads", [0, 0, 0, 0]))
    return F.max_pool2d(node[0], kernel, node.attribute("strides", [1, 1]), pads)


def _split(node: _Node) -> Any:
    sizes = node.ints(1)
    parts = torch.split(node[0], sizes, dim=node.attribute("axis", 0))
    return [parts[index] for index in range(len(sizes))]


def _arg_max(node: _Node) -> Any:
    return torch.argmax(node[0], node.attribute("axis", 0), bool(node.attribute("keepdims", 1)))


_OPERATORS: dict[str, Operator] = {
    "Add": _arithmetic(lambda a, b: a + b),
    "Sub": _arithmetic(lambda a, b: a - b),
    "Mul": _arithmetic(lambda a, b: a * b),
    "Div": _arithmetic(lambda a, b: a / b),
    "Pow": _pow,
    "Max": _extremum(torch.maximum, "min"),
    "Min": _extremum(torch.minimum, "max"),
    "Neg": _unary(lambda x: -x),
    "Abs": _unary(torch.abs),
    "Exp": _unary(torch.exp),
    "Log": _unary(torch.log),
    "Sqrt": _unary(torch.sqrt),
    "Reciprocal": _unary(torch.reciprocal),
    "Tanh": _unary(torch.tanh),
    "Sigmoid": _unary(torch.sigmoid),
    "Erf": _unary(torch.erf),
    "Relu": _unary(F.relu),
    "Softplus": _unary(F.softplus),
    "Identity": _unary(lambda x: x),
    "Gelu": lambda node: F.gelu(node[0], approximate=node.attribute("approximate", "none")),
    "Softmax": lambda node: torch.softmax(node[0], node.attribute("axis", -1)),
    "LogSoftmax": lambda node: torch.log_softmax(node[0], node.attribute("axis", -1)),
    "LayerNormalization": _layer_norm,
    "ReduceMean": _reduction(torch.mean),
    "ReduceSum": _reduction(torch.sum),
    "ReduceMax": _reduction(torch.amax),
    "ReduceMin": _reduction(torch.amin),
    "ReduceL2": _reduction(lambda x, axes, keepdim: torch.linalg.vector_norm(x, 2, axes, keepdim)),
    "ArgMax": _arg_max,
    "Cast": lambda node: node[0].to(_TYPES[node.attribute("to")]),
    "Transpose": lambda node: node[0].permute(node.attribute("perm")),
    "Reshape": _reshape,
    "Flatten": lambda node: torch.flatten(node[0], node.attribute("axis", 1)),
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Expand": lambda node: node[0].expand(node.ints(1)),
    "Concat": lambda node: torch.cat([node[i] for i in range(len(node))], dim=node.attribute("axis")),
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "LessOrEqual": _arithmetic(lambda a, b: a <= b),
    # caches are updated in place
    "ScatterElements": lambda node: node[0].scatter_(node.attribute("axis", 0), node[1], node[2]),
    "Where": lambda node: torch.where(*node.operands()),
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Clip": _clip,
    "InstanceNormalization": _instance_norm,
    "Resize": _resize,
    "AveragePool": _average_pool,
    "MaxPool": _max_pool,
    "GlobalAveragePool": _unary(lambda x: F.adaptive_avg_pool2d(x, 1)),
}


class _Idioms:
    """Finds nodes that end a pattern for which torch has one function, as exporters spell it; the other nodes become
    dead."""

    def __init__(self, model: ModelProto) -> None:
        self._producers = {name: node for node in model.graph.node for name in node.output}
        self._constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}

    def at(self, node: NodeProto) -> tuple[Callable[..., Any], list[str]] | None:
        """Returns the function and the values that it is called on; None if no pattern ends here."""
        if node.op_type == "MatMul":
            return self._attention(node)
        if node.op_type != "Mul":
            return None
        for match, function in (
            (self._silu, F.silu),
            (self._gelu_erf, F.gelu),
            (self._gelu_tanh, lambda x: F.gelu(x, approximate="tanh")),
        ):
            source = match(node)
            if source is not None:
                return function, [source]
        return None

    def _attention(self, node: NodeProto) -> tuple[Callable[..., Any], list[str]] | None:
        """Matches softmax(query @ keyᵀ [* or / a scalar] [+ mask]) @ value, where keyᵀ is a transposed key."""
        softmax = self._producer(node.input[0], "Softmax")
        if softmax is None or self._attribute(softmax, "axis", -1) != -1:
            return None
        masked = self._producer(softmax.input[0], "Add")
        scores, scale = self._scaled(masked.input[0] if masked else softmax.input[0])
        transposed = self._producer(scores.input[1], "Transpose") if scores else None
        if scores is None or transposed is None:
            return None
        perm = self._attribute(transposed, "perm", [])
        if not perm or perm[-2] != len(perm) - 1:
            return None
        mask = masked.input[1] if masked else None
        is_causal = mask is not None and _is_causal(self._constants.get(mask))

        def attend(query: Any, transposed_key: Any, value: Any, mask: Any = None) -> Any:
            return F.scaled_dot_product_attention(
                query, transposed_key.transpose(-1, -2), value, mask, is_causal=is_causal, scale=scale
            )

        operands = [scores.input[0], scores.input[1], node.input[1]]
        return attend, operands + ([mask] if mask is not None and not is_causal else [])

    def _scaled(self, name: str) -> tuple[NodeProto | None, float]:
        """Returns the MatMul of which the value is a multiple, and the factor."""
        for op_type, sign in (("Mul", 1), ("Div", -1)):
            node = self._producer(name, op_type)
            constant = self._constants.get(node.input[1]) if node else None
            if node is not None and constant is not None and constant.size == 1:
                return self._producer(node.input[0], "MatMul"), float(constant.item()) ** sign
        return self._producer(name, "MatMul"), 1.0

    @staticmethod
    def _attribute(node: NodeProto, name: str, default: Any) -> Any:
        return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)

    def _silu(self, node: NodeProto) -> str | None:
        """Matches x * sigmoid(x)."""
        x = node.input[0]
        return x if self._is(node.input[1], "Sigmoid", x) else None

    def _gelu_erf(self, node: NodeProto) -> str | None:
        """Matches (x * (erf(x / sqrt 2) + 1)) * 0.5."""
        product = self._producer(node.input[0], "Mul")
        total = self._producer(product.input[1], "Add") if product else None
        erf = self._producer(total.input[0], "Erf") if total else None
        scaled = self._producer(erf.input[0], "Div") if erf else None
        if not (product and total and scaled and scaled.input[0] == product.input[0]):
            return None
        constants = (scaled.input[1], math.sqrt(2.0)), (total.input[1], 1.0), (node.input[1], 0.5)
        return product.input[0] if all(self._equals(*constant) for constant in constants) else None

    def _gelu_tanh(self, node: NodeProto) -> str | None:
        """Matches (x * 0.5) * (tanh(...) + 1); the argument of tanh is not checked."""
        half, total = self._producer(node.input[0], "Mul"), self._producer(node.input[1], "Add")
        tanh = self._producer(total.input[0], "Tanh") if total else None
        inner = self._producer(tanh.input[0], "Mul") if tanh else None
        if not (half and total and inner):
            return None
        constants = (half.input[1], 0.5), (total.input[1], 1.0), (inner.input[1], math.sqrt(2.0 / math.pi))
        return half.input[0] if all(self._equals(*constant) for constant in constants) else None

    def _producer(self, name: str, op_type: str) -> NodeProto | None:
        node = self._producers.get(name)
        return node if node is not None and node.op_type == op_type else None

    def _is(self, name: str, op_type: str, operand: str) -> bool:
        node = self._producer(name, op_type)
        return node is not None and node.input[0] == operand

    def _equals(self, name: str, value: float) -> bool:
        constant = self._constants.get(name)
        return (
            constant is not None and constant.size == 1 and math.isclose(constant.item(), value, rel_tol=1e-2)
        )


def _is_causal(mask: Array | None) -> bool:
    """True if an additive mask hides exactly the later positions."""
    if mask is None or mask.shape[-1] != mask.shape[-2] or mask.size != mask.shape[-1] ** 2:
        return False
    square = mask.reshape(mask.shape[-2:]).astype(np.float64)
    later = np.triu(np.ones(square.shape, dtype=bool), k=1)
    return bool((square[~later] == 0).all() and (square[later] <= _HIDDEN).all())


def _identifier(name: str) -> str:
    return "v_" + "".join(character if character.isalnum() else "_" for character in name)
