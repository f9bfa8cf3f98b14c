"""Offsets of the tensors that IREE binds to our kernels, which read and write whole vectors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import TensorProto, helper
from tilewright.iree.compiler import IreeCompiler
from tilewright.worker.process import Worker

HALF = TensorProto.FLOAT16


def half(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float16)


def products_of_a_slice() -> onnx.ModelProto:
    """Returns a model in which three products share a slice that begins at byte 200 of the first product."""
    split = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Split", ["p", "n"], ["u", "v"], axis=1),
    ]
    products = [helper.make_node("MatMul", ["v", f"w{i}"], [f"z{i}"]) for i in range(3)]
    weights = {"n": np.array([100, 768]), "w": half(768, 868), **{f"w{i}": half(768, 640) for i in range(3)}}
    results = [value("u", (1, 100), HALF), *(value(f"z{i}", (1, 640), HALF) for i in range(3))]
    return make_model([*split, *products], [value("x", (1, 768), HALF)], results, weights)


def offsets_of_bindings(stream: str) -> list[int]:
    """Returns the byte offsets of our dispatches' bindings in generic text of IREE's stream phase."""
    constants = dict(re.findall(r'(%\w+) = "arith.constant"\(\) <\{value = (-?\d+) : index', stream))
    dispatch = (
        r'"stream\.cmd\.dispatch"\(([^)]*)\) <\{[^\n]*@tilewright_kernels'
        r"[^\n]*SegmentSizes = array<i32: ([^>]*)>"
    )
    found = []
    for operands, sizes in re.findall(dispatch, stream):
        # Groups: workload, scalars, resources, their sizes, offsets, lengths
        counts = [int(count) for count in sizes.split(",")]
        begin = sum(counts[:4])
        found += [int(constants[name]) for name in operands.split(", ")[begin : begin + counts[4]]]
    return found


def without_barriers(text: str) -> str:
    """Returns the module as it would be without `tile-align-bindings`."""
    barrier = r'(%\w+) = "util\.optimization_barrier"\((%\w+)\).*\n'
    rest = re.sub(barrier, "", text)
    for copy, tensor in re.findall(barrier, text):
        rest = re.sub(rf"{copy}\b", tensor, rest)
    return rest


@pytest.mark.parametrize("target", ["cuda:h200", "cuda:a100"])
def test_bindings_begin_where_vectors_may(target: str, tmp_path: Path) -> None:
    program = tilewright.compile(products_of_a_slice(), target=target, dump_dir=tmp_path)
    stitched = (tmp_path / "3-stitched.mlir").read_text()
    flags = program.metadata.iree_flags
    with Worker(tmp_path) as worker:

        def unaligned(text: str) -> list[int]:
            stream = IreeCompiler(worker).resume(text.encode(), "preprocessing", flags=flags, stop="stream")
            offsets = offsets_of_bindings(stream.decode())
            assert offsets
            return [offset for offset in offsets if offset % 16]

        assert not unaligned(stitched)
        assert unaligned(without_barriers(stitched)), "IREE binds nothing there, so the model shows nothing"
