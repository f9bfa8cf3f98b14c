"""The systems that are compared. Each is one small file here with a class that implements `Peer`.

A peer runs in a process of its own (`benchmarks.child`), so that a crash, a hang or a leak does not affect the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

Array = np.ndarray[Any, Any]

OURS = "tilewright"

PEERS: dict[str, str] = {
    "tilewright": "benchmarks.peers.tilewright_:Tilewright",
    "iree": "benchmarks.peers.iree_alone:IreeAlone",
    "onnxruntime": "benchmarks.peers.onnx_runtime:OnnxRuntime",
    "openvino": "benchmarks.peers.open_vino:OpenVino",
    "torch": "benchmarks.peers.torch_eager:TorchEager",
    "torch-compile": "benchmarks.peers.torch_compile:TorchCompile",
}
"""Class of each peer as `module:name`, by the name that `--peers` takes; the peer's own process imports it."""

LIMITS: dict[str, str] = {"copy": "benchmarks.peers.copy_loop:CopyLoop"}
"""Limits that take turns with the peers in memory-bound suites but compute nothing; they never count as the best
peer."""


@dataclass(frozen=True)
class Settings:
    """Settings that every peer receives once."""

    threads: int
    target: str = "cpu"
    """Our target; peers always run on this machine as it is."""


@dataclass(frozen=True)
class Facts:
    """Figures of a program beyond its time; None if the system has no such figure."""

    kernels: int | None = None
    """Kernels that a call launches."""
    bytes_moved: int | None = None
    """Bytes that the kernels of a call load and store."""
    detail: str = ""
    """Compiler flags, for the report."""
    barrier_seconds: float = 0.0
    """Seconds of a barrier between two repetitions, which do not count for the system."""
    extra: dict[str, Any] = field(default_factory=dict)


class Program(Protocol):
    """Protocol of a workload that is ready to be called, with its inputs in the system's own memory."""

    facts: Facts

    def call(self) -> None:
        """Runs the program to the end; the results stay in the system's own memory."""

    def outputs(self) -> list[Array]:
        """Returns the results of the last call."""


class Peer(Protocol):
    """Protocol of a system that runs ONNX models."""

    def __init__(self, settings: Settings) -> None: ...

    def versions(self) -> dict[str, str]:
        """Returns the versions of the relevant packages, by name."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Program:
        """Compiles and loads a model.

        `repetitions` is how often the model contains the workload, with barriers in between. `cache` is a folder for
        files that spare the next process the compilation; all repetitions of a workload share it.
        """


class UnsupportedError(Exception):
    """The system cannot run this model; the message gives the reason."""


def load_peer(reference: str, settings: Settings) -> Peer:
    """Returns the peer at `module:name`; raises ImportError if its package is not installed."""
    module, _, name = reference.partition(":")
    return cast(Peer, getattr(import_module(module), name)(settings))
