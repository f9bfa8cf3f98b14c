"""Peers that fail in every way a real one has, beside one that does not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx.reference import ReferenceEvaluator

from benchmarks.peers import Array, Facts, Settings, UnsupportedError


class Honest:
    """onnx's own evaluator."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def versions(self) -> dict[str, str]:
        return {"onnx": onnx.__version__}

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return Evaluation(onnx.load(model), inputs)


class Evaluation:
    def __init__(self, model: onnx.ModelProto, inputs: Sequence[Array]) -> None:
        self.facts = Facts(kernels=len(model.graph.node))
        self._evaluator = ReferenceEvaluator(model)
        self._feeds = {value.name: array for value, array in zip(model.graph.input, inputs, strict=True)}
        self._results: list[Array] = []

    def call(self) -> None:
        results = self._evaluator.run(None, self._feeds)
        assert isinstance(results, list)
        self._results = results

    def outputs(self) -> list[Array]:
        return self._results


class Crashing(Honest):
    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError


class Hanging(Honest):
    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        time.sleep(3600)
        raise AssertionError


class Refusing(Honest):
    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        raise UnsupportedError("knows no such operator")


class NotRepeating(Honest):
    """Runs a workload, but not many of them in one program."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        if repetitions > 1:
            raise UnsupportedError("too long")
        return super().prepare(model, inputs, repetitions=repetitions, cache=cache)


class Wrong(Honest):
    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return _OffByOne(onnx.load(model), inputs)


class _OffByOne(Evaluation):
    def outputs(self) -> list[Array]:
        return [result + 1 for result in super().outputs()]


class CrashingLater(Honest):
    """Dies in its turn, after its outputs were right."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return _Mortal(onnx.load(model), inputs)


class _Mortal(Evaluation):
    _calls = 0

    def call(self) -> None:
        self._calls += 1
        if self._calls > 3:
            os.kill(os.getpid(), signal.SIGKILL)
        super().call()
