"""Programs for GPUs on a stand-in for the driver, which runs their kernels on the simulated device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from stand_in_cuda import StandInCuda
from tilewright import _runtime
from tilewright.reference.oracle import float64_reference, random_inputs, relative_error, tolerance
from tilewright.runtime import cuda
from tilewright.runtime.cuda_session import CudaSession

from benchmarks.workloads.builder import GraphBuilder

TARGET = "cuda:h200"
Array = np.ndarray[Any, Any]


@dataclass
class Placed:
    """A program on a stand-in, and a call of it."""

    driver: StandInCuda
    program: tilewright.Program
    inputs: list[Array]
    expected: list[Array]

    @property
    def session(self) -> CudaSession:
        runner = self.program.runner()
        assert isinstance(runner, CudaSession)
        return runner

    def check(self, results: list[Array]) -> None:
        """Fails if results are further from float64 than the rounding of their type explains."""
        assert self.driver.error is None
        for result, expected in zip(results, self.expected, strict=True):
            assert result.shape == expected.shape
            assert relative_error(result, expected) <= tolerance(result.dtype.type)


def place(
    model: onnx.ModelProto,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    grid_sync: bool = True,
    deploy: bool = True,
    **options: Any,
) -> Placed:
    """Compiles a model for a GPU that the stand-in, with these options, is from now on."""
    driver = StandInCuda(**options)
    monkeypatch.setattr(cuda, "open_driver", lambda: driver)
    program = tilewright.compile(
        model, TARGET, dump_dir=folder, cache=False, tuning=False, grid_sync=grid_sync, deploy=deploy
    )
    driver.learn(folder)
    inputs = random_inputs(model, 5)
    return Placed(driver, program, inputs, float64_reference(model, inputs))


def two_softmaxes() -> onnx.ModelProto:
    """A kernel with a grid barrier or, without those, two kernels that hand on a tensor; there is a weight, too."""
    g = GraphBuilder("two_softmaxes")
    rows = g.op("Softmax", g.input("x", (256, 192)), axis=1)
    g.output(g.op("Mul", g.op("Softmax", rows, axis=0), g.vector(192, mean=1.0)), (256, 192))
    return g.build()


class Tensor:
    """A tensor of another library, in the memory of the stand-in's GPU."""

    def __init__(self, array: Array, *, device: int = 0) -> None:
        self._memory = np.empty(array.nbytes + 512, np.uint8)
        start = -self._memory.ctypes.data % 256
        self.array = self._memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.device, self.stream = device, -1

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device)

    def __dlpack__(self, *, stream: int) -> Any:
        self.stream = stream
        code = {"f": 2, "i": 0}[self.array.dtype.kind]
        bits = self.array.dtype.itemsize * 8
        return _runtime.lend_cuda(self, self.array.ctypes.data, self.array.shape, code, bits, self.device)


class Interface:
    """A tensor that has `__cuda_array_interface__` alone."""

    def __init__(self, array: Array, **others: Any) -> None:
        self._tensor = Tensor(array)
        held = self._tensor.array
        self.__cuda_array_interface__ = {
            "shape": held.shape,
            "typestr": held.dtype.str,
            "data": (held.ctypes.data, False),
            "version": 3,
            **others,
        }


def content(result: Any) -> Array:
    """Returns the content of a result in the stand-in's memory, as another library would read it."""
    described = result.__cuda_array_interface__
    dtype = np.dtype(described["typestr"])
    size = int(np.prod(described["shape"])) * dtype.itemsize
    data = ctypes.string_at(described["data"][0], size)
    return np.frombuffer(data, dtype).reshape(described["shape"])
