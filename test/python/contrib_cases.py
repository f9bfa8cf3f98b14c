"""ONNX Runtime's own ops, one node a case, and what ONNX Runtime computes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]

_OPSET = 21


@dataclass(frozen=True)
class Case:
    """A node, and what it reads: the inputs of the model, then constants; an empty name leaves an input out."""

    op: str
    inputs: Mapping[str, Array]
    constants: Mapping[str, Array] = field(default_factory=dict)
    order: Sequence[str] = ()
    outputs: Sequence[str] = ("y",)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = "com.microsoft"
    ours: Sequence[int] | None = None
    """Which outputs are compared; None for all."""

    def model(self) -> onnx.ModelProto:
        order = self.order or [*self.inputs, *self.constants]
        node = helper.make_node(
            self.op, list(order), list(self.outputs), domain=self.domain, name="node", **self.attributes
        )
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in self.inputs.items()
        ]
        graph = helper.make_graph(
            [node],
            "graph",
            values,
            [onnx.ValueInfoProto(name=name) for name in self.outputs if name],
            [numpy_helper.from_array(x, name) for name, x in self.constants.items()],
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def expected(self) -> list[Array]:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            self.model().SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return [np.asarray(y) for y in session.run(None, dict(self.inputs))]

    def typed_model(self, expected: Sequence[Array]) -> onnx.ModelProto:
        """Returns the model with the types of its outputs, as ONNX's checker wants them."""
        model = self.model()
        del model.graph.output[:]
        names = [name for name in self.outputs if name]
        model.graph.output.extend(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(y.dtype), y.shape)
            for name, y in zip(names, expected, strict=True)
        )
        return model


_rng = np.random.default_rng(42)


def _f(*shape: int) -> Array:
    return _rng.standard_normal(shape).astype(np.float32)


def _bytes(dtype: type, *shape: int) -> Array:
    bounds = np.iinfo(dtype)
    return _rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def _signed_weights(*shape: int) -> Array:
    """Weights of 7 bits: ONNX Runtime adds pairs of products with bytes in 16 bits on processors without VNNI."""
    return _bytes(np.int8, *shape) // np.int8(2)


def _scalar(value: float) -> Array:
    return np.array(value, np.float32)


def _activations() -> dict[str, Case]:
    x, bias = {"x": _f(2, 5, 8)}, {"b": _f(8)}
    return {
        "bias_gelu": Case("BiasGelu", x, bias),
        "fast_gelu": Case("FastGelu", x, bias),
        "fast_gelu_without_bias": Case("FastGelu", x),
        "gelu": Case("Gelu", x),
        "quick_gelu": Case("QuickGelu", x, attributes={"alpha": 1.5}),
    }


