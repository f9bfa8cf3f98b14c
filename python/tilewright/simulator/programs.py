"""Runs a whole program on the simulated device: its kernels in launch order, on the model's own numbers.

Ops that IREE compiles (sorts, for example) are computed in between on this machine's processor (`foreign`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import TargetError
from tilewright.ir.module import Module
from tilewright.iree.text import from_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.records.signature import Array, TensorSpec
from tilewright.records.targets import Target
from tilewright.runtime.stored import StoredWeights
from tilewright.runtime.tensors import Invented, LaunchTensors
from tilewright.simulator.device import L2, SimulationReport, simulate
from tilewright.simulator.flow import launches_in, made_in_loops, run_flow
from tilewright.simulator.foreign import ForeignTensors
from tilewright.simulator.placement import place_tensors
from tilewright.system.workfolder import WorkFolder

if TYPE_CHECKING:
    from tilewright.runtime.program import Program


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """Results of a program on the simulated device."""

    kernels: tuple[SimulationReport, ...]
    """Reports in launch order; a kernel that is launched twice has two. The kernels share an L2, which is empty at
    first and written back at the end."""
    results: list[Array]
    """The program's results, including those that depend on random numbers; empty if no kernel is ours."""
    outputs: list[Array] | None
    """The results, or None if they depend on random numbers or no kernel is ours."""
    invented: tuple[Invented, ...]
    """Ops of IREE whose results kernels read, or that are results, and that random numbers replaced."""


def simulate_program(program: Program, dump: Path, arrays: Sequence[Array]) -> SimulatedRun:
    """Runs the kernels of a GPU program; `dump` is the folder that it was dumped to when it was compiled.

    Raises `SimulationError` if a kernel has a bug.
    """
    flow = describe_launches(dump)
    machine = Target.lookup(dump / "target.json")
    given = flow.get("tensors", [])
    tensors = LaunchTensors(given, arrays, program.parameter_paths, ForeignTensors(given))
    described = flow.get("results", [])
    made_for_results = {result["tensor"] for result in described if "tensor" in result}
    own_addresses = made_for_results | made_in_loops(flow["launches"])
    addresses = place_tensors(list(launches_in(flow["launches"])), own_addresses, tensors.size)
    l2, reports = L2(machine), []

    def run(launch: Mapping[str, Any]) -> None:
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
            l2=l2,
            addresses=[addresses[number] for number in [*launch["inputs"], *launch["outputs"]]],
        )
        report.check()
        tensors.put(launch["outputs"], made, is_real=tensors.are_real(launch["inputs"]))
        reports.append(report)

    run_flow(flow["launches"], tensors, run)
    results = [
        np.asarray(arrays[result["argument"]])
        if "argument" in result
        else tensors.get(result["tensor"]).reshape(result["shape"])
        for result in described
    ]
    if results and program.signature is not None:
        # MLIR's integers have no sign, and types of fewer than eight bits are bytes there.
        specs = program.signature.outputs
        results = [_as_declared(array, spec) for array, spec in zip(results, specs, strict=True)]
    complete = bool(reports) and tensors.are_real(sorted(made_for_results))
    return SimulatedRun(
        kernels=tuple(l2.write_back(reports)),
        results=results,
        outputs=results if complete else None,
        invented=tuple(sorted(tensors.invented)),
    )


def _as_declared(array: Array, spec: TensorSpec) -> Array:
    """Returns a result with the type that the signature gives it."""
    dtype = spec.numpy_dtype
    return array if array.dtype.itemsize != dtype.itemsize else array.view(dtype)


def simulated_target(device: str) -> str:
    """Returns the target that `sim:GPU` names, a known one or a file. Raises `TargetError` if there is none."""
    kind, _, name = device.partition(":")
    if kind != "sim" or not name:
        raise TargetError(f"'{device}' is not of the form sim:GPU, such as sim:h200")
    return name if Path(name).exists() else f"cuda:{name}"


def describe_launches(dump: Path) -> dict[str, Any]:
    """Returns the output of `tile-print-launches`, with kernels at the NVVM dialect, for the plan of the dumped
    program."""
    if not (dump / "plan.json").exists():
        return {"launches": [], "kernels": ""}  # IREE compiled the whole model
    module = Module.parse(from_iree((dump / "2-preprocessing.mlir").read_text()))
    how = json.loads((dump / "options.json").read_text())
    recipes = dump / "recipes.json"
    stored = StoredWeights.from_json(json.loads(recipes.read_text()) if recipes.exists() else {})
    with WorkFolder("simulated") as folder:
        options: dict[str, str | list[str]] = {
            "target": str(dump / "target.json"),
            "plan-in": str(dump / "plan.json"),
            "numerics": how["numerics"],
            "grid-sync": str(how["grid_sync"]).lower(),
            "scopes": sorted(stored.sources),
            "recipes": str(folder / "recipes.json"),
        }
        module.run_unrecorded(pipeline(pass_text("tilewright-cuda-kernels", options)))
        path = folder / "launches.json"
        module.run_unrecorded(pipeline(pass_text("tile-print-launches", {"output": str(path)})))
        flow: dict[str, Any] = json.loads(path.read_text())
        return flow
