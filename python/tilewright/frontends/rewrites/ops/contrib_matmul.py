"""The products of ONNX Runtime: FusedMatMul, FusedGemm, FusedConv, MatMulNBits, and those of bytes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tilewright.frontends.rewrites.rule import CONTRIB_DOMAIN, UNSUPPORTED, Operation, Rule

_F32 = np.dtype(np.float32)


def _transposed(operation: Operation, index: int, *, side: str) -> str:
    """Makes an operand of a FusedMatMul; `transBatch` moves its first dim before the last one."""
    rank = operation.rank(index)
    perm = list(range(rank))
    if operation.attribute(f"transBatch{side}", 0):
        perm = [*perm[1:-1], perm[0], perm[-1]]
    if operation.attribute(f"trans{side}", 0) and rank > 1:
        perm[-2:] = perm[:-3:-1]
    return operation.transpose(operation.inputs[index], perm)


def _multiply_transposed(operation: Operation) -> bool:
    product = operation.make(
        "MatMul", _transposed(operation, 0, side="A"), _transposed(operation, 1, side="B")
    )
    alpha = operation.attribute("alpha", 1.0)
    if alpha == 1.0:
        return operation.give(product)
    return operation.finish("Mul", product, operation.number(alpha, operation.dtype(0)))


def _activated(operation: Operation, x: str, names: tuple[str, str, str]) -> str:
    """Makes the activation of a fused op: `names` are the attributes with its name and its parameters."""
    name, alpha, beta = (operation.attribute(key) for key in names)
    if isinstance(alpha, list):
        alpha, beta = [*alpha, None, None][:2]
    match (name or b"").decode():
        case "":
            return x
        case "LeakyRelu":
            return operation.make("LeakyRelu", x, alpha=0.01 if alpha is None else alpha)
        case "Clip":
            bounds = [-np.inf if alpha is None else alpha, np.inf if beta is None else beta]
            return operation.make("Clip", x, *(operation.number(b, operation.dtype(0)) for b in bounds))
        case "HardSigmoid":
            given = {"alpha": alpha, "beta": beta}
            return operation.make("HardSigmoid", x, **{k: v for k, v in given.items() if v is not None})
        case "Relu" | "Sigmoid" | "Tanh" as known:
            return operation.make(known, x)
        case unknown:
            return operation.refuse(
                f"the activation {unknown} is not supported", "export the model without fusing it"
            )


def _multiply_and_activate(operation: Operation) -> bool:
    given = {name: operation.attribute(name) for name in ("alpha", "beta", "transA", "transB")}
    product = operation.make(
        "Gemm", *operation.inputs, **{name: value for name, value in given.items() if value is not None}
    )
    names = ("activation", "activation_alpha", "activation_beta")
    return operation.give(_activated(operation, product, names))


def _convolve_and_activate(operation: Operation) -> bool:
    given = {
        name: operation.attribute(name)
        for name in ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    }
    inputs = [name for name in operation.inputs[:3] if name]
    result = operation.make(
        "Conv", *inputs, **{name: value for name, value in given.items() if value is not None}
    )
    if operation.has(3):
        result = operation.make("Add", result, operation.inputs[3])
    return operation.give(
        _activated(operation, result, ("activation", "activation_params", "activation_params"))
    )


def _unpacked(operation: Operation, packed: str, shape: list[int], bits: int) -> str:
    """Makes the unsigned numbers of `bits` bits in the last dim of bytes, the lowest bits first, as i32.

    `shape` is that of the bytes; -1 for one unknown dim.
    """
    left = operation.cast(packed, TensorProto.INT32)
    if bits == 8:
        return left
    numbers = []
    for _ in range(8 // bits):
        step = operation.constant(np.int32(1 << bits))
        rest = operation.make("Div", left, step)
        numbers.append(operation.make("Sub", left, operation.make("Mul", rest, step)))
        left = rest
    axis = operation.ints(len(shape))
    joined = operation.make(
        "Concat", *(operation.make("Unsqueeze", n, axis) for n in numbers), axis=len(shape)
    )
    return operation.reshape(joined, [*shape[:-1], shape[-1] * (8 // bits)])


def _multiply_by_blocks(operation: Operation) -> bool:
    """Dequantises the weights in f32, rounds them to the type of A, and multiplies.

    The weights are (q - zero point) · scale, with one of both for each row of B and block of K.
    """
    bits, block = operation.attribute("bits", 4), operation.attribute("block_size")
    rows, terms = operation.attribute("N"), operation.attribute("K")
    if operation.attribute("weight_prepacked", 0) or bits not in (2, 4, 8):
        operation.refuse(f"weights of {bits} bits, or packed for one device, are not supported")
    blocks, perByte = -(-terms // block), 8 // bits
    if operation.static_shape(1) != [rows, blocks, block // perByte]:
        operation.refuse(f"its weights have the shape {operation.shape(1)}", "quantise the model again")
    numbers = _unpacked(operation, operation.inputs[1], [rows, blocks, block // perByte], bits)
    zeros = _zero_points(operation, rows=rows, blocks=blocks, bits=bits)
    scales = operation.reshape(operation.cast(operation.inputs[2], TensorProto.FLOAT), [rows, blocks, 1])
    if operation.has(4):  # the block of each term of K
        numbers = operation.slice(operation.reshape(numbers, [rows, blocks * block]), 1, 0, terms)
        scales, zeros = (
            operation.make("Gather", operation.reshape(value, [rows, blocks]), operation.inputs[4], axis=1)
            for value in (scales, zeros)
        )
    shifted = operation.make("Sub", operation.cast(numbers, TensorProto.FLOAT), zeros)
    weights = operation.make("Mul", shifted, scales)
    if not operation.has(4):
        weights = operation.reshape(weights, [rows, blocks * block])
        if blocks * block != terms:
            weights = operation.slice(weights, 1, 0, terms)
    weights = operation.cast(operation.transpose(weights, [1, 0]), operation.kind(0))
    product = operation.make("MatMul", operation.inputs[0], weights)
    if operation.has(5):
        return operation.finish("Add", product, operation.inputs[5])
    return operation.give(product)


def _zero_points(operation: Operation, *, rows: int, blocks: int, bits: int) -> str:
    """Makes the zero points in f32: given as numbers, packed in bytes, or by default half of the range."""
    if not operation.has(3):
        middle = np.full((rows, blocks, 1), 1 << (bits - 1), np.float32)
        return (
            operation.constant(middle)
            if rows * blocks < 256
            else operation.number(float(middle.flat[0]), _F32)
        )
    zeros = operation.inputs[3]
    if operation.kind(3) == TensorProto.UINT8:
        row_bytes = -(-blocks * bits // 8)
        zeros = operation.reshape(zeros, [rows, row_bytes])
        zeros = _unpacked(operation, zeros, [rows, row_bytes], bits)
        if row_bytes * (8 // bits) != blocks:
            zeros = operation.slice(zeros, 1, 0, blocks)
    return operation.reshape(operation.cast(zeros, TensorProto.FLOAT), [rows, blocks, 1])


def _multiply_dynamically(operation: Operation) -> bool:
    """Quantises A by its extrema, and multiplies bytes."""
    x, weights, scale, *_ = operation.inputs
    numbers, step, zero = operation.make_many("DynamicQuantizeLinear", x, count=3)
    zeros = [zero, operation.inputs[3]] if operation.has(3) else [zero]
    product = operation.make("MatMulInteger", numbers, weights, *zeros)
    return _scale_product(operation, product, step, scale, bias=4)


def _multiply_to_floats(operation: Operation) -> bool:
    if operation.varies(2):
        operation.refuse("a scale for each term of A is not supported", "quantise A with one scale")
    numbers, weights, step, scale, *_ = operation.inputs
    zeros = [operation.inputs[index] if operation.has(index) else "" for index in (4, 5)]
    while zeros and not zeros[-1]:
        zeros.pop()
    return _scale_product(
        operation, operation.make("MatMulInteger", numbers, weights, *zeros), step, scale, bias=6
    )


def _scale_product(operation: Operation, product: str, step: str, scale: str, *, bias: int) -> bool:
    scaled = operation.make(
        "Mul", operation.cast(product, TensorProto.FLOAT), operation.make("Mul", step, scale)
    )
    if operation.has(bias):
        return operation.finish("Add", scaled, operation.inputs[bias])
    return operation.give(scaled)


RULES = (
    Rule("DynamicQuantizeMatMul", _multiply_dynamically, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("FusedConv", _convolve_and_activate, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("FusedGemm", _multiply_and_activate, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("FusedMatMul", _multiply_transposed, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("MatMulIntegerToFloat", _multiply_to_floats, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("MatMulNBits", _multiply_by_blocks, UNSUPPORTED, domain=CONTRIB_DOMAIN),
    Rule("TransposeMatMul", _multiply_transposed, UNSUPPORTED, domain=CONTRIB_DOMAIN),
)