def _norms() -> dict[str, Case]:
    x, skip, gamma = {"x": _f(2, 5, 8)}, {"s": _f(2, 5, 8)}, {"g": _f(8)}
    epsilon = {"epsilon": 1e-3}
    with_sum = ("y", "", "", "sum")
    ids = _rng.integers(0, 11, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
    tables = {"w": _f(11, 8), "p": _f(7, 8), "s": _f(2, 8), "g": _f(8), "b": _f(8)}
    return {
        "skip": Case(
            "SkipLayerNormalization", x | skip, gamma | {"b": _f(8), "a": _f(8)}, (), with_sum, epsilon
        ),
        "skip_without_shift": Case("SkipLayerNormalization", x | skip, gamma),
        "skip_of_one_batch": Case("SkipLayerNormalization", x | {"s": _f(5, 8)}, gamma | {"b": _f(8)}),
        "skip_simplified": Case(
            "SkipSimplifiedLayerNormalization", x | skip, gamma | {"a": _f(8)}, (), with_sum, epsilon
        ),
        "simplified": Case("SimplifiedLayerNormalization", x, gamma, attributes=epsilon, domain=""),
        "simplified_along_two_axes": Case(
            "SimplifiedLayerNormalization", x, {"g": _f(5, 8)}, attributes={"axis": 1}, domain=""
        ),
        "embed": Case(
            "EmbedLayerNormalization",
            {"ids": ids, "seg": ids % 2, "m": mask},
            tables,
            ("ids", "seg", "w", "p", "s", "g", "b", "m"),
            ("y", "count"),
            epsilon,
        ),
        "embed_with_positions": Case(
            "EmbedLayerNormalization",
            {"ids": ids, "at": ids % 7},
            tables,
            ("ids", "", "w", "p", "", "g", "b", "", "at"),
            ("y", "count", "sum"),
        ),
    }


def _products() -> dict[str, Case]:
    cases = {
        "fused_gemm": Case(
            "FusedGemm",
            {"a": _f(3, 8)},
            {"b": _f(8, 6), "c": _f(6)},
            attributes={"activation": "Relu", "alpha": 0.5},
        ),
        "fused_gemm_leaky": Case(
            "FusedGemm",
            {"a": _f(3, 8)},
            {"b": _f(6, 8), "c": _f(6)},
            attributes={"activation": "LeakyRelu", "activation_alpha": 0.3, "transB": 1},
        ),
        "dynamic_quantize": Case(
            "DynamicQuantizeMatMul",
            {"a": _f(3, 8)},
            {"w": _signed_weights(8, 6), "s": _f(6) ** 2, "z": np.zeros(6, np.int8), "b": _f(6)},
        ),
        "integer_to_float": Case(
            "MatMulIntegerToFloat",
            {"a": _bytes(np.uint8, 3, 8)},
            {
                "as": _scalar(0.02),
                "w": _signed_weights(8, 6),
                "ws": _f(6),
                "az": np.array(100, np.uint8),
                "wz": _rng.integers(-5, 5, 6).astype(np.int8),
                "b": _f(6),
            },
            ("a", "w", "as", "ws", "az", "wz", "b"),
        ),
    }
    activations: dict[str, dict[str, Any]] = {
        "relu": {"activation": "Relu", "pads": [1, 1, 1, 1]},
        "clip": {"activation": "Clip", "activation_params": [0.0, 1.5]},
        "leaky": {"activation": "LeakyRelu", "activation_params": [0.3]},
        "hard_sigmoid": {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    }
    for name, attributes in activations.items():
        cases[f"fused_conv_{name}"] = Case(
            "FusedConv", {"x": _f(1, 3, 6, 6)}, {"w": _f(4, 3, 3, 3), "b": _f(4)}, attributes=attributes
        )
    for a, b, batch in np.ndindex(2, 2, 2):
        left: tuple[int, ...] = (4, 3) if batch else (3, 4)
        left = (left[0], 5, left[1]) if a and not batch else (*left, 5)
        left = (5, 3, 4) if a and batch else left
        right = (3, 6, 5) if b else (3, 5, 6)
        attributes = {"transA": a, "transB": b, "transBatchA": batch, "alpha": 0.5}
        cases[f"fused_matmul_{a}{b}{batch}"] = Case(
            "FusedMatMul", {"a": _f(*left), "b": _f(*right)}, attributes=attributes
        )
    return cases


def _blocks() -> dict[str, Case]:
    cases = {}
    for bits, (terms, block), zeros in [
        (bits, size, zeros)
        for bits in (2, 4, 8)
        for size in ((64, 32), (40, 16))
        for zeros in ("none", "packed", "float")
    ]:
        if (bits, zeros) == (8, "float"):
            continue  # ONNX Runtime has no such kernel
        blocks = -(-terms // block)
        constants = {"q": _bytes(np.uint8, 6, blocks, block * bits // 8), "s": _f(6, blocks)}
        order = ["a", "q", "s", "z" if zeros != "none" else "", "", "bias"]
        if zeros == "packed":
            constants["z"] = _bytes(np.uint8, 6, -(-blocks * bits // 8))
        elif zeros == "float":
            constants["z"] = _rng.integers(0, 4, (6, blocks)).astype(np.float32)
        cases[f"blocks_of_{bits}_bits_{zeros}_{terms}"] = Case(
            "MatMulNBits",
            {"a": _f(2, 3, terms)},
            {**constants, "bias": _f(6)},
            order,
            attributes={"K": terms, "N": 6, "bits": bits, "block_size": block},
        )
    return cases


_HEADS = {"num_heads": 4}


def _attentions() -> dict[str, Case]:
    weights = {"w": _f(16, 48) * 0.3, "b": _f(48) * 0.3}
    x, past = {"x": _f(2, 5, 16)}, {"p": _f(2, 2, 4, 3, 4)}
    mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
    masks = {
        "of_keys": mask,
        "of_pairs": _rng.integers(0, 2, (2, 5, 5)).astype(np.int32),
        "of_ends": np.array([3, 5], np.int32),
        "of_ends_and_begins": np.array([3, 5, 1, 2], np.int32),
    }
    cases = {
        "attention": Case("Attention", x, weights, attributes=_HEADS),
        "attention_causal": Case("Attention", x, weights, attributes=_HEADS | {"unidirectional": 1}),
        "attention_with_past": Case(
            "Attention",
            x | past | {"m": np.array([[0, 0, 1, 1, 1, 1, 1, 1], [1] * 8], np.int32)},
            weights,
            ("x", "w", "b", "m", "p"),
            ("y", "present"),
            _HEADS | {"unidirectional": 1, "scale": 0.3},
        ),
        "attention_with_bias": Case(
            "Attention", x | {"r": _f(1, 4, 5, 5)}, weights, ("x", "w", "b", "", "", "r"), attributes=_HEADS
        ),
        "attention_of_sizes": Case(
            "Attention",
            x,
            {"w": _f(16, 56), "b": _f(56)},
            attributes=_HEADS | {"qkv_hidden_sizes": [16, 16, 24]},
        ),
        "attention_of_bytes": Case(
            "QAttention",
            {"x": _bytes(np.uint8, 2, 5, 16)},
            {
                "w": _signed_weights(16, 48),
                "b": weights["b"],
                "is": _scalar(0.01),
                "ws": _scalar(0.01),
                "iz": np.array(120, np.uint8),
                "wz": np.array(3, np.int8),
            },
            ("x", "w", "b", "is", "ws", "", "iz", "wz"),
            attributes=_HEADS,
        ),
    }
    for name, value in masks.items():
        cases[f"attention_mask_{name}"] = Case(
            "Attention", x | {"m": value}, weights, ("x", "w", "b", "m"), attributes=_HEADS
        )
    return cases


def _multi_heads() -> dict[str, Case]:
    op, three = "MultiHeadAttention", {"q": _f(2, 5, 16), "k": _f(2, 7, 16), "v": _f(2, 7, 24)}
    mask = np.array([[1] * 7, [1, 1, 1, 0, 0, 0, 0]], np.int32)
    past = {"pk": _f(2, 4, 3, 4), "pv": _f(2, 4, 3, 4)}
    split = {"k": _f(2, 4, 7, 4), "v": _f(2, 4, 7, 4)}
    own = {"k": _f(2, 5, 16), "v": _f(2, 5, 16)}
    return {
        "heads": Case(op, three, attributes=_HEADS),
        "heads_with_biases": Case(op, three, {"b": _f(56)}, attributes=_HEADS | {"scale": 0.2}),
        "heads_with_mask": Case(op, three | {"m": mask}, {}, ("q", "k", "v", "", "m"), attributes=_HEADS),
        "heads_with_lengths": Case(
            op, three | {"m": np.array([4, 6], np.int32)}, {}, ("q", "k", "v", "", "m"), attributes=_HEADS
        ),
        "heads_with_bias": Case(
            op, three | {"r": _f(2, 4, 5, 7)}, {}, ("q", "k", "v", "", "", "r"), attributes=_HEADS
        ),
        "heads_with_past": Case(
            op,
            {"q": three["q"], **own, **past},
            {},
            ("q", "k", "v", "", "", "", "pk", "pv"),
            ("y", "key", "value"),
            _HEADS,
        ),
        "heads_causal": Case(op, {"q": three["q"], **own}, attributes=_HEADS | {"unidirectional": 1}),
        "heads_split_before": Case(op, {"q": three["q"], **split}, attributes=_HEADS),
    }


def _rotary() -> dict[str, Case]:
    caches = {"c": np.cos(_f(12, 4)), "s": np.sin(_f(12, 4))}
    places = np.array([[0, 1, 2, 3, 4], [2, 3, 4, 5, 6]])
    flat, part = {"x": _f(2, 5, 16), "p": places}, {"x": _f(2, 4, 5, 12), "p": places}
    partial = {"rotary_embedding_dim": 8, "num_heads": 4}
    return {
        "rotary": Case("RotaryEmbedding", flat, caches),
        "rotary_interleaved": Case("RotaryEmbedding", flat, caches, attributes={"interleaved": 1}),
        "rotary_from_a_position": Case("RotaryEmbedding", {"x": _f(2, 5, 16), "p": np.array([3])}, caches),
        "rotary_of_a_part": Case("RotaryEmbedding", part, caches, attributes=partial),
        "rotary_interleaved_of_a_part": Case(
            "RotaryEmbedding", part, caches, attributes=partial | {"interleaved": 1}
        ),
    }


def _grouped(
    length: int,
    past: int,
    total: int,
    ends: Sequence[int],
    more: Mapping[int, Array] | None = None,
    **attributes: Any,
) -> Case:
    """Makes a GroupQueryAttention of four heads of 16 that share two of keys; `more` are its inputs from 7 on.

    Elements of the cache behind a sequence have no defined value, so presents are compared only if all sequences fill
    it.
    """
    inputs = {
        "q": _f(2, length, 64),
        "k": _f(2, length, 32),
        "v": _f(2, length, 32),
        "pk": _f(2, 2, past, 16),
        "pv": _f(2, 2, past, 16),
        "ends": np.array(ends, np.int32),
    }
    constants = {"total": np.array(total, np.int32)}
    order = ["q", "k", "v", "pk", "pv", "ends", "total"]
    if attributes.get("do_rotary"):
        constants |= {"cos": np.cos(_f(20, 8)), "sin": np.sin(_f(20, 8))}
        order += ["cos", "sin"]
    for place, value in (more or {}).items():
        order += [""] * (place - len(order)) + [f"more_{place}"]
        inputs[f"more_{place}"] = value
    is_full = past + length == total and all(end == total - 1 for end in ends)
    return Case(
        "GroupQueryAttention",
        inputs,
        constants,
        order,
        ("y", "key", "value"),
        {"num_heads": 4, "kv_num_heads": 2, **attributes},
        ours=None if is_full else (0,),
    )


def _groups() -> dict[str, Case]:
    return {
        "grouped_token": _grouped(1, 6, 7, [6, 6]),
        "grouped_rotary": _grouped(1, 6, 7, [6, 6], do_rotary=1),
        "grouped_rotary_interleaved": _grouped(1, 6, 7, [6, 6], do_rotary=1, rotary_interleaved=1),
        "grouped_prompt": _grouped(5, 0, 5, [4, 4], do_rotary=1),
        "grouped_window": _grouped(1, 6, 7, [6, 6], local_window_size=3),
        "grouped_window_of_a_prompt": _grouped(5, 0, 5, [4, 4], local_window_size=2),
        "grouped_soft_cap": _grouped(1, 6, 7, [6, 6], softcap=2.0),
        "grouped_smooth": _grouped(1, 6, 7, [6, 6], smooth_softmax=1),
        "grouped_sink": _grouped(1, 6, 7, [6, 6], {11: _f(4)}),
        "grouped_bias": _grouped(1, 6, 7, [6, 6], {10: _f(1, 4, 1, 7)}),
        "grouped_positions": _grouped(1, 6, 7, [6, 6], {9: np.array([[3], [4]])}, do_rotary=1),
        "grouped_lengths_that_differ": _grouped(1, 6, 7, [4, 6], do_rotary=1),
        "grouped_cache_with_room": _grouped(1, 12, 7, [4, 6], do_rotary=1),
        "grouped_both_ways": _grouped(3, 0, 3, [2, 2], causal=0),
    }


def _quantised() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for dtype in (np.uint8, np.int8):
        zeros = [np.array(zero, dtype) for zero in (5, 7, 9)]
        pair = {"as": _scalar(0.1), "az": zeros[0], "bs": _scalar(0.2), "bz": zeros[1]}
        result = {"cs": _scalar(0.3), "cz": zeros[2]}
        one = {"as": _scalar(0.1), "az": zeros[0], "cs": _scalar(0.03), "cz": zeros[2]}
        two = {"a": _bytes(dtype, 2, 3), "b": _bytes(dtype, 2, 3)}
        order = ("a", "as", "az", "b", "bs", "bz", "cs", "cz")
        image = {"a": _bytes(dtype, 2, 3, 6, 5)}
        names: dict[str, Case] = {
            "add": Case("QLinearAdd", two, pair | result, order),
            "mul": Case("QLinearMul", two, pair | result | {"cs": _scalar(1.3)}, order),
            "sigmoid": Case("QLinearSigmoid", {"a": two["a"]}, one),
            "leaky": Case("QLinearLeakyRelu", {"a": two["a"]}, one, attributes={"alpha": 0.2}),
            "concat": Case(
                "QLinearConcat",
                two,
                pair | result,
                ("cs", "cz", "a", "as", "az", "b", "bs", "bz"),
                attributes={"axis": 1},
            ),
            "average": Case(
                "QLinearAveragePool", image, one, attributes={"kernel_shape": [2, 3], "pads": [0, 1, 0, 1]}
            ),
            "global": Case("QLinearGlobalAveragePool", image, one),
            "global_channels_last": Case(
                "QLinearGlobalAveragePool", image, one, attributes={"channels_last": 1}
            ),
        }
        cases |= {f"{name}_{np.dtype(dtype).name}": case for name, case in names.items()}
    return cases


_GROUPS: Sequence[Callable[[], dict[str, Case]]] = (
    *(_activations, _norms, _products, _blocks, _attentions, _multi_heads, _rotary, _groups, _quantised),
)
CASES = {name: case for make in _GROUPS for name, case in make().items()}


def compare(case: Case, actual: Sequence[Any], expected: Sequence[Array], *, tolerance: float) -> None:
    """Compares with ONNX Runtime. `tolerance` is relative to the largest magnitude of a result, because the terms of
    its sums have that magnitude, which ONNX Runtime adds in an order of its own."""
    for index in range(len(expected)) if case.ours is None else case.ours:
        y, wanted = np.asarray(actual[index]), expected[index]
        assert y.dtype == wanted.dtype
        assert y.shape == wanted.shape
        if wanted.dtype.kind == "f":
            largest = float(np.abs(wanted).max(initial=0.0))
            np.testing.assert_allclose(y, wanted, rtol=0, atol=tolerance * largest)
        else:  # a value between two bytes may be rounded to either, if sums are in another order
            assert np.abs(y.astype(int) - wanted.astype(int)).max() <= 1
