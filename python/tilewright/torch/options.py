"""Options of the back end, which `torch.compile(..., options={...})` passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import torch
import torch._inductor.config

from tilewright.errors import CompileError
from tilewright.records.options import NumericsMode

Fallback = Literal["eager", "inductor"]


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """Options of the back end; all have defaults."""

    fallback: Fallback = "eager"
    """What runs the ops that we do not take: PyTorch's own kernels, or Inductor, which then takes the whole graph."""
    most_shapes: int = 16
    """Number of concrete shapes that each graph with dynamic shapes is compiled for; further ones run in eager mode."""
    threads: int | None = None
    """Number of threads; None: as many as `torch.get_num_threads()` says when the graph is compiled."""
    numerics: NumericsMode = "default"
    """How freely kernels may compute, as in `tilewright.compile`."""
    freezing: bool | None = None
    """True: weights of graphs without gradients become constants, packed for the kernels, until someone changes them.
    None: as `torch._inductor.config.freezing` says."""

    @property
    def freezes(self) -> bool:
        return bool(torch._inductor.config.freezing) if self.freezing is None else self.freezing

    @staticmethod
    def read(options: Mapping[str, Any] | None) -> BackendOptions:
        """Returns the options of a mapping. Raises `CompileError` for an unknown name or value."""
        known = {field.name for field in fields(BackendOptions)}
        given = dict(options or {})
        for name in given:
            if name not in known:
                raise CompileError(
                    f"option '{name}' of the back end is unknown",
                    hint=f"there are: {', '.join(sorted(known))}",
                )
        read = BackendOptions(**given)
        if read.fallback not in get_args(Fallback):
            raise CompileError(f"fallback='{read.fallback}' is unknown", hint="choose 'eager' or 'inductor'")
        if not isinstance(read.most_shapes, int) or read.most_shapes < 0:
            raise CompileError(f"most_shapes={read.most_shapes!r} is not a number of shapes")
        if read.numerics not in ("default", "strict"):
            raise CompileError(f"numerics='{read.numerics}' is unknown", hint="choose 'default' or 'strict'")
        if read.freezing not in (True, False, None):
            raise CompileError(f"freezing={read.freezing!r} is neither True, False nor None")
        return read
