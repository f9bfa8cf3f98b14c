"""A whole program on the simulated device: its kernels one after another, on the model's own numbers.

What IREE computes (convolutions, say) is not run here. A kernel that reads such a tensor gets random numbers in
its place: what it moves and whether it is safe do not depend on them, and its results are not shown.
"""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import ProgramError
from tilewright.iree.text import from_iree
from tilewright.module import Module
from tilewright.pipelines import pass_text, pipeline
from tilewright.signature import Array, element_dtype
from tilewright.simulator import SimulationReport, simulate
from tilewright.stored import read_parameter
from tilewright.targets import Target

if TYPE_CHECKING:
    from tilewright.program import Program


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """What the simulated device made of a program."""

    kernels: tuple[SimulationReport, ...]
    """In launch order; a kernel that is launched twice is there twice."""
    outputs: list[Array] | None
    """None where one depends on what IREE computes."""
    invented: tuple[str, ...]
    """Ops of IREE whose results kernels read: random numbers stood for them."""


def simulate_program(program: Program, dump: Path, arrays: Sequence[Array]) -> SimulatedRun:
    """Runs the kernels of a program for a GPU; `dump` is the folder that it was dumped to when it was compiled.

    Raises `SimulationError` if a kernel has a bug.
    """
    flow = _build(dump)
    machine = Target.lookup(dump / "target.json")
    tensors = _Tensors(flow.get("tensors", []), arrays, program.parameter_paths)
    reports = []
    for launch in flow["launches"]:
        read = [tensors.get(number) for number in launch["inputs"]]
        made = [tensors.new(number) for number in launch["outputs"]]
        report = simulate(
            flow["kernels"],
            launch["kernel"],
            (launch["workgroups"],),
            [*read, *made],
            target=machine,
            empty=range(len(read), len(read) + len(made)),
            dynamic_shared_bytes=launch["dynamic_shared_bytes"],
        )
        report.check()
        tensors.put(launch["outputs"], made, is_real=tensors.are_real(launch["inputs"]))
        reports.append(report)
    results = flow.get("results", [])
    complete = bool(reports) and tensors.are_real(results)
    return SimulatedRun(
        kernels=tuple(reports),
        outputs=[tensors.get(number) for number in results] if complete else None,
        invented=tuple(sorted(tensors.invented)),
    )


def _build(dump: Path) -> dict[str, Any]:
    """What `tile-print-launches` says, of kernels at the NVVM dialect by the plan of the dumped program."""
    module = Module.parse(from_iree((dump / "2-preprocessing.mlir").read_text()))
    read = {"target": str(dump / "target.json"), "plan-in": str(dump / "plan.json")}
    module.run_unrecorded(pipeline(pass_text("tilewright-cuda-kernels", read)))
    with tempfile.TemporaryDirectory(prefix="tilewright-simulated-") as folder:
        path = Path(folder) / "launches.json"
        module.run_unrecorded(pipeline(pass_text("tile-print-launches", {"output": str(path)})))
        flow: dict[str, Any] = json.loads(path.read_text())
        return flow


_PARAMETER = re.compile(r'#stream\.parameter\.named<(?:"(?P<scope>[^"]*)"::)?"(?P<name>[^"]*)">')


class _Tensors:
    """The tensors of `tile-print-launches`, made when they are first asked for."""

    def __init__(
        self, described: Sequence[Mapping[str, Any]], arguments: Sequence[Array], archives: Mapping[str, Path]
    ) -> None:
        self._described, self._arguments, self._archives = described, arguments, archives
        self._known: dict[int, Array] = {}
        self._unreal: set[int] = set()
        self.invented: set[str] = set()

    def get(self, number: int) -> Array:
        if number not in self._known:
            self._known[number] = np.ascontiguousarray(self._make(number))
        tensor = self._known[number]
        return tensor if tensor.flags.writeable else tensor.copy()

    def new(self, number: int) -> Array:
        shape, dtype = self._type(number)
        return np.zeros(shape, dtype)

    def put(self, numbers: Sequence[int], made: Sequence[Array], *, is_real: bool) -> None:
        self._known.update(zip(numbers, made, strict=True))
        if not is_real:
            self._unreal.update(numbers)

    def are_real(self, numbers: Sequence[int]) -> bool:
        for number in numbers:
            self.get(number)
        return not self._unreal.intersection(numbers)

    def _type(self, number: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        described = self._described[number]
        return tuple(described["shape"]), element_dtype(described["element"])

    def _make(self, number: int) -> Array:
        described, (shape, dtype) = self._described[number], self._type(number)
        if "argument" in described:
            return np.asarray(self._arguments[described["argument"]], dtype).reshape(shape)
        if "base64" in described:
            return _constant(base64.b64decode(described["base64"]), shape, dtype, is_splat=described["splat"])
        if parameter := _PARAMETER.search(described.get("global", "")):
            scope = parameter["scope"] or ""
            if scope not in self._archives:
                raise ProgramError("its weights are missing", where=f"scope '{scope}'")
            return read_parameter(self._archives[scope], parameter["name"], shape, dtype).reshape(shape)
        self.invented.add(described.get("op", "a global"))
        self._unreal.add(number)
        drawn = np.random.default_rng(number).standard_normal(shape)
        return (drawn > 0 if dtype == np.bool_ else drawn).astype(dtype)


def _constant(data: bytes, shape: tuple[int, ...], dtype: np.dtype[Any], *, is_splat: bool) -> Array:
    if dtype == np.bool_ and not is_splat:
        # MLIR packs them eight to a byte.
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return bits[: int(np.prod(shape))].astype(np.bool_).reshape(shape)
    elements = np.frombuffer(data, dtype if dtype != np.bool_ else np.uint8)
    return np.broadcast_to(elements.astype(dtype), shape) if is_splat else elements.reshape(shape)
