"""Tests of kernels that overwrite their input with their result."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from tilewright.reference.oracle import float64_reference, relative_error, tolerance

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.cpu_levels

_SHAPE = (130, 1029)
_TIES = re.compile(r"tied_operands = \[(.*?)\]")


def _softmaxes(*, first_is_output: bool = False) -> onnx.ModelProto:
    """Applies softmax over rows, columns and rows in three kernels, of which the last two may overwrite their
    inputs."""
    g = GraphBuilder("softmaxes")
    rows = g.op("Softmax", g.input("x", _SHAPE), axis=1)
    columns = g.op("Softmax", rows, axis=0)
    g.output(g.op("Softmax", columns, axis=1), list(_SHAPE))
    if first_is_output:
        g.output(rows, list(_SHAPE))
    return g.build()


def _compile(model: onnx.ModelProto, target: str = "cpu") -> tuple[tilewright.Program, list[str]]:
    """Returns the program, and for each of its dispatches the inputs that its results overwrite."""
    with tempfile.TemporaryDirectory() as folder:
        program = tilewright.compile(model, target, threads=[2], dump_dir=folder, strict=True)
        stitched = (Path(folder) / "3-stitched.mlir").read_text()
    return program, [ties.replace(" : index", "") for ties in _TIES.findall(stitched)]


def test_kernels_overwrite_what_nobody_else_reads() -> None:
    _check_that_two_overwrite("cpu")


@pytest.mark.cpu_levels("cpu")
def test_variants_overwrite_what_nobody_else_reads() -> None:
    _check_that_two_overwrite("x86-64-avx2,x86-64-v2")


def _check_that_two_overwrite(target: str) -> None:
    model = _softmaxes()
    program, ties = _compile(model, target)
    assert ties == ["-1", "0", "0"]
    x = np.random.default_rng(1).standard_normal(_SHAPE).astype(np.float32)
    before = x.copy()
    (expected,) = float64_reference(model, [x])
    for _ in range(2):  # the second call reads memory that the first one left
        (actual,) = program(x)
        assert relative_error(actual, expected) <= tolerance(np.float32)
    np.testing.assert_array_equal(x, before)


def test_what_is_read_later_stays() -> None:
    model = _softmaxes(first_is_output=True)
    program, ties = _compile(model)
    assert ties == ["-1", "-1", "0"]
    x = np.random.default_rng(2).standard_normal(_SHAPE).astype(np.float32)
    for actual, expected in zip(program(x), float64_reference(model, [x]), strict=True):
        assert relative_error(actual, expected) <= tolerance(np.float32)
