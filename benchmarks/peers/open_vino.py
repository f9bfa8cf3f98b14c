"""OpenVINO's CPU plugin, for latency, at the model's own precision."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import openvino
from onnx import TensorProto, helper

from benchmarks.peers import Array, Facts, Settings

_NOT_KERNELS = ("Input", "Output", "Const")
_CALLS = 200


class OpenVino:
    def __init__(self, settings: Settings) -> None:
        self._threads = settings.threads
        self._core = openvino.Core()
        self._fixed_seconds: float | None = None

    def versions(self) -> dict[str, str]:
        return {"openvino": openvino.__version__.partition("-")[0]}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> _Program:
        # By default, OpenVINO may compute float32 in bfloat16 if the processor has it.
        is_narrow = any(array.dtype == ml_dtypes.bfloat16 for array in inputs)
        program = self._compile(self._core.read_model(model), inputs, "bf16" if is_narrow else "f32")
        kernels = program.facts.kernels or 0
        if repetitions == 1 and kernels == 1:
            # OpenVINO would fuse elementwise repetitions, and every barrier would cost time. So the fixed cost of a
            # call is measured separately, on a single element.
            program.facts = Facts(kernels=kernels, extra={"fixed_seconds": self._fixed()})
        return program

    def _compile(self, model: Any, inputs: Sequence[Array], precision: str) -> _Program:
        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": self._threads,
            "INFERENCE_PRECISION_HINT": precision,
        }
        return _Program(self._core.compile_model(model, "CPU", options), inputs)

    def _fixed(self) -> float:
        if self._fixed_seconds is None:
            value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
            result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
            graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "fixed", [value], [result])
            opsets = [helper.make_opsetid("", 17)]
            proto: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
            model = self._core.read_model(proto.SerializeToString())
            program = self._compile(model, [np.ones(1, np.float32)], "f32")
            program.call()
            started = time.perf_counter()
            for _ in range(_CALLS):
                program.call()
            self._fixed_seconds = (time.perf_counter() - started) / _CALLS
        return self._fixed_seconds


class _Program:
    def __init__(self, compiled: openvino.CompiledModel, inputs: Sequence[Array]) -> None:
        layers = [
            str(op.get_rt_info()["layerType"].astype(str)) for op in compiled.get_runtime_model().get_ops()
        ]
        self.facts = Facts(kernels=sum(layer not in _NOT_KERNELS for layer in layers))
        self._request = compiled.create_infer_request()
        for index, array in enumerate(inputs):
            self._request.set_input_tensor(index, _tensor(array))
        self.call = self._request.infer

    def outputs(self) -> list[Array]:
        return [_array(tensor) for tensor in self._request.output_tensors]


def _tensor(array: Array) -> openvino.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        tensor = openvino.Tensor(openvino.Type.bf16, list(array.shape))
        tensor.data.view(np.uint16)[...] = array.view(np.uint16)
        return tensor
    return openvino.Tensor(array, shared_memory=True)


def _array(tensor: openvino.Tensor) -> Array:
    # OpenVINO returns bfloat16 as float16 with the same bits, because numpy has no bfloat16.
    is_narrow = tensor.element_type == openvino.Type.bf16
    return np.array(tensor.data.view(ml_dtypes.bfloat16) if is_narrow else tensor.data)
