"""Single-pattern workloads: the memory-bound chains around reductions that fusion targets.

Each builder takes the shape and returns a model with one or two full-shape inputs. `SHAPES` in the registry lists the
measured shapes; tests use smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.workloads.builder import (
    GraphBuilder,
    causal_mask,
    gelu_erf,
    gelu_tanh,
    layer_norm,
    layer_norm_decomposed,
    rms_norm,
    rotary_tables,
    rotate,
)

Shape = Sequence[int]


def softmax(shape: Shape, *, axis: int = -1) -> onnx.ModelProto:
    g = GraphBuilder("softmax")
    g.output(g.op("Softmax", g.input("x", shape), axis=axis), shape)
    return g.build()


def masked_softmax(shape: Shape) -> onnx.ModelProto:
    """Builds a softmax of scaled scores plus an additive mask that broadcasts over all but the last axis."""
    g = GraphBuilder("masked_softmax")
    x = g.input("x", shape)
    mask = g.input("mask", [1] * (len(shape) - 1) + [shape[-1]])
    scaled = g.op("Mul", x, g.scalar(0.125))
    ignored = g.op("Mul", g.op("Sub", g.scalar(1.0), mask), g.scalar(float(np.finfo(np.float32).min)))
    g.output(g.op("Softmax", g.op("Add", scaled, ignored), axis=-1), shape)
    return g.build()


def causal_softmax(shape: Shape) -> onnx.ModelProto:
    """Builds a softmax of scaled attention scores, [heads, sequence, sequence], plus the causal mask."""
    g = GraphBuilder("causal_softmax")
    scaled = g.op("Mul", g.input("x", shape), g.scalar(0.125))
    mask = g.op("Reshape", causal_mask(g, shape[-1]), g.ints([1, shape[-1], shape[-1]]))
    g.output(g.op("Softmax", g.op("Add", scaled, mask), axis=-1), shape)
    return g.build()


def layer_norm_op(shape: Shape) -> onnx.ModelProto:
    g = GraphBuilder("layer_norm")
    g.output(layer_norm(g, g.input("x", shape), shape[-1]), shape)
    return g.build()


def layer_norm_chain(shape: Shape) -> onnx.ModelProto:
    g = GraphBuilder("layer_norm_decomposed")
    g.output(layer_norm_decomposed(g, g.input("x", shape), shape[-1]), shape)
    return g.build()


def rms_norm_chain(shape: Shape) -> onnx.ModelProto:
    g = GraphBuilder("rms_norm")
    g.output(rms_norm(g, g.input("x", shape), shape[-1]), shape)
    return g.build()


def bias_residual_layer_norm(shape: Shape) -> onnx.ModelProto:
    """Builds the tail of every transformer sub-layer: norm(x + bias + residual); both the sum and the norm are
    results."""
    g = GraphBuilder("bias_residual_layer_norm")
    x, residual = g.input("x", shape), g.input("residual", shape)
    total = g.op("Add", g.op("Add", x, g.vector(shape[-1])), residual)
    g.output(layer_norm_decomposed(g, total, shape[-1]), shape)
    g.output(total, shape)
    return g.build()


def gelu_erf_chain(shape: Shape) -> onnx.ModelProto:
    g = GraphBuilder("gelu_erf")
    g.output(gelu_erf(g, g.input("x", shape)), shape)
    return g.build()


def gelu_tanh_chain(shape: Shape) -> onnx.ModelProto:
    g = GraphBuilder("gelu_tanh")
    g.output(gelu_tanh(g, g.input("x", shape)), shape)
    return g.build()


def silu_product(shape: Shape) -> onnx.ModelProto:
    """Builds SwiGLU's elementwise part: gate * sigmoid(gate) * up."""
    g = GraphBuilder("silu_product")
    gate, up = g.input("gate", shape), g.input("up", shape)
    g.output(g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up), shape)
    return g.build()


def log_softmax(shape: Shape) -> onnx.ModelProto:
    g = GraphBuilder("log_softmax")
    g.output(g.op("LogSoftmax", g.input("x", shape), axis=-1), shape)
    return g.build()


def l2_normalise(shape: Shape) -> onnx.ModelProto:
    """Builds x / max(||x||, epsilon) over the last axis, as torch.nn.functional.normalize exports it."""
    g = GraphBuilder("l2_normalise")
    x = g.input("x", shape)
    norm = g.op("Max", g.op("ReduceL2", x, axes=[-1], keepdims=1), g.scalar(1e-12))
    g.output(g.op("Div", x, norm), shape)
    return g.build()


def batch_statistics(shape: Shape, *, channel: int = 1) -> onnx.ModelProto:
    """Builds training-time batch norm over all axes but the channel axis: normalised value, mean and variance."""
    g = GraphBuilder("batch_statistics")
    x = g.input("x", shape)
    axes = [axis for axis in range(len(shape)) if axis != channel]
    kept = [size if axis == channel else 1 for axis, size in enumerate(shape)]
    mean = g.op("ReduceMean", x, axes=axes, keepdims=1)
    centred = g.op("Sub", x, mean)
    variance = g.op("ReduceMean", g.op("Mul", centred, centred), axes=axes, keepdims=1)
    deviation = g.op("Sqrt", g.op("Add", variance, g.scalar(1e-5)))
    g.output(g.op("Div", centred, deviation), shape)
    g.output(mean, kept)
    g.output(variance, kept)
    return g.build()


def argmax(shape: Shape) -> onnx.ModelProto:
    """Builds greedy decoding: the index of each row's largest value."""
    g = GraphBuilder("argmax")
    g.output(g.op("ArgMax", g.input("x", shape), axis=-1, keepdims=0), shape[:-1], TensorProto.INT64)
    return g.build()


def transpose_cast(shape: Shape) -> onnx.ModelProto:
    """Builds a transpose from heads to tokens, scaled by an input and narrowed to float16."""
    g = GraphBuilder("transpose_cast")
    x, scale = g.input("x", shape), g.input("scale", [1])
    scaled = g.op("Mul", g.op("Transpose", x, perm=[1, 0, 2]), scale)
    g.output(
        g.op("Cast", scaled, to=TensorProto.FLOAT16), [shape[1], shape[0], shape[2]], TensorProto.FLOAT16
    )
    return g.build()


def rotary(shape: Shape) -> onnx.ModelProto:
    """Builds the rotary embedding of queries, [heads, sequence, head size]."""
    g = GraphBuilder("rotary")
    cosine, sine = rotary_tables(g, sequence=shape[1], head_size=shape[2], rank=3)
    g.output(rotate(g, g.input("x", shape), cosine, sine, head_size=shape[2], axis=2), shape)
    return g.build()


def scaled_copy(shape: Shape) -> onnx.ModelProto:
    """Builds x * s, which costs as much as a copy."""
    g = GraphBuilder("scaled_copy")
    g.output(g.op("Mul", g.input("x", shape), g.scalar(1.5)), shape)
    return g.build()
