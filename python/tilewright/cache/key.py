"""The key of a compilation: a hash of everything that its result depends on.

`KEYED` and `NOT_KEYED` list every parameter of `tilewright.compile`; a test compares them with its signature.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.cache.build import compiler_identity
from tilewright.cache.hashes import Hashes
from tilewright.errors import ModelError, TuningError
from tilewright.frontends import Model, external_data, is_mlir_text, is_onnx_proto
from tilewright.frontends.jax import is_jax_model
from tilewright.frontends.pytorch import is_torch_model
from tilewright.records.dims import Dim, Sizes
from tilewright.records.encoding import to_json
from tilewright.records.options import CompileOptions
from tilewright.records.plan import Plan
from tilewright.records.targets import Target
from tilewright.system.ptxas import find_ptxas
from tilewright.tuning.database import Database

FORMAT = 1
"""Version of the key and of the entries; another version finds nothing of this one."""

KEYED: Mapping[str, str] = {
    "model": "its content, with that of external data, and its file's name, which locations contain",
    "target": "the description that it resolves to, for each number of threads, and whether it is this machine",
    "threads": "the numbers to choose from; by default they depend on the cores of this process",
    "iree_flags": "the flags, in their order",
    "plan": "its content",
    "strict": "the flag, because a compilation without it may have left something out",
    "numerics": "the mode",
    "policy": "its name",
    "plan_seconds": "the number, because the search of a policy ends by it",
    "grid_sync": "the flag",
    "deploy": "the flag: an entry without it may have no module for IREE",
    "tuning": "the decisions of the database for the target; a database without any is like none",
    "entry": "the name",
    "parameters": "scopes, and the content and kind of their files",
    "state": "the pairs of names",
    "dims": "what is said of each dim: its size, its bounds, or the sizes to build ahead",
}
"""Parameters of `tilewright.compile` in the key, and what of them is in it."""

NOT_KEYED: Mapping[str, str] = {
    "dump_dir": "a compilation with it does not use the cache: its stages must run to write their results",
    "passes": "a compilation with them does not use the cache: their code and its data cannot be compared, and a "
    "textual pipeline may name passes written in Python",
    "example_inputs": "a module of PyTorch or a function of JAX, which they are for, has no content that could be "
    "compared; a compilation with them does not use the cache",
    "timeout": "it ends a compilation and changes nothing in one that succeeds",
    "verify": "it compares the program with the model, also one from the cache, and changes nothing",
    "progress": "it is told of the steps and changes nothing",
    "cache": "it says where the result is kept",
}
"""Parameters of `tilewright.compile` that are not in the key, and why not."""

_WAIT_SECONDS = 2.0
"""Seconds to wait for a locked tuning database, as a compilation does."""


class UncacheableError(Exception):
    """A compilation has no key. `reason` is for people; it is "" if the compilation itself will report the cause."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Request:
    """Everything that a compilation is given, with its defaults resolved."""

    model: Model
    options: CompileOptions
    targets: Mapping[int, Sequence[Target]]
    """Resolved targets by the number of threads that the program may be compiled for."""
    is_host: bool
    """True if the target was named "cpu", for which IREE detects this machine's features itself."""

    @property
    def model_name(self) -> str:
        """Name of the model, for people."""
        is_path = isinstance(self.model, os.PathLike) or (
            isinstance(self.model, str) and not is_mlir_text(self.model)
        )
        return Path(self.model).name if is_path else "model"  # type: ignore[arg-type]

    @property
    def _planned_for(self) -> Target:
        return self.targets[max(self.targets)][0]

    def key(self, hashes: Hashes) -> str:
        """Returns the key in hexadecimal digits; raises `UncacheableError` if there is none."""
        if self.options.dump_dir is not None:
            raise UncacheableError("dump_dir needs the stages to run")
        if self.options.passes:
            raise UncacheableError(
                "nothing tells whether passes of the caller are those of an earlier compilation"
            )
        if is_jax_model(self.model):
            raise UncacheableError("functions of JAX cannot be compared; the StableHLO of jax.export can")
        if self.options.example_inputs is not None or is_torch_model(self.model):
            raise UncacheableError("modules of PyTorch cannot be compared; a .pt2 file can")
        try:
            parts = self.parts(hashes)
        except (OSError, ModelError):  # the compilation will fail on it, too, or read what this cannot
            raise UncacheableError("") from None
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def parts(self, hashes: Hashes) -> dict[str, Any]:
        """Returns what the key is made of, as JSON, except for dims (`for_shapes`)."""
        options = self.options
        return {
            "format": FORMAT,
            "compiler": compiler_identity(hashes),
            "model": _model(self.model, hashes),
            "targets": {str(count): to_json(list(targets)) for count, targets in self.targets.items()},
            "is_host": self.is_host,
            "iree_flags": list(options.iree_flags),
            "plan": _plan(options.plan, hashes),
            "strict": options.strict,
            "numerics": options.numerics,
            "policy": options.policy,
            "plan_seconds": options.plan_seconds,
            "grid_sync": options.grid_sync,
            "deploy": options.deploy,
            "tuning": self._decisions(),
            "entry": options.entry,
            "parameters": {
                scope: [path.suffix.lower(), hashes.digest(path)]
                for scope, path in options.parameters.items()
            },
            "state": dict(options.state),
            "ptxas": _ptxas(hashes) if self._planned_for.kind.assembles else None,
        }

    def _decisions(self) -> str:
        """Returns a hash of the measured plans that the compilation may use, or "" if it uses none."""
        options = self.options
        database = options.tuning
        if options.plan is not None or database is None or not database.is_file():
            return ""
        if options.policy != "greedy" or (self._planned_for.kind.has_grid_barriers and not options.grid_sync):
            return ""
        try:
            with Database(database, wait_seconds=_WAIT_SECONDS) as known:
                return known.fingerprint(self._planned_for.name)
        except TuningError as error:
            raise UncacheableError(str(error)) from None


