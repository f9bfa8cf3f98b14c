"""Recurrent models: stacks of LSTM and GRU layers, and a selective scan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.workloads.builder import GraphBuilder, linear, silu

_GATES = {"LSTM": 4, "GRU": 3}


@dataclass(frozen=True, kw_only=True)
class RecurrentOptions:
    """Sizes of a stack of layers; the defaults are the LSTM of Souffle's table 2."""

    op: str = "LSTM"
    """LSTM or GRU."""
    layers: int = 10
    steps: int = 100
    hidden: int = 256
    batch: int = 1
    is_bidirectional: bool = False
    has_lengths: bool = False
    """True if sequences have lengths of their own, which are an input."""
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """Sizes of a block with a selective scan, as in Mamba."""

    steps: int = 64
    channels: int = 128
    state: int = 16
    seed: int = 0


def recurrent(options: RecurrentOptions = RecurrentOptions()) -> onnx.ModelProto:
    """Builds layers that read the outputs of the layer before, [steps, batch, directions * hidden]."""
    o = options
    g = GraphBuilder(o.op.lower(), seed=o.seed)
    x = g.input("sequence", (o.steps, o.batch, o.hidden))
    lengths = g.input("lengths", (o.batch,), TensorProto.INT32) if o.has_lengths else ""
    x, width = recurrent_layers(g, x, o.hidden, o, lengths=lengths)
    g.output(x, (o.steps, o.batch, width))
    return g.build()


def recurrent_layers(
    g: GraphBuilder, x: str, width: int, options: RecurrentOptions, *, lengths: str = ""
) -> tuple[str, int]:
    """Adds the layers to a sequence [steps, batch, width]; returns the last one's output and its width."""
    o = options
    directions = 2 if o.is_bidirectional else 1
    rows = _GATES[o.op] * o.hidden
    for _ in range(o.layers):
        weights = g.weight((directions, rows, width), fan_in=width)
        recurrent_weights = g.weight((directions, rows, o.hidden), fan_in=o.hidden)
        bias = g.constant(0.1 * g.rng.standard_normal((directions, 2 * rows), dtype=np.float32), "bias")
        inputs = [x, weights, recurrent_weights, bias, *([lengths] if lengths else [])]
        direction = "bidirectional" if o.is_bidirectional else "forward"
        form = {"linear_before_reset": 1} if o.op == "GRU" else {}  # as PyTorch's, which cuDNN computes
        x = g.op(o.op, *inputs, hidden_size=o.hidden, direction=direction, **form)
        width = directions * o.hidden
        if o.is_bidirectional:
            x = g.op("Transpose", x, perm=[0, 2, 1, 3])
        x = g.op("Reshape", x, g.ints([o.steps, o.batch, width]))
    return x, width


def unrolled_lstm(options: RecurrentOptions = RecurrentOptions()) -> onnx.ModelProto:
    """Builds an LSTM as an exporter that knows no recurrent ops writes it, with nodes for each cell; its result is the
    last state of the last layer, [batch, hidden]."""
    o = options
    g = GraphBuilder("unrolled_lstm", seed=o.seed)
    sequence = g.input("sequence", (o.steps, o.batch, o.hidden))
    states = [g.op("Gather", sequence, g.constant(np.array(step)), axis=0) for step in range(o.steps)]
    for _ in range(o.layers):
        weights, recurrent_weights = (g.weight((o.hidden, 4 * o.hidden), fan_in=o.hidden) for _ in range(2))
        bias = g.vector(4 * o.hidden)
        h = c = g.constant(np.zeros((o.batch, o.hidden), np.float32))
        for step, x in enumerate(states):
            products = g.op("Add", g.op("MatMul", x, weights), g.op("MatMul", h, recurrent_weights))
            gates = g.op("Add", products, bias)
            i, f, out, new = g.ops("Split", gates, g.ints([o.hidden] * 4), results=4, axis=1)
            kept = g.op("Mul", g.op("Sigmoid", f), c)
            c = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", new)))
            h = states[step] = g.op("Mul", g.op("Sigmoid", out), g.op("Tanh", c))
    g.output(states[-1], (o.batch, o.hidden))
    return g.build()


def selective_scan(options: ScanOptions = ScanOptions()) -> onnx.ModelProto:
    """Builds a scan whose decay and input depend on the step: h = exp(delta A) h + delta B x, y = C h."""
    o = options
    g = GraphBuilder("selective_scan", seed=o.seed)
    x = g.input("sequence", (o.steps, o.channels))
    delta = g.op("Unsqueeze", g.op("Softplus", linear(g, x, o.channels, o.channels)), g.ints([2]))
    decay = g.constant(-np.exp(g.rng.standard_normal((o.channels, o.state), dtype=np.float32)), "decay")
    written = g.op("Unsqueeze", linear(g, x, o.channels, o.state, bias=False), g.ints([1]))
    read = g.op("Unsqueeze", linear(g, x, o.channels, o.state, bias=False), g.ints([1]))
    decays = g.op("Exp", g.op("Mul", delta, decay))
    added = g.op("Mul", g.op("Mul", delta, g.op("Unsqueeze", x, g.ints([2]))), written)
    zero = g.constant(np.zeros((o.channels, o.state), np.float32), "state")
    _, y = g.ops("Scan", zero, decays, added, read, results=2, body=_scan_body(g, o), num_scan_inputs=3)
    g.output(
        g.op("Mul", g.op("Reshape", y, g.ints([o.steps, o.channels])), silu(g, x)), (o.steps, o.channels)
    )
    return g.build()


def _scan_body(g: GraphBuilder, o: ScanOptions) -> onnx.GraphProto:
    """Makes a step on the state [channels, state]."""
    body = g.body("step")
    shapes = {
        "last": (o.channels, o.state),
        "decay": (o.channels, o.state),
        "added": (o.channels, o.state),
        "read": (1, o.state),
    }
    last, decay, added, read = (body.input(name, shape) for name, shape in shapes.items())
    state = body.op("Add", body.op("Mul", decay, last), added)
    body.output(state, (o.channels, o.state))
    y = body.op("ReduceSum", body.op("Mul", state, read), body.ints([1]), keepdims=0)
    body.output(y, (o.channels,))
    return body.graph()
