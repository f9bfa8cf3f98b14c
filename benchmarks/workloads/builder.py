"""A small graph builder, with which a workload reads like the model that it describes.

Values are plain ONNX value names. Weights come from one seeded generator, so that a workload has the same bytes every
time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Opset 17 is the first with LayerNormalization; reductions other than ReduceSum still take `axes` as an attribute.
OPSET = 17
# An IR version that every reader of opsets 17 to 20 accepts.
IR_VERSION = 9

Attribute = float | str | Sequence[int] | onnx.GraphProto


class GraphBuilder:
    """Collects nodes, initializers, inputs and outputs of one ONNX graph."""

    def __init__(self, name: str, *, seed: int = 0, opset: int = OPSET) -> None:
        self.name = name
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._numbers = itertools.count(1)

    def __repr__(self) -> str:
        return f"GraphBuilder({self.name!r}, nodes={len(self._nodes)}, outputs={len(self._outputs)})"

    def _fresh(self, hint: str) -> str:
        return f"{hint}_{next(self._numbers)}"

    def body(self, name: str) -> GraphBuilder:
        """Returns a builder for the body of a loop, which may also read the values of this graph."""
        inner = GraphBuilder(name, opset=self.opset)
        inner.rng, inner._numbers = self.rng, self._numbers
        return inner

    def input(self, name: str, shape: Sequence[int], dtype: int = TensorProto.FLOAT) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(shape)))
        return name

    def output(self, value: str, shape: Sequence[int], dtype: int = TensorProto.FLOAT) -> None:
        self._outputs.append(helper.make_tensor_value_info(value, dtype, list(shape)))

    def constant(self, array: np.ndarray, hint: str = "const") -> str:
        name = self._fresh(hint)
        self._initializers.append(
            numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        )
        return name

    def scalar(self, value: float) -> str:
        return self.constant(np.array(value, dtype=np.float32), "scalar")

    def ints(self, values: Sequence[int]) -> str:
        """Adds a 1-D i64 constant: a shape, axes, starts or split sizes."""
        return self.constant(np.array(values, dtype=np.int64), "ints")

    def weight(self, shape: Sequence[int], *, fan_in: int, hint: str = "weight") -> str:
        """Adds normal weights with deviation 1/sqrt(fan_in): unit inputs give unit outputs, so activations stay
        O(1)."""
        values = self.rng.standard_normal(tuple(shape), dtype=np.float32) / np.float32(math.sqrt(fan_in))
        return self.constant(values, hint)

    def vector(self, size: int, *, mean: float = 0.0, deviation: float = 0.1, hint: str = "bias") -> str:
        """Adds a bias (mean 0) or a norm's gain (mean 1)."""
        values = mean + deviation * self.rng.standard_normal(size, dtype=np.float32)
        return self.constant(values.astype(np.float32), hint)

    def op(self, op_type: str, *inputs: str, **attributes: Attribute) -> str:
        """Appends a node with one result and returns that result."""
        return self.ops(op_type, *inputs, results=1, **attributes)[0]

    def ops(self, op_type: str, *inputs: str, results: int, **attributes: Attribute) -> list[str]:
        """Appends a node with `results` results, such as Split, and returns them."""
        names = [self._fresh(op_type.lower()) for _ in range(results)]
        node = helper.make_node(op_type, list(inputs), names)
        node.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(attributes.items()))
        self._nodes.append(node)
        return names

    def graph(self) -> onnx.GraphProto:
        return helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._initializers)

    def build(self) -> onnx.ModelProto:
        return helper.make_model(
            self.graph(),
            producer_name="tilewright-workloads",
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=IR_VERSION,
        )


# Fragments that several workloads share, spelled as exporters spell them


def linear(g: GraphBuilder, x: str, fan_in: int, fan_out: int, *, bias: bool = True) -> str:
    """Adds torch.nn.Linear on a rank 3 value: MatMul with the transposed weight, then Add(bias, x)."""
    product = g.op("MatMul", x, g.weight((fan_in, fan_out), fan_in=fan_in))
    return g.op("Add", g.vector(fan_out), product) if bias else product


def gelu_erf(g: GraphBuilder, x: str) -> str:
    """Adds x * (1 + erf(x / sqrt 2)) * 0.5."""
    erf = g.op("Erf", g.op("Div", x, g.scalar(math.sqrt(2.0))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.scalar(1.0))), g.scalar(0.5))


def gelu_tanh(g: GraphBuilder, x: str) -> str:
    """Adds 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))."""
    cubic = g.op("Mul", g.op("Pow", x, g.scalar(3.0)), g.scalar(0.044715))
    inner = g.op("Mul", g.op("Add", x, cubic), g.scalar(math.sqrt(2.0 / math.pi)))
    return g.op("Mul", g.op("Mul", x, g.scalar(0.5)), g.op("Add", g.op("Tanh", inner), g.scalar(1.0)))


