"""A compiled program: call it, save it, ask it what it is made of."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata as package_metadata
from operator import index
from pathlib import Path
from typing import Any, Literal, SupportsIndex, overload

import numpy as np

from tilewright._records import check_kinds, parse_json
from tilewright.cores import MOST_THREADS, spell_threads
from tilewright.cuda import CudaDriver
from tilewright.errors import OutputError, ProgramError
from tilewright.explain import explain_text
from tilewright.iree.versions import PINNED_IREE
from tilewright.outputs import refuse_special
from tilewright.plan import Plan
from tilewright.ptxas import KernelResources
from tilewright.report import Kernel, Report
from tilewright.runtime import BoundCall, Session, missing_features, read_interface
from tilewright.signature import Array, Signature
from tilewright.state import Steps

_FORMAT = 1


@dataclass(frozen=True)
class Metadata:
    """What is known of a program besides its code; saved beside it as JSON."""

    target: str
    threads: int
    entry: str
    signature: Signature | None
    """None: a module without a description, of which nothing is known."""
    device: str = "local"
    """Where it runs: "local", on processors, or "cuda"."""
    resources: Mapping[str, KernelResources] = field(default_factory=dict)
    """What each kernel takes of a GPU, where ptxas was there to tell."""
    capability: str = ""
    """Of the oldest GPU that all kernels run on: "sm_80"."""
    multiprocessors: int = 0
    """Which workgroups that wait for each other count on; 0: none do."""
    multiprocessor_threads: int = 0
    """Which each of those has to have room for, as the plan was made for: resident threads,"""
    multiprocessor_shared_bytes: int = 0
    """and bytes of shared memory."""
    features: str = ""
    """What the code needs of the processor, as LLVM spells it: "+avx2,+fma"."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Wider targets that every kernel of ours has a variant for, widest first, and what each needs."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Outputs that are the buffers of inputs, updated in place."""
    report: Report = field(default_factory=Report)
    plan: dict[str, Any] | None = None
    iree_flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Where the compiler did with less than it was asked for."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time of every step of the compilation."""

    def to_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "device": self.device,
            "resources": {name: asdict(kernel) for name, kernel in self.resources.items()},
            "capability": self.capability,
            "multiprocessors": self.multiprocessors,
            "multiprocessor_threads": self.multiprocessor_threads,
            "multiprocessor_shared_bytes": self.multiprocessor_shared_bytes,
            "features": self.features,
            "variants": dict(self.variants),
            "threads": self.threads,
            "entry": self.entry,
            **(self.signature.to_json() if self.signature else {}),
            "state": dict(self.state),
            "notes": list(self.notes),
            "seconds": dict(self.seconds),
            "iree": PINNED_IREE,
            "iree_flags": list(self.iree_flags),
            "report": dict(self.report.raw),
            "plan": self.plan,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Metadata:
        return Metadata(
            target=data["target"],
            device=data.get("device", "local"),
            resources={name: KernelResources(**r) for name, r in data.get("resources", {}).items()},
            capability=data.get("capability", ""),
            multiprocessors=data.get("multiprocessors", 0),
            multiprocessor_threads=data.get("multiprocessor_threads", 0),
            multiprocessor_shared_bytes=data.get("multiprocessor_shared_bytes", 0),
            features=data.get("features", ""),
            variants=data.get("variants", {}),
            threads=data["threads"],
            entry=data["entry"],
            signature=Signature.from_json(data) if "inputs" in data else None,
            state=data.get("state", {}),
            report=Report.from_json(data.get("report", {})),
            plan=data.get("plan"),
            iree_flags=tuple(data.get("iree_flags", ())),
            notes=tuple(data.get("notes", ())),
            seconds=data.get("seconds", {}),
        )


