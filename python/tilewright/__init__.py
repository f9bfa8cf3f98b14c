"""Tilewright: a deep learning compiler that stitches operators into few kernels, in front of IREE.

    import tilewright

    program = tilewright.compile("model.onnx")
    outputs = program(*inputs)
    print(program.explain())
    program.save("model.vmfb")

Every error that a user can cause is a `TilewrightError`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilewright.errors import (
    CompileError,
    CompileTimeoutError,
    InputError,
    IreeError,
    IrError,
    ModelError,
    NativeError,
    OutputError,
    PassError,
    PlanError,
    ProgramError,
    PythonPassError,
    SimulationError,
    TargetError,
    TilewrightError,
    TuningError,
    VerificationError,
    VersionError,
)

if TYPE_CHECKING:
    from tilewright import dialects as dialects
    from tilewright import ir as ir
    from tilewright import passes as passes
    from tilewright import pipelines as pipelines
    from tilewright.api.compilation import compile
    from tilewright.compare.check import check
    from tilewright.ir.module import Diagnostic, Module
    from tilewright.records.options import CompileOptions
    from tilewright.records.plan import Plan
    from tilewright.records.targets import MicroKernel, Target, known_targets, register_micro_kernel
    from tilewright.runtime.loading import load
    from tilewright.runtime.program import Program
    from tilewright.simulator.device import SimulationReport, simulate
    from tilewright.tuning.tuner import Tuning, tune
    from tilewright.worker.process import keep_compilers

__all__ = [
    "CompileError",
    "CompileOptions",
    "CompileTimeoutError",
    "Diagnostic",
    "InputError",
    "IrError",
    "IreeError",
    "MicroKernel",
    "ModelError",
    "Module",
    "NativeError",
    "OutputError",
    "PassError",
    "Plan",
    "PlanError",
    "Program",
    "ProgramError",
    "PythonPassError",
    "SimulationError",
    "SimulationReport",
    "Target",
    "TargetError",
    "TilewrightError",
    "Tuning",
    "TuningError",
    "VerificationError",
    "VersionError",
    "check",
    "compile",
    "keep_compilers",
    "known_targets",
    "load",
    "register_micro_kernel",
    "simulate",
    "tune",
]

# These are imported at first use, because the worker process and `tilewright --help` need none of them.
_LAZY = {
    "CompileOptions": "records.options",
    "Diagnostic": "ir.module",
    "MicroKernel": "records.targets",
    "Module": "ir.module",
    "Plan": "records.plan",
    "Program": "runtime.program",
    "SimulationReport": "simulator.device",
    "Target": "records.targets",
    "Tuning": "tuning.tuner",
    "check": "compare.check",
    "compile": "api.compilation",
    "keep_compilers": "worker.process",
    "known_targets": "records.targets",
    "load": "runtime.loading",
    "register_micro_kernel": "records.targets",
    "simulate": "simulator.device",
    "tune": "tuning.tuner",
}


# Modules that documents speak of as `tilewright.passes`, without an import of their own.
_MODULES = ("dialects", "errors", "ir", "passes", "pipelines")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tilewright.{name}")
    if name == "__version__":
        return import_module("tilewright.system.version").package_version()
    if name not in _LAZY:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    return getattr(import_module(f"tilewright.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})
