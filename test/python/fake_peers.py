"""Fake peers that fail in every way a real one has, and one that does not fail."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from benchmarks.peers import Array, Facts, Settings, UnsupportedError


class Honest:
    """A correct peer, which uses onnx's own evaluator."""

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
    """A peer that runs a workload, but not repetitions of it in one program."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        if repetitions > 1:
            raise UnsupportedError("too long")
        return super().prepare(model, inputs, repetitions=repetitions, cache=cache)


class Dropping(Honest):
    """A peer that always runs one repetition."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        program = super().prepare(model.with_name("1.onnx"), inputs, repetitions=1, cache=cache)
        program.facts = Facts()
        return program


class Merging(Honest):
    """A peer that merges all repetitions into one kernel."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        program = super().prepare(model, inputs, repetitions=repetitions, cache=cache)
        program.facts = Facts(kernels=1)
        return program


class Wrong(Honest):
    """A peer whose results are off by one."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return _Changed(onnx.load(model), inputs, lambda result: [result + 1])


class NotANumber(Honest):
    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return _Changed(onnx.load(model), inputs, lambda result: [result * np.nan])


class Misshapen(Honest):
    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return _Changed(onnx.load(model), inputs, lambda result: [result[:-1]])


class Silent(Honest):
    """A peer without outputs."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return _Changed(onnx.load(model), inputs, lambda result: [])


class _Changed(Evaluation):
    """Base of peers whose outputs are changed by `change`."""

    def __init__(
        self, model: onnx.ModelProto, inputs: Sequence[Array], change: Callable[[Array], list[Array]]
    ) -> None:
        super().__init__(model, inputs)
        self._change = change

    def outputs(self) -> list[Array]:
        return [other for result in super().outputs() for other in self._change(result)]


class CrashingLater(Honest):
    """A peer that dies in the call whose number is in the environment variable CRASH_AT."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Evaluation:
        return _Mortal(onnx.load(model), inputs)


class _Mortal(Evaluation):
    _calls = 0

    def call(self) -> None:
        self._calls += 1
        if self._calls == int(os.environ["CRASH_AT"]):
            os.kill(os.getpid(), signal.SIGKILL)
        super().call()