def layer_norm(g: GraphBuilder, x: str, size: int, *, epsilon: float = 1e-5) -> str:
    """Adds the LayerNormalization operator over the last axis."""
    gain, bias = g.vector(size, mean=1.0, hint="gain"), g.vector(size)
    return g.op("LayerNormalization", x, gain, bias, axis=-1, epsilon=epsilon)


def layer_norm_decomposed(g: GraphBuilder, x: str, size: int, *, epsilon: float = 1e-5) -> str:
    """Adds layer normalisation as exporters wrote it before opset 17: two dependent means."""
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1], keepdims=1))
    variance = g.op("ReduceMean", g.op("Pow", centred, g.scalar(2.0)), axes=[-1], keepdims=1)
    normal = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.scalar(epsilon))))
    return g.op("Add", g.op("Mul", normal, g.vector(size, mean=1.0, hint="gain")), g.vector(size))


def rms_norm(g: GraphBuilder, x: str, size: int, *, epsilon: float = 1e-6) -> str:
    """Adds gain * (x * (1 / sqrt(mean(x^2) + epsilon)))."""
    mean_square = g.op("ReduceMean", g.op("Pow", x, g.scalar(2.0)), axes=[-1], keepdims=1)
    scale = g.op("Reciprocal", g.op("Sqrt", g.op("Add", mean_square, g.scalar(epsilon))))
    return g.op("Mul", g.vector(size, mean=1.0, hint="gain"), g.op("Mul", x, scale))


def causal_mask(g: GraphBuilder, sequence: int) -> str:
    """Adds an additive f32 mask [1, 1, sequence, sequence]: 0 on and below the diagonal, the lowest f32 above it."""
    lowest = np.finfo(np.float32).min
    mask = np.triu(np.full((sequence, sequence), lowest, dtype=np.float32), k=1)
    return g.constant(mask[None, None], "causal_mask")


def rotary_tables(g: GraphBuilder, *, sequence: int, head_size: int, rank: int) -> tuple[str, str]:
    """Adds cos and sin of position * base^(-2i/head_size), with the frequencies repeated in both halves: [..., seq,
    head]."""
    frequency = 10000.0 ** (-np.arange(0, head_size, 2) / head_size)
    angle = np.arange(sequence)[:, None] * np.concatenate([frequency, frequency])[None, :]
    angle = angle.reshape([1] * (rank - 2) + [sequence, head_size])
    return g.constant(np.cos(angle).astype(np.float32), "cos"), g.constant(
        np.sin(angle).astype(np.float32), "sin"
    )


def rotate(g: GraphBuilder, x: str, cosine: str, sine: str, *, head_size: int, axis: int) -> str:
    """Adds x * cos + concat(-x[half:], x[:half]) * sin."""
    half = head_size // 2
    low = g.op("Slice", x, g.ints([0]), g.ints([half]), g.ints([axis]), g.ints([1]))
    high = g.op("Slice", x, g.ints([half]), g.ints([np.iinfo(np.int64).max]), g.ints([axis]), g.ints([1]))
    turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
    return g.op("Add", g.op("Mul", x, cosine), g.op("Mul", turned, sine))


def split_heads(g: GraphBuilder, x: str, *, batch: int, sequence: int, heads: int, head_size: int) -> str:
    """Reshapes [batch, sequence, heads * head_size] to [batch, heads, sequence, head_size]."""
    return g.op(
        "Transpose", g.op("Reshape", x, g.ints([batch, sequence, heads, head_size])), perm=[0, 2, 1, 3]
    )


def merge_heads(g: GraphBuilder, x: str, *, batch: int, sequence: int, hidden: int) -> str:
    """Adds the inverse of split_heads."""
    return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), g.ints([batch, sequence, hidden]))


def repeat_heads(g: GraphBuilder, x: str, *, shape: Sequence[int], group: int) -> str:
    """Repeats each head of [batch, heads, sequence, head_size] for its group: Unsqueeze, Expand, Reshape."""
    if group == 1:
        return x
    batch, heads, sequence, head_size = shape
    expanded = g.op(
        "Expand", g.op("Unsqueeze", x, g.ints([2])), g.ints([batch, heads, group, sequence, head_size])
    )
    return g.op("Reshape", expanded, g.ints([batch, heads * group, sequence, head_size]))


def silu(g: GraphBuilder, x: str) -> str:
    """Adds x * sigmoid(x)."""
    return g.op("Mul", x, g.op("Sigmoid", x))