def for_shapes(key: str, dims: Mapping[str, Dim], shapes: Sequence[Sizes] = ()) -> str:
    """Returns the key of a program with these dims, of the key of its model and options without dims.

    `shapes` are those that the program is one for. A program with open dims also states their bounds.
    """
    if not dims and not shapes:
        return key
    parts = [key, {name: dim.to_json() for name, dim in dims.items()}, list(map(dict, shapes))]
    return _sha256(json.dumps(parts, sort_keys=True).encode())


def _model(model: Model, hashes: Hashes) -> dict[str, Any]:
    """Returns the content of a model and the name by which errors and locations call it."""
    if isinstance(model, str) and is_mlir_text(model):
        return {"name": "model", "content": _sha256(model.encode())}
    if isinstance(model, bytes):
        return {"name": "model", "content": _sha256(model)}
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        found = hashes.look_at(path, external_data)
        data = {name: hashes.digest(path.parent / name) for name in found.refers_to}
        return {"name": path.name, "content": found.sha256, "data": data}
    proto: Any = model
    if is_onnx_proto(proto):
        try:
            return {"name": "model", "content": _sha256(proto.SerializeToString(deterministic=True))}
        except Exception as error:  # protobuf's own error for models of more than 2 GB
            raise UncacheableError(f"the model cannot be serialised ({error})") from None
    raise UncacheableError("")


def _plan(plan: Plan | Path | None, hashes: Hashes) -> Any:
    return plan.to_json() if isinstance(plan, Plan) else hashes.digest(plan) if plan is not None else None


def _ptxas(hashes: Hashes) -> str | None:
    """Returns the content hash of NVIDIA's assembler, whose results programs for GPUs hold; None without one."""
    found = find_ptxas()
    return hashes.digest(Path(found)) if found is not None else None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
