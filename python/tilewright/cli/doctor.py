"""Checks an installation: which packages are present, whether they fit, and whether a small model compiles and runs."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.ir.opt import find_opt
from tilewright.iree.versions import PACKAGES, PINNED_IREE, check_iree, installed_version
from tilewright.system.cores import available_cores
from tilewright.system.ptxas import find_ptxas

_LIBRARIES = ("numpy", "ml_dtypes", "onnx", "msgspec")


@dataclass(frozen=True)
class Check:
    """One finding. `ok` is None if it is information only."""

    name: str
    ok: bool | None
    finding: str


def examine() -> list[Check]:
    """Runs every check; later ones depend on earlier ones."""
    checks = [
        Check("Python", sys.version_info >= (3, 11), platform.python_version()),
        *(_attempt(package, functools.partial(_iree_package, package)) for package in PACKAGES),
        *(_attempt(package, functools.partial(_package, package)) for package in _LIBRARIES),
        _attempt("extension module", _native),
        _optional("onnxruntime", "`run --compare` leaves it out"),
        Check(
            "ptxas",
            None,
            find_ptxas() or "not found; GPU kernels compile without it, but their registers stay unknown",
        ),
        Check("processor", None, _processor()),
        Check("threads", None, f"{available_cores()} available"),
        _attempt("tilewright-opt", _opt),
        _attempt("IREE's linker", _linker),
        _attempt("temporary folder", _temporary_space),
    ]
    if all(check.ok is not False for check in checks):
        checks.append(_attempt("compile and run", _compile_and_run))
    return checks


def _attempt(name: str, finding: Callable[[], str]) -> Check:
    try:
        return Check(name, True, finding())
    except (TilewrightError, OSError) as error:
        return Check(name, False, str(error))


def _iree_package(package: str) -> str:
    check_iree(package)
    return installed_version(package) or ""


def _package(package: str) -> str:
    version = installed_version(package)
    if version is None:
        raise TilewrightError("not installed", hint=f"run: pip install {package}")
    return version


def _opt() -> str:
    path = find_opt()
    if shutil.which(path) is None:
        raise TilewrightError(
            "not found, so a failing pass cannot be reproduced separately",
            hint="run: pip install --force-reinstall --no-deps tilewright",
        )
    return path


def _linker() -> str:
    """Checks the linker of IREE's package, with which IREE links every module's kernels (never with the system's)."""
    check_iree("iree-base-compiler")
    package = importlib.util.find_spec("iree.compiler")
    for folder in (package.submodule_search_locations if package else None) or ():
        linker = Path(folder) / "_mlir_libs" / "iree-lld"
        if os.access(linker, os.X_OK):
            return str(linker)
    raise TilewrightError(
        "iree-lld is missing from IREE's compiler package, or is not executable",
        hint=f"run: pip install --force-reinstall --no-deps iree-base-compiler=={PINNED_IREE}",
    )


def _native() -> str:
    from tilewright.ir.native import native

    return f"MLIR {native.llvm_version}"


def _optional(package: str, consequence: str) -> Check:
    version = installed_version(package)
    return Check(package, None, version or f"not installed: {consequence}")


def _processor() -> str:
    """Returns the processor's name and those of its features that targets require."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    known = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_bf16", "amx_tile")
    flags = set(fields.get("flags", "").split())
    return f"{fields.get('model name', 'unknown')} ({', '.join(f for f in known if f in flags) or 'no AVX2'})"


def _temporary_space() -> str:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if not os.access(folder, os.W_OK):
        raise OSError(f"{folder} is not writable; set TMPDIR to another folder")
    return f"{folder}, {free / 1e9:.1f} GB free"


def _compile_and_run() -> str:
    import numpy as np

    from tilewright.api.compilation import compile

    text = """
    func.func @twice(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
      %0 = arith.addf %x, %x : tensor<3x5xf32>
      return %0 : tensor<3x5xf32>
    }"""
    program = compile(text, threads=1, cache=False)
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    if not np.array_equal(program(x)[0], 2 * x):
        raise TilewrightError("a small program gives wrong results", hint="please report this")
    return f"a small program in {sum(program.metadata.seconds.values()):.1f} s"
