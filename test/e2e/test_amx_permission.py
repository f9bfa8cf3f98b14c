"""Tile registers need a permission of Linux: without it, another variant runs, or the program says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright
from amx_cases import (
    HAS_AMX,
    amx_target,
    assert_rounded_once,
    bf16,
    compile,
    loaded_session,
    matmul,
    plain_target,
    run,
)
from amx_emulator import emulated
from tilewright.ir.module import Module
from tilewright.iree.text import from_iree
from tilewright.pipelines import pass_text, pipeline
from tilewright.runtime.kernels import buffer, load_kernels

Array = np.ndarray[Any, Any]


@pytest.mark.skipif(HAS_AMX, reason="this machine grants AMX")
def test_without_tiles_another_variant_runs(tmp_path: Path) -> None:
    """In the last step the processor reports AMX, but the operating system does not grant it.

    Weights are packed as tiles read them: pairs along K, in blocks of 32 columns, padded to K steps of 32.
    """
    rng = np.random.default_rng(9)
    a, b = bf16(rng, 13, 67), bf16(rng, 67, 75)
    targets = [amx_target(), plain_target()]
    program = tilewright.compile(
        matmul(a, b, weight=True), targets, threads=1, tuning=False, dump_dir=tmp_path / "dump"
    )
    (got,), emulation = run(program, a)
    assert_rounded_once(got, a, b)
    assert sum(emulation.counts.values()) == 0

    packed = np.pad(b, ((0, 29), (0, 21))).reshape(48, 2, 3, 32).transpose(2, 0, 3, 1).copy()
    for assume, runs_on_tiles in ((False, False), (True, True)):
        kernel = _kernel(tmp_path, targets, assume=assume)
        assert kernel.binding_bytes[:2] == [a.nbytes, packed.nbytes]
        got, counts = _call(kernel, a, packed, columns=75)
        assert_rounded_once(got, a, b)
        assert (counts["products"] > 0) == runs_on_tiles
        assert runs_on_tiles or sum(counts.values()) == 0


def _kernel(folder: Path, targets: Sequence[tilewright.Target], *, assume: bool) -> Any:
    """Returns the only kernel of the program whose intermediate forms are in the folder, separate from the program."""
    module = Module.parse(from_iree((folder / "dump" / "2-preprocessing.mlir").read_text()))
    files = [folder / f"{target.name}.json" for target in targets]
    for file, target in zip(files, targets, strict=True):
        file.write_text(json.dumps(target.to_json()))
    options: dict[str, Any] = {
        "object-path": str(folder / f"kernels-{assume}.o"),
        "manifest": str(folder / f"manifest-{assume}.json"),
        "target": str(files[0]),
        "variants": [str(file) for file in files[1:]],
        "plan-in": str(folder / "dump" / "plan.json"),
        "assume-tiles": assume,
    }
    module.run_unrecorded(pipeline(pass_text("tilewright-cpu", options)))
    (kernel,) = load_kernels(Path(options["object-path"]), Path(options["manifest"]))
    return kernel


def _call(kernel: Any, a: Array, packed: Array, *, columns: int) -> tuple[Array, dict[str, int]]:
    """Calls the kernel as on a processor that has all features that the runtime can report."""
    shape = (a.shape[0], columns)
    size = 2 * a.shape[0] * columns
    storage, address = buffer(size)
    with emulated() as emulation:
        kernel.run([a.ctypes.data, packed.ctypes.data, address], processor=(1 << 63) - 1)
    assert not emulation.error
    start = address - storage.ctypes.data
    return storage[start : start + size].view(ml_dtypes.bfloat16).reshape(shape), emulation.counts


@pytest.mark.skipif(HAS_AMX, reason="this machine grants AMX")
def test_without_tiles_and_variants_the_program_says_so() -> None:
    rng = np.random.default_rng(10)
    a, b = bf16(rng, 13, 67), bf16(rng, 67, 75)
    program = compile(matmul(a, b, weight=True))
    session = loaded_session(program)
    with emulated() as emulation, pytest.raises(tilewright.ProgramError, match="failed while running"):
        session([a], program.metadata.signature)
    assert sum(emulation.counts.values()) == 0
    with pytest.raises(tilewright.ProgramError, match="amx"):
        program(a)
