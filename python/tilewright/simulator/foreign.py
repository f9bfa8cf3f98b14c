"""Computes IREE's part of a GPU program with IREE on this machine's processor.

`tile-print-launches` gives the ops behind each tensor that IREE computes as a separate function. The simulated device
runs only our kernels; IREE computes the rest here, so that the kernels get real numbers and the program's results are
complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.flags import iree_flags
from tilewright.iree.text import to_iree
from tilewright.records.signature import Array, Signature, TensorSpec, element_dtype
from tilewright.records.targets import resolve_targets
from tilewright.runtime.session import Session
from tilewright.system.cores import available_cores
from tilewright.system.workfolder import WorkFolder
from tilewright.worker.process import lend_worker


class ForeignTensors:
    """The tensors of `tile-print-launches` that IREE computes; raises `IreeError` if it cannot compute one."""

    def __init__(self, described: Sequence[Mapping[str, Any]]) -> None:
        self._described = described
        self._folder = WorkFolder("foreign")
        self._module = self._folder.path / "foreign.vmfb"
        functions = [tensor["function"] for tensor in described if "function" in tensor]
        if functions:
            self._module.write_bytes(self._compile("\n".join(functions)))

    def __call__(self, number: int, inputs: Sequence[Array]) -> Array:
        """Computes a tensor from the `inputs` that are described with it."""
        tensor = self._described[number]
        dtype = element_dtype(tensor["element"]).name
        session = Session(self._module, {}, entry=f"tensor_{number}", threads=available_cores())
        (made,) = session(inputs, Signature((), (TensorSpec("", dtype, tuple(tensor["shape"])),)))
        return made

    def _compile(self, functions: str) -> bytes:
        flags = iree_flags(resolve_targets("cpu", threads=available_cores())[-1], host=True)
        source = to_iree(f'"builtin.module"() ({{\n{functions}\n}}) : () -> ()')
        with lend_worker(self._folder.path) as worker:
            return IreeCompiler(worker).compile(source.encode(), flags=flags, name="foreign")
