"""Measures the bytes that a model's kernels move on their bindings, with an instrumented build.

The instrumented kernels have the code of the plain kernels and two counters. They are called directly, on buffers of
the right size, whose content does not matter because no access depends on data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tilewright.ir.module import Module
from tilewright.iree.text import from_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.records.signature import Array
from tilewright.runtime.kernels import Kernel, buffer, load_kernels

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, kw_only=True)
class KernelTraffic:
    """Bytes that one launch of a kernel loads from and stores to its bindings, and the sizes of the bindings."""

    name: str
    loaded: int
    stored: int
    input_bytes: int
    output_bytes: int

    @property
    def compulsory(self) -> int:
        """Bytes of each input and each output once."""
        return self.input_bytes + self.output_bytes

    @property
    def ratio(self) -> float:
        return (self.loaded + self.stored) / self.compulsory


def measure_traffic(dump: Path) -> list[KernelTraffic]:
    """Measures the traffic of every kernel of a program on the instrumented build of the same plan.

    `dump` is the folder that the program was dumped to when it was compiled; the build goes there, too.
    """
    module = Module.parse(from_iree((dump / "2-preprocessing.mlir").read_text()))
    written = {"object-path": dump / "counted.o", "manifest": dump / "manifest.json"}
    read = {"target": dump / "target.json", "plan-in": dump / "plan.json"}
    files = {option: str(path) for option, path in {**written, **read}.items()}
    module.run_unrecorded(pipeline(pass_text("tilewright-cpu", {**files, "count-bytes": True})))
    return run_instrumented(written["object-path"], written["manifest"])


def compulsory_bytes(model: ModelProto, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
    """Returns the bytes of an ONNX model's inputs, outputs and weights, each once, which is the least that computing it
    can move.

    Scalars are left out, because they are part of the code, and so are integer weights, which are axes and shapes.
    """
    from onnx import TensorProto, numpy_helper

    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
    weights = [numpy_helper.to_array(w) for w in model.graph.initializer if w.data_type in floats]
    return sum(array.nbytes for array in [*inputs, *outputs, *(w for w in weights if math.prod(w.shape) > 1)])


def run_instrumented(object_file: Path, manifest: Path) -> list[KernelTraffic]:
    """Measures the traffic of every kernel in an object that `tilewright-cpu{count-bytes manifest=…}` wrote."""
    return [_run(kernel) for kernel in load_kernels(object_file, manifest)]


def _run(kernel: Kernel) -> KernelTraffic:
    sizes = kernel.binding_bytes
    buffers = [buffer(size) for size in sizes]
    counters = np.zeros(2, dtype=np.int64)
    kernel.run([*(address for _, address in buffers), counters.ctypes.data])
    inputs = len(sizes) - kernel.outputs
    return KernelTraffic(
        name=kernel.name,
        loaded=int(counters[0]),
        stored=int(counters[1]),
        input_bytes=sum(sizes[:inputs]),
        output_bytes=sum(sizes[inputs:]),
    )
