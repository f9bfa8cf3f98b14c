"""Programs with loops on the simulated device, as they are compiled or with a fault planted into the text of their
kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import tilewright
from tilewright.reference.drawing import random_inputs
from tilewright.simulator import programs
from tilewright.simulator.programs import SimulatedRun, describe_launches, simulate_program


def compiled(model: onnx.ModelProto, folder: Path, **options: Any) -> tilewright.Program:
    return tilewright.compile(model, target="cuda:h200", dump_dir=folder, strict=True, **options)


def simulated(
    model: onnx.ModelProto, folder: Path, change: Callable[[str], str] | None = None, **options: Any
) -> tuple[tilewright.Program, SimulatedRun]:
    """Runs a model on the simulated device; `change` plants a fault into the text of its kernels."""
    program = compiled(model, folder, **options)
    with pytest.MonkeyPatch.context() as patch:
        if change is not None:

            def planted(dump: Path) -> dict[str, Any]:
                flow = describe_launches(dump)
                kernels = change(flow["kernels"])
                assert kernels != flow["kernels"]
                return {**flow, "kernels": kernels}

            patch.setattr(programs, "describe_launches", planted)
        return program, simulate_program(program, folder, random_inputs(model, 3))


def without_last_barrier(text: str) -> str:
    """Removes the barrier between two steps, which is the last one of the kernel that runs all steps."""
    begin = text.index("_steps(")
    call = list(re.finditer(r"llvm\.call @tile_grid_barrier\([^\n]*\n", text[begin:]))[-1]
    return text[: begin + call.start()] + text[begin + call.end() :]


def never_copied(text: str) -> str:
    """Has weights copied in all steps but the first one."""
    begin = text.index("_steps(")
    question = list(re.finditer(r'llvm\.icmp "eq" %\w+, %\w+ : i64', text[begin:]))[-1]
    at = begin + question.start()
    return text[:at] + text[at:].replace('"eq"', '"ne"', 1)
