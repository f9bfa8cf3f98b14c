"""One workload of a bundle on the GPU machine: draws its inputs and weights again and gives its expected results.

Arrays that took long to draw are stored in the workload's folder for the systems that run later.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from iree import runtime
from onnx import ModelProto, numpy_helper
from tilewright.reference.drawing import random_inputs
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.program import Program
from tilewright.runtime.stored import StoredWeights

from benchmarks.gpu_check.sketch import relative_error
from benchmarks.peers import Array
from benchmarks.workloads import WORKLOADS

SEED = 0
SCOPE = "model"
"""Scope of the weights, for the compiler."""


class DrawingError(RuntimeError):
    """The arrays drawn here differ from those that the program was compiled for."""


def build_model(name: str, dtype: str) -> ModelProto:
    """Builds a workload's model in f32, f16 or bf16."""
    return WORKLOADS[name].in_type(dtype).build()


def digest(arrays: Sequence[Array]) -> str:
    """Returns a hash of the bytes of arrays."""
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


def weights_of(model: ModelProto) -> dict[str, Array]:
    """Returns every initializer, by name."""
    return {tensor.name: np.asarray(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}


def write_weights(weights: Mapping[str, Array], recipes: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Writes the program's parameter files, in the layout that its kernels read; none if it has no weights."""
    if not weights:
        return {}
    index = runtime.ParameterIndex()
    for name, array in weights.items():
        index.add_buffer(name, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    plain = folder / f"{SCOPE}.irpa"
    index.create_archive_file(str(plain))
    return StoredWeights.from_json(recipes).write({SCOPE: plain}, folder)


@dataclass(frozen=True)
class Judgement:
    """The relative error of one output, the largest that is accepted, and the output's name."""

    error: float
    tolerance: float
    output: str

    @property
    def excess(self) -> tuple[float, float]:
        """Sort key: the error in units of what is accepted, and the error."""
        if self.tolerance:
            return self.error / self.tolerance, self.error
        return math.inf if self.error else 0.0, self.error


class Case:
    """A workload of the bundle in a folder; everything is made on first use."""

    def __init__(self, folder: Path, entry: Mapping[str, Any]) -> None:
        self._folder, self._entry = folder, entry

    @functools.cached_property
    def model(self) -> ModelProto:
        """The model as its builder makes it, with random weights."""
        path = self._folder / "model.onnx"
        if path.exists():
            return onnx.load(path)
        model = build_model(self._entry["workload"], self._entry["dtype"])
        self._check("weights", list(weights_of(model).values()), self._entry["weights_digest"])
        onnx.save(model, unfinished := path.with_suffix(".unfinished"))
        unfinished.replace(path)
        return model

    @functools.cached_property
    def inputs(self) -> list[Array]:
        """The inputs that the expected results belong to."""
        inputs = random_inputs(self.model, SEED)
        self._check("inputs", inputs, self._entry["inputs_digest"])
        return inputs

    @functools.cached_property
    def parameters(self) -> dict[str, Path]:
        """Parameter files by scope, for IREE."""
        written = self._folder / "parameters.json"
        if written.exists():
            return {scope: self._folder / name for scope, name in self._json(written.name).items()}
        paths = write_weights(weights_of(self.model), self._json("recipes.json"), self._folder)
        written.write_text(json.dumps({scope: path.name for scope, path in paths.items()}))
        return paths

    @functools.cached_property
    def program(self) -> Program:
        """The module for IREE's runtime."""
        return Program(
            module=self._folder / "model.vmfb",
            parameters=self.parameters,
            metadata=Metadata.from_json(self._json("program.json")),
        )

    @property
    def launches(self) -> dict[str, Any]:
        """The output of `tile-print-launches`."""
        return self._json("launches.json")

    @property
    def ptx(self) -> bytes:
        """PTX of our kernels."""
        return (self._folder / "kernels.ptx").read_bytes()

    def judge(self, results: Sequence[Array]) -> Judgement:
        """Compares the outputs with float64, and describes the worst one.

        The error of an output that has another number of elements than expected is infinite.
        """
        expected = self._entry["outputs"]
        if len(results) != len(expected):
            return Judgement(float("inf"), self._entry["tolerance"], f"{len(results)} results")
        return max(map(self._judgement, results, expected), key=lambda judged: judged.excess)

    def _judgement(self, result: Array, expected: Mapping[str, Any]) -> Judgement:
        is_whole = np.size(result) == int(np.prod(expected["shape"]))
        error = relative_error(result, expected["sketch"], expected["norm"]) if is_whole else float("inf")
        return Judgement(error, expected.get("tolerance", self._entry["tolerance"]), expected.get("name", ""))

    def _check(self, what: str, arrays: Sequence[Array], expected: str) -> None:
        if digest(arrays) != expected:
            raise DrawingError(
                f"numpy {np.__version__} draws other {what} here than where the bundle was made"
            )

    def _json(self, name: str) -> dict[str, Any]:
        path = self._folder / name
        read: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return read
