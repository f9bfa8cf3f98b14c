"""Workarounds for modules that IREE 3.13 compiles wrongly; `known_faults` lists these and all others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tilewright.errors import CompileError
from tilewright.pipelines import pass_text, pipeline

DATA_TILING = "--iree-opt-data-tiling"

RunPasses = Callable[[str, str], str]
"""A function that runs a pipeline on a module: it takes the module's text and the pipeline's, and returns text."""

_NARROW_TYPES = ("f16", "f8E", "f6E", "f4E")  # "bf16" contains "f16"
_DYNAMIC = re.compile(r"tensor<[^<>\s]*\?")

_NARROW_ARGUMENTS = r"[^\n]*\n\s*\^bb0\([^\n]*: (?:b?f16|f[468]E\w+)\b"
_NARROW_CONVOLUTION = re.compile(
    rf'"linalg\.\w*conv\w*"\({_NARROW_ARGUMENTS}'
    # An unrolled convolution is a generic op that indexes a dim by a sum or a multiple of loops.
    rf'|"linalg\.generic"\([^\n]*affine_map<\([^)]*\) -> \([^)]*[+*][^)]*\)>{_NARROW_ARGUMENTS}'
)
"""Pattern of a convolution, in generic text, with operands in a type narrower than f32."""

_DIVISION = re.compile(r'"arith\.(?:ceil|floor)?(?:div|rem)[su]i"\([^\n]* -> i\d+')
"""Pattern of a division or remainder of integers, in generic text."""

_SEVERAL_NUMBERS = re.compile(r'"arith\.constant"\(\) <\{value = dense<["\[]')
"""Pattern of a constant whose elements differ, in generic text."""


def has_dynamic_shapes(text: str) -> bool:
    """Returns True if a tensor of a module, in generic text, has a size that is known only at run time."""
    return _DYNAMIC.search(text) is not None


def without_data_tiling(text: str) -> str | None:
    """Returns why a module in generic text must not be compiled with data tiling; None if it may be."""
    if has_dynamic_shapes(text):
        return "IREE 3.13 computes dynamic shapes wrongly with it"
    return None


def widen_convolutions(text: str, run: RunPasses, folder: Path) -> tuple[str, int]:
    """Widens convolutions of narrow floats to f32; returns the module and the number of these convolutions.

    This is for CUDA, where IREE computes some of them wrongly. `text` is in generic form at the phase `preprocessing`,
    as it would go to IREE's back end; without such convolutions it is returned unchanged. `run` runs our passes, and
    `folder` takes a temporary file. Raises `CompileError` if our passes cannot read a module with such convolutions.
    """
    if not any(name in text for name in _NARROW_TYPES):
        return text, 0
    record = folder / "widened.json"
    try:
        widened = run(text, pipeline(pass_text("tile-widen-convolutions", {"record": str(record)})))
    except CompileError as error:
        if not _NARROW_CONVOLUTION.search(text):
            return text, 0
        raise CompileError(
            "convolutions in f16 or bf16 would be left to IREE, which computes some of them wrongly on CUDA, "
            f"and they cannot be computed in f32 instead ({error.message})",
            hint="convert the model to f32",
        ) from error
    count: int = json.loads(record.read_text())["widened"]
    return (widened, count) if count else (text, 0)


def guard_divisions(text: str, run: RunPasses) -> str:
    """Returns the module with divisions of integers that do not trap where IREE divides by padding, which is zero.

    This is for CPUs. `text` is in generic form at the phase `preprocessing`; without such divisions, or if our passes
    cannot read it, it is returned unchanged. `run` runs our passes.
    """
    if not _DIVISION.search(text):
        return text
    try:
        return run(text, pipeline(pass_text("tile-guard-divisions", {})))
    except CompileError:
        return text


def hide_constants(text: str, run: RunPasses) -> str:
    """Returns the module with small constants in memory where slices read them or what is computed from them.

    This is for CUDA, where IREE cannot compile a kernel with such a constant and a slice. `text` is in generic form at
    the phase `preprocessing`; without constants and slices, or if our passes cannot read it, it is returned unchanged.
    `run` runs our passes.
    """
    if '"tensor.extract_slice"' not in text or not _SEVERAL_NUMBERS.search(text):
        return text
    try:
        return run(text, pipeline(pass_text("tile-hide-constants", {})))
    except CompileError:
        return text


def widening_note(count: int) -> str:
    """Returns the note to the user about `count` widened convolutions."""
    what = "1 convolution" if count == 1 else f"{count} convolutions"
    return (
        f"{what} in f16 or bf16 that IREE compiles {'is' if count == 1 else 'are'} computed in f32: "
        "IREE 3.13 computes some wrongly in narrow types on CUDA"
    )
