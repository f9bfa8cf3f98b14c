"""Kernels of more tensors than IREE's CUDA driver passes: weights behind one another in one binding, and what phases
hand to each other in another."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import tilewright
from onnx import TensorProto, helper
from tilewright.oracle import float64_reference, random_inputs, relative_error, tolerance
from tilewright.simulated import describe_launches, simulate_program

from benchmarks.workloads.builder import GraphBuilder

pytestmark = pytest.mark.skipif(not hasattr(tilewright, "simulate"), reason="no simulated device")

_MOST = 16
_WIDTHS = (72, 96, 57, 80, 131, 64, 88)


def _layers(dtype: int) -> onnx.ModelProto:
    """A norm and a matmul a layer, of widths that differ and are aligned to nothing: 25 weights, some of them constants
    of the program's text, some in f32."""
    g = GraphBuilder("layers")
    numpy_type = helper.tensor_dtype_to_np_dtype(dtype)

    def weight(*shape: int, mean: float = 0.0) -> str:
        values = mean + g.rng.standard_normal(shape) / np.sqrt(shape[0])
        return g.constant(values.astype(numpy_type))

    value = g.input("x", (24, _WIDTHS[0]), dtype)
    for fan_in, fan_out in itertools.pairwise(_WIDTHS):
        value = g.op("LayerNormalization", value, weight(fan_in, mean=1.0), weight(fan_in), axis=-1)
        value = g.op("Relu", g.op("Add", g.op("MatMul", value, weight(fan_in, fan_out)), weight(fan_out)))
    wide = g.op("Cast", value, to=TensorProto.FLOAT)
    table = g.constant(g.rng.standard_normal((24, _WIDTHS[-1])).astype(np.float32))
    g.output(g.op("Mul", wide, table), (24, _WIDTHS[-1]), TensorProto.FLOAT)
    return g.build()


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["f32", "f16"])
def test_a_kernel_of_many_weights(dtype: int, tmp_path: Path) -> None:
    model = _layers(dtype)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path, tuning=False)
    (kernel,) = program.kernels
    tensors = sum(len(part.tensors) for part in program.plan.kernels[0].parts)
    assert tensors > _MOST
    (launch,) = describe_launches(tmp_path)["launches"]
    ptx = (tmp_path / "kernels.ptx").read_text()
    parameters = re.findall(rf"\.param .*{kernel.name}_param_\d+[,\n]", ptx)
    assert len(launch["inputs"]) + len(launch["outputs"]) == len(parameters) <= _MOST
    inputs = random_inputs(model, 3)
    ran = simulate_program(program, tmp_path, inputs)  # raises if a kernel has a bug
    assert ran.outputs is not None
    (expected,) = float64_reference(model, inputs)
    numpy_type = helper.tensor_dtype_to_np_dtype(dtype)
    assert relative_error(ran.outputs[0], expected) <= len(_WIDTHS) * tolerance(numpy_type)