class Program:
    """A model compiled by `tilewright.compile`, or loaded by `tilewright.load`."""

    def __init__(
        self,
        *,
        module: Path,
        parameters: Mapping[str, Path],
        metadata: Metadata,
        keep_alive: object = None,
    ) -> None:
        self._module = module
        self._parameters = dict(parameters)
        self._metadata = metadata
        self._session: Session | None = None
        self._loading = threading.Lock()
        self._keep_alive = keep_alive
        """Whatever owns the files, while the program maps them."""

    def __call__(self, *arrays: Any) -> list[Array]:
        """Runs the program: arrays in the order of the model's inputs, a list in the order of its outputs."""
        call = self.bind(*arrays)
        call()
        return call.outputs()

    def bind(self, *arrays: Any) -> BoundCall:
        """A call with its inputs moved into place once: `call()` runs it, `call.outputs()` reads what it gave."""
        signature = self._metadata.signature
        checked = (
            signature.check_inputs(arrays) if signature else [np.require(a, requirements="C") for a in arrays]
        )
        return self.load().bind(checked, signature)

    def steps(self, /, **state: Any) -> Steps:
        """Calls with state between them (`compile(..., state=)`), which begins with the arrays that are given by the
        names of their inputs, else with zeros."""
        if not self._metadata.state or self.signature is None:
            raise ProgramError(
                "it has no state", where=self._metadata.entry, hint="compile it with state={output: input}"
            )
        return Steps(self.load(), self.signature, self._metadata.state, state)

    def load(self) -> Session:
        """Loads the program into the runtime, which the first call does otherwise."""
        with self._loading:
            if self._session is None:
                missing = missing_features(self._metadata.features)
                if missing:
                    target = self._metadata.target
                    raise ProgramError(
                        f"it is compiled for target {target}, but this machine lacks {', '.join(missing)}",
                        where=self._metadata.entry,
                        hint="compile it for target 'cpu' here",
                    )
                _refuse_smaller_gpu(self._metadata)
                self._session = Session(
                    self._module,
                    self._parameters,
                    entry=self._metadata.entry,
                    threads=self._metadata.threads,
                    device=self._metadata.device,
                )
            return self._session

    @property
    def signature(self) -> Signature | None:
        """Names, dtypes and shapes of inputs and outputs; None for a module without a description."""
        return self._metadata.signature

    @property
    def metadata(self) -> Metadata:
        """Everything that is known of how the program was made."""
        return self._metadata

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that are ours; IREE's own are not among them."""
        return self._metadata.report.kernels

    @property
    def plan(self) -> Plan | None:
        """The plan that was carried out, to look at or to change; None if there was nothing to plan."""
        return Plan.from_json(self._metadata.plan) if self._metadata.plan is not None else None

    @property
    def module_path(self) -> Path:
        """The module as IREE's tools take it (`iree-run-module --module=`)."""
        return self._module

    @property
    def parameter_paths(self) -> Mapping[str, Path]:
        """The weights by scope, as IREE's tools take them (`--parameters=scope=path`)."""
        return self._parameters

    @overload
    def explain(self, format: Literal["text"] = "text") -> str: ...
    @overload
    def explain(self, format: Literal["json"]) -> dict[str, Any]: ...
    def explain(self, format: Literal["text", "json"] = "text") -> str | dict[str, Any]:
        """What was built and why: kernels with tiles and predictions, edges at launch, what IREE got."""
        if format == "json":
            return self._metadata.to_json()
        if format == "text":
            return explain_text(self._metadata)
        raise ValueError(f"format must be 'text' or 'json', not {format!r}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the module to `path` (.vmfb), and its weights (.irpa) and this program's metadata (.json)
        beside it.

        All files are written under temporary names first: either all appear, or an `OutputError` is raised
        and what was there before is still there.
        """
        refuse_special(path)
        target = Path(path)
        if target.suffix != ".vmfb":
            target = target.with_name(target.name + ".vmfb")
        files = {target.with_name(_parameter_name(target.stem, s)): p for s, p in self._parameters.items()}
        try:
            staged = _Staged(target.parent)
            try:
                for final, source in files.items():
                    staged.copy(source, final)
                staged.write(
                    json.dumps(self._saved_json(target.stem), indent=1).encode(), target.with_suffix(".json")
                )
                staged.copy(self._module, target)
                staged.commit()
            finally:
                staged.discard()
        except OSError as error:
            size = sum(p.stat().st_size for p in [*self._parameters.values(), self._module])
            raise OutputError(
                f"cannot be written ({error.strerror})",
                where=str(target),
                hint=f"it needs {size / 1e6:.1f} MB in a folder that you may write to",
            ) from None
        return target

    def _saved_json(self, stem: str) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "tilewright": package_version(),
            "module_sha256": _digest(self._module),
            "parameters": {
                scope: {"file": _parameter_name(stem, scope), "bytes": path.stat().st_size}
                for scope, path in self._parameters.items()
            },
            **self._metadata.to_json(),
        }

    def __repr__(self) -> str:
        signature = str(self.signature) if self.signature else "(?) -> (?)"
        return (
            f"<tilewright.Program {self._metadata.entry}{signature}, {len(self.kernels)} fused kernels, "
            f"target {self._metadata.target}{_threads(self._metadata)}>"
        )


def load(path: str | os.PathLike[str], *, threads: int | None = None) -> Program:
    """Loads what `Program.save` wrote.

    A module is native code: load only what you would run. A .vmfb without its .json loads, too, if its
    weights are in one .irpa of the same name, but knows nothing of its kernels.
    """
    module = Path(path)
    if not module.is_file():
        raise ProgramError("no such file", where=str(module), hint="give the path of a .vmfb")
    if threads is not None and not (
        isinstance(threads, SupportsIndex) and 1 <= index(threads) <= MOST_THREADS
    ):
        raise ProgramError(
            f"threads={threads!r} is not possible",
            hint=f"IREE's CPU runtime takes 1 to {MOST_THREADS} threads",
        )
    described = _read_description(module)
    if described is None:
        return _load_bare(module, threads=threads or 1)
    metadata, parameters = described
    if threads is not None and threads != metadata.threads:
        metadata = Metadata.from_json({**metadata.to_json(), "threads": index(threads)})
    program = Program(module=module, parameters=parameters, metadata=metadata)
    if metadata.device == "local":
        program.load()
    else:
        _refuse_smaller_gpu(metadata)
    return program


def _refuse_smaller_gpu(metadata: Metadata) -> None:
    """Or older: before the runtime does it in the driver's words, or a barrier of the grid that never opens. Where no
    GPU is, a program can still be looked at."""
    needed = re.fullmatch(r"sm_(\d+)(\d)(a?)", metadata.capability)
    if not needed:
        return
    try:
        gpu = CudaDriver().describe()
    except ProgramError:
        return
    least = (int(needed[1]), int(needed[2]))
    if gpu.capability < least or (needed[3] and gpu.capability != least):
        major, minor = gpu.capability
        raise ProgramError(
            f"its kernels need compute capability {needed[1]}.{needed[2]}{' and no newer' if needed[3] else ''}, "
            f"but this GPU ({gpu.name}) has {major}.{minor}",
            where=metadata.entry,
            hint=f"compile it for target sm_{major}{minor}, or for both",
        )
    counted_on = (
        (metadata.multiprocessors, gpu.multiprocessors, "multiprocessors"),
        (metadata.multiprocessor_threads, gpu.multiprocessor_threads, "threads of each multiprocessor"),
        (
            metadata.multiprocessor_shared_bytes,
            gpu.multiprocessor_shared_bytes,
            "bytes of shared memory of each multiprocessor",
        ),
    )
    for needs, has, what in counted_on:
        if has < needs:
            raise ProgramError(
                f"the workgroups of its kernels wait for each other and count on {needs} {what}, "
                f"but this GPU ({gpu.name}) has {has}",
                where=metadata.entry,
                hint="compile it for this GPU or a target file with as many, or with --no-grid-sync",
            )


def _read_description(module: Path) -> tuple[Metadata, dict[str, Path]] | None:
    path = module.with_suffix(".json")
    if not path.is_file():
        return None
    try:
        data = parse_json(path.read_text())
        if data["format"] != _FORMAT:
            raise ProgramError(
                f"written by another Tilewright (format {data['format']}, this one reads {_FORMAT})",
                where=str(path),
                hint="compile the model again",
            )
        metadata = Metadata.from_json(data)
        _check(metadata)
        parameters = {
            scope: module.with_name(Path(p["file"]).name) for scope, p in data["parameters"].items()
        }
        sizes = {module.with_name(Path(p["file"]).name): int(p["bytes"]) for p in data["parameters"].values()}
        digest = data["module_sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ProgramError(
            f"malformed description: {error!r}", where=str(path), hint="compile the model again"
        ) from None
    if _digest(module) != digest:
        raise ProgramError(
            f"it is not the module that {path.name} describes: truncated, changed or replaced",
            where=str(module),
            hint="compile the model again",
        )
    for weights, size in sizes.items():
        if weights.is_file() and weights.stat().st_size != size:
            raise ProgramError(
                f"it has {weights.stat().st_size} bytes instead of {size}: truncated or replaced",
                where=str(weights),
            )
    return metadata, parameters


def _check(metadata: Metadata) -> None:
    """Raises `ValueError` where something is not of its kind: JSON may hold anything anywhere."""
    check_kinds(Metadata, metadata, "program")
    if not 1 <= metadata.threads <= MOST_THREADS:
        raise ValueError(f"{metadata.threads} threads")
    if metadata.device == "local" and metadata.variants:
        names = metadata.target.split(",")
        if len(names) != len(metadata.variants) + 1:
            raise ValueError(f"{len(metadata.variants)} variants, but targets {names}")
    for spec in (*metadata.signature.inputs, *metadata.signature.outputs) if metadata.signature else ():
        spec.numpy_dtype  # noqa: B018 - raises for a name that is none


def _load_bare(module: Path, *, threads: int) -> Program:
    weights = module.with_suffix(".irpa")
    parameters = {"model": weights} if weights.is_file() else {}
    interface = read_interface(module, entry=None)
    metadata = Metadata(
        target="unknown",
        threads=threads,
        entry=interface.entry,
        signature=interface.signature,
        notes=(f"{module.with_suffix('.json').name} is missing, so nothing is known of its kernels",),
    )
    program = Program(module=module, parameters=parameters, metadata=metadata)
    program.load()
    return program


def package_version() -> str:
    """The version of this package; "0+unknown" when it runs from a build directory."""
    try:
        return package_metadata.version("tilewright")
    except package_metadata.PackageNotFoundError:
        return "0+unknown"


def _threads(metadata: Metadata) -> str:
    return f", {spell_threads(metadata.threads)}" if metadata.device == "local" else ""


def _parameter_name(stem: str, scope: str) -> str:
    return f"{stem}.irpa" if scope == "model" else f"{stem}.{scope}.irpa"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Staged:
    """Files under temporary names in their folder, renamed together at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending: dict[Path, Path] = {}

    def copy(self, source: Path, final: Path) -> None:
        # A link would be faster, but who then changes the saved file in place changes what this program maps.
        temporary = self._temporary(final)
        shutil.copyfile(source, temporary)
        temporary.chmod(0o644)

    def write(self, data: bytes, final: Path) -> None:
        self._temporary(final).write_bytes(data)
        self._pending[final].chmod(0o644)

    def commit(self) -> None:
        for final, temporary in list(self._pending.items()):
            temporary.replace(final)
            del self._pending[final]

    def discard(self) -> None:
        for temporary in self._pending.values():
            temporary.unlink(missing_ok=True)

    def _temporary(self, final: Path) -> Path:
        handle, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".tmp", dir=self._folder)
        os.close(handle)
        self._pending[final] = Path(name)
        return self._pending[final]
