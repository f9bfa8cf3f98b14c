"""ONNX Runtime's CPU provider with all graph optimisations."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import TensorProto

from benchmarks.peers import Array, Facts, Settings


class OnnxRuntime:
    def __init__(self, settings: Settings) -> None:
        self._threads = settings.threads

    def versions(self) -> dict[str, str]:
        return {"onnxruntime": onnxruntime.__version__}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> _Program:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        return _Program(session, inputs)


class _Program:
    facts = Facts()

    def __init__(self, session: onnxruntime.InferenceSession, inputs: Sequence[Array]) -> None:
        self._session = session
        self._binding = session.io_binding()
        types = [entry.type for entry in session.get_inputs()]
        for entry, array, kind in zip(session.get_inputs(), inputs, types, strict=True):
            self._binding.bind_ortvalue_input(entry.name, _ort_value(array, kind))
        for entry in session.get_outputs():
            self._binding.bind_output(entry.name)

    def call(self) -> None:
        self._session.run_with_iobinding(self._binding)

    def outputs(self) -> list[Array]:
        return [_array(value) for value in self._binding.get_outputs()]


def _ort_value(array: Array, kind: str) -> onnxruntime.OrtValue:
    if kind == "tensor(bfloat16)":
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
            array.view("uint16"), TensorProto.BFLOAT16
        )
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def _array(value: onnxruntime.OrtValue) -> Array:
    if value.data_type() != "tensor(bfloat16)":
        return np.asarray(value.numpy())
    # It cannot be returned as an array, because numpy has no bfloat16 of its own.
    shape = value.shape()
    bits = ctypes.string_at(value.data_ptr(), 2 * math.prod(shape))
    return np.frombuffer(bits, ml_dtypes.bfloat16).reshape(shape)
