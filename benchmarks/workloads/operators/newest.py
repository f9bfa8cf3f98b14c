"""Operators of opsets from 23 on."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from benchmarks.workloads.operators.model import ELEMENTS, OpModel

# Types of the same width, of which the bits of no input are NaN.
_BITS = {
    **{
        "f32": TensorProto.INT32,
        "f16": TensorProto.INT16,
        "bf16": TensorProto.INT16,
        "bool": TensorProto.UINT8,
    },
    **{"i8": TensorProto.UINT8, "u8": TensorProto.INT8, "i32": TensorProto.UINT32, "i64": TensorProto.UINT64},
}


def newest(m: OpModel) -> None:
    """Adds attention, rotary embeddings, root-mean-square norms and others."""
    heads = [m.input(2, 4, 5, 8, name=name) for name in ("q", "k", "v")]
    m.check("Attention", *heads)
    m.check("Attention", *heads, is_causal=1)
    grouped = [m.input(2, 2, 5, 8, name=name) for name in ("k", "v")]
    m.check("Attention", heads[0], *grouped, scale=0.25)
    x = m.input(5, 37)
    m.check("RMSNormalization", x, m.numbers(37), axis=-1)
    m.check("Swish", x, alpha=1.5)
    m.check("CumProd", m.op("Tanh", x) if m.is_float else x, m.number(1, "i64"))
    if m.takes("RotaryEmbedding"):
        m.check("RotaryEmbedding", heads[0], m.numbers(2, 5, 4), m.numbers(2, 5, 4))
    if m.takes("TensorScatter"):
        m.check(
            "TensorScatter", m.input(2, 4, 5, 8), m.input(2, 4, 2, 8), m.constant(np.array([1, 3], np.int64))
        )
    m.check("SwiGLU", x, m.input(5, 37, name="y"))
    m.check("BitCast", x, to=_BITS[m.dtype])
    if m.takes("BitShift"):
        for direction in ("LEFT", "RIGHT"):
            m.check("BitShift", x, x if m.dtype == "u8" else m.op("Abs", x), direction=direction)
    if not m.is_float:
        return
    for op in ("Celu",):
        m.check(op, x)
    sequence = [m.input(2, 5, 16, name=name) for name in ("q", "k", "v")]
    m.check(
        *("LinearAttention", *sequence),
        results=2,
        q_num_heads=2,
        kv_num_heads=2,
        update_rule="linear",
    )
    m.check("CausalConvWithState", m.input(2, 6, 9), m.weights(6, 1, 4), results=2)
    if m.dtype == "bf16":
        _older(m, x)


def _older(m: OpModel, x: str) -> None:
    """Adds older operators that got bf16 late."""
    m.check("TopK", x, m.ints(3), results=2, axis=1)
    m.check("ReverseSequence", m.input(3, 5, 37), m.ints(5, 1, 2), time_axis=1, batch_axis=0)
    m.check("Compress", x, m.constant(np.array([True, False, True, True, False])), axis=0)
    m.check("Einsum", x, m.input(7, 37), equation="ij,kj->ik")
    two = m.op("Cast", m.constant(np.array([0, 1], np.float32)), to=ELEMENTS["bf16"])
    m.check("OneHot", m.input(4, dtype="i64", name="i"), m.number(6, "i64"), two, axis=0)
