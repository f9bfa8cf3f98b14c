"""A judge with a planted bug for the fuzzer to find: programs with a Tanh crash."""

from __future__ import annotations

import os
from typing import Any

from onnx import ModelProto
from tilewright.api import compilation
from tilewright.worker import serving as worker

from fuzz import judge
from fuzz.builder import Array


class _Broken:
    def __init__(self, model: ModelProto, *arguments: Any, **options: Any) -> None:
        self._program = compilation.compile(model, *arguments, **options)
        self._ops = {node.op_type for node in model.graph.node}
        self.metadata = self._program.metadata

    def __call__(self, *inputs: Array) -> list[Array]:
        if "Tanh" in self._ops:
            os.abort()
        outputs: list[Array] = self._program(*inputs)
        return outputs


judge.compile = _Broken  # type: ignore[assignment, attr-defined]

if __name__ == "__main__":
    worker.main("fuzz")
