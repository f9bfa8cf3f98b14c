"""The systems that are compared. Each is one small file here with a class that is a `Peer`.

A peer lives in a process of its own (`benchmarks.child`), so it may crash, hang or leak without harm to the rest.
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
"""By the name that `--peers` takes, the class as `module:name`; it is imported in the peer's own process."""

LIMITS: dict[str, str] = {"copy": "benchmarks.peers.copy_loop:CopyLoop"}
"""What takes turns with the peers in suites that memory binds, but computes nothing: never the best peer."""


@dataclass(frozen=True)
class Settings:
    """What every peer is told once."""

    threads: int
    target: str = "cpu"
    """A target of ours; peers run on this machine as it is."""


@dataclass(frozen=True)
class Facts:
    """What a system knows of a program beyond its time; None where it has no such figure."""

    kernels: int | None = None
    """Kernels that a call launches."""
    bytes_moved: int | None = None
    """Bytes that the kernels of a call load and store."""
    detail: str = ""
    """Flags, for the report."""
    barrier_seconds: float = 0.0
    """Time of what stands between two repetitions, which is not the system's own."""
    extra: dict[str, Any] = field(default_factory=dict)


class Program(Protocol):
    """A workload that is ready to be called, its inputs in the system's own memory."""

    facts: Facts

    def call(self) -> None:
        """Runs it to the end; results stay in the system's own memory."""

    def outputs(self) -> list[Array]:
        """The results of the last call."""


class Peer(Protocol):
    """A system that runs ONNX models."""

    def __init__(self, settings: Settings) -> None: ...

    def versions(self) -> dict[str, str]:
        """Of the packages that matter, by name."""

    def prepare(self, model: Path, inputs: Sequence[Array], *, repetitions: int, cache: Path) -> Program:
        """Compiles and loads a model.

        `repetitions` is how often the workload is in the model, with barriers in between. `cache` is a folder for
        what the next process needs not to compile it again; it is the same for all repetitions of a workload.
        """


class UnsupportedError(Exception):
    """The system cannot run this model; the message says why."""


def load_peer(reference: str, settings: Settings) -> Peer:
    """The peer at `module:name`; ImportError where its package is not installed."""
    module, _, name = reference.partition(":")
    return cast(Peer, getattr(import_module(module), name)(settings))
