"""A compiled program, which can be called, saved, loaded and inspected."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from operator import index
from pathlib import Path
from typing import Any, Literal, SupportsIndex, overload
from urllib.parse import quote

import numpy as np

from tilewright.errors import OutputError, ProgramError
from tilewright.iree.versions import PINNED_IREE
from tilewright.records.encoding import check_kinds, parse_json
from tilewright.records.plan import Plan
from tilewright.records.report import Kernel, Report
from tilewright.records.signature import Array, Signature
from tilewright.runtime.cuda import CudaDriver
from tilewright.runtime.explain import explain_text
from tilewright.runtime.held import HeldFile, hold_module, hold_weights
from tilewright.runtime.session import BoundCall, Session, missing_features, read_interface
from tilewright.runtime.state import Steps
from tilewright.system.cores import MOST_THREADS, spell_threads
from tilewright.system.outputs import refuse_special
from tilewright.system.ptxas import KernelResources
from tilewright.system.version import package_version

_FORMAT = 2
"""Version of the description's format. Format 1 did not say which weights belong to the module."""

_ABANDONED_S = 60.0
"""Seconds after which an unchanged temporary file that nobody holds open counts as left by a killed `save`."""

_TURN_S = 5.0
"""Seconds to wait for another process to rename its files, which takes it less than a millisecond."""


@dataclass(frozen=True)
class Metadata:
    """Everything known about a program besides its code; saved beside it as JSON."""

    target: str
    threads: int
    entry: str
    signature: Signature | None
    """None for a module without a description, about which nothing is known."""
    device: str = "local"
    """Where the program runs: "local" (on processors) or "cuda"."""
    resources: Mapping[str, KernelResources] = field(default_factory=dict)
    """Resources of each kernel on a GPU, if ptxas was available."""
    capability: str = ""
    """Compute capability of the oldest GPU that runs all kernels, such as "sm_80"."""
    multiprocessors: int = 0
    """Number of SMs that kernels whose workgroups wait for each other need; 0 if there are none."""
    multiprocessor_threads: int = 0
    """Resident threads that each of these SMs must have room for."""
    multiprocessor_shared_bytes: int = 0
    """Bytes of shared memory that each of these SMs must have."""
    features: str = ""
    """Processor features that the code needs, in LLVM's spelling: "+avx2,+fma"."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """Wider targets for which every kernel of ours has a variant, widest first, with the features that each needs."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Outputs that share the buffers of inputs, which are updated in place."""
    report: Report = field(default_factory=Report)
    plan: dict[str, Any] | None = None
    iree_flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes on requests that the compiler could not fulfil."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Wall time of every step of the compilation, in seconds."""

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
        module: Path | HeldFile,
        parameters: Mapping[str, Path | HeldFile],
        metadata: Metadata,
        keep_alive: object = None,
        sources: Iterable[Path] = (),
    ) -> None:
        self._module = hold_module(module)
        self._parameters = {scope: hold_weights(file) for scope, file in parameters.items()}
        self._metadata = metadata
        self._session: Session | None = None
        self._loading = threading.Lock()
        self._keep_alive = keep_alive
        """Owner of the files, kept alive while the program maps them."""
        self._sources = tuple(source.absolute() for source in sources)
        """Parameter files that the program was compiled from, which `save` must not replace."""

    def __call__(self, *arrays: Any) -> list[Array]:
        """Runs the program on arrays in the order of the model's inputs; returns a list in the order of its outputs.

        Raises `InputError` for arrays that do not fit the signature (number, dtype or shape), and `ProgramError` if the
        program cannot be loaded or fails.
        """
        call = self.bind(*arrays)
        call()
        return call.outputs()

    def bind(self, *arrays: Any) -> BoundCall:
        """Returns a call whose inputs are moved into place once.

        `call()` runs it, and `call.outputs()` returns the results. Raises the errors of `__call__`.
        """
        signature = self._metadata.signature
        checked = (
            signature.check_inputs(arrays) if signature else [np.require(a, requirements="C") for a in arrays]
        )
        return self.load().bind(checked, signature)

    def steps(self, /, **state: Any) -> Steps:
        """Returns successive calls with state between them (`compile(..., state=)`).

        The state begins with the arrays given by the names of their inputs, or with zeros. Raises `ProgramError` if the
        program has no state.
        """
        if not self._metadata.state or self.signature is None:
            raise ProgramError(
                "it has no state", where=self._metadata.entry, hint="compile it with state={output: input}"
            )
        return Steps(self.load(), self.signature, self._metadata.state, state)

    def load(self) -> Session:
        """Loads the program into the runtime; otherwise the first call does so.

        Raises `ProgramError` if this machine cannot run it.
        """
        with self._loading:
            if self._session is None:
                missing = missing_features(self._metadata.features)
                if missing:
                    target = self._metadata.target
                    raise ProgramError(
                        f"it was compiled for target {target}, but this machine lacks {', '.join(missing)}",
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
        """Everything known about how the program was made."""
        return self._metadata

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that Tilewright compiled; IREE's own are not among them."""
        return self._metadata.report.kernels

    @property
    def plan(self) -> Plan | None:
        """The plan of the program, to inspect or to change; None if there was nothing to plan."""
        return Plan.from_json(self._metadata.plan) if self._metadata.plan is not None else None

    @property
    def module_path(self) -> Path:
        """Path of the module for IREE's tools (`iree-run-module --module=`)."""
        return self._module.path

    @property
    def parameter_paths(self) -> Mapping[str, Path]:
        """Paths of the weights by scope, for IREE's tools (`--parameters=scope=path`)."""
        return {scope: file.path for scope, file in self._parameters.items()}

    @overload
    def explain(self, format: Literal["text"] = "text") -> str: ...
    @overload
    def explain(self, format: Literal["json"]) -> dict[str, Any]: ...
    def explain(self, format: Literal["text", "json"] = "text") -> str | dict[str, Any]:
        """Returns what was built and why: kernels with tiles and predictions, edges between launches, and what IREE
        compiles."""
        if format == "json":
            return self._metadata.to_json()
        if format == "text":
            return explain_text(self._metadata)
        raise ValueError(f"format must be 'text' or 'json', not {format!r}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the module to `path` (.vmfb), and its weights (.irpa) and this program's metadata (.json)
        beside it.

        All files are written under temporary names first and renamed when all are complete, so programs that use
        the earlier files keep them. Raises `OutputError` if they cannot be written; the earlier files are then still
        there. A process that is killed between two renames leaves files that `load` refuses.
        """
        refuse_special(path)
        target = Path(path)
        if target.suffix != ".vmfb":
            target = target.with_name(target.name + ".vmfb")
        weights = {
            scope: target.with_name(target.stem + _parameter_suffix(scope)) for scope in self._parameters
        }
        try:
            for file in (target, target.with_suffix(".json"), *weights.values()):
                refuse_special(file)
            _refuse_taken(target, weights)
            self._refuse_sources(weights)
            staged = _Staged(target.parent)
            try:
                digests = {scope: staged.copy(self._parameters[scope], weights[scope]) for scope in weights}
                description = self._description(digests, module_digest=staged.copy(self._module, target))
                staged.write(description.encode(), target.with_suffix(".json"))
                staged.commit()
            finally:
                staged.discard()
        except OSError as error:
            size = sum(file.size for file in [*self._parameters.values(), self._module])
            raise OutputError(
                f"cannot be written ({error.strerror})",
                where=str(target),
                hint=f"it needs {size / 1e6:.1f} MB in a writable folder",
            ) from None
        return target

    def _refuse_sources(self, weights: Mapping[str, Path]) -> None:
        """Raises `OutputError` if weights would replace files that the program was compiled from."""
        for scope, file in weights.items():
            if not file.exists() or self._parameters[scope].path in self._sources:
                continue
            if any(source.exists() and file.samefile(source) for source in self._sources):
                raise OutputError(
                    "the program was compiled from this file, and its own weights would replace it",
                    where=str(file),
                    hint="save under another name",
                )

    def _description(self, digests: Mapping[str, str], *, module_digest: str) -> str:
        """Returns the content of the .json; `digests` are the hashes of the weights, by scope."""
        data = {
            "format": _FORMAT,
            "tilewright": package_version(),
            "module": {"bytes": self._module.size, "sha256": module_digest},
            "parameters": {
                scope: {"bytes": self._parameters[scope].size, "sha256": digest}
                for scope, digest in digests.items()
            },
            **self._metadata.to_json(),
        }
        return json.dumps(signed(json.loads(json.dumps(data))), indent=1)

    def __repr__(self) -> str:
        signature = str(self.signature) if self.signature else "(?) -> (?)"
        return (
            f"<tilewright.Program {self._metadata.entry}{signature}, {len(self.kernels)} fused kernels, "
            f"target {self._metadata.target}{_threads(self._metadata)}>"
        )


def load(path: str | os.PathLike[str], *, threads: int | None = None, verify: bool = True) -> Program:
    """Loads what `Program.save` wrote.

    A module is native code: load only what you would run. The weights and the description lie beside the module under
    its own name, so the files can be copied and renamed together; where `path` is a link they may lie beside the file
    that it points to. A .vmfb without its .json also loads, if it has no weights, but nothing is known about its
    kernels.

    Arguments:
        path: Path of the .vmfb.
        threads: Number of threads to run it on, instead of the number that it was compiled for.
        verify: True to hash the weights, which ensures that they are those the module was compiled with. If False,
            only their sizes are checked, and weights without a .json are accepted unchecked. The module and the
            description are always verified.

    Raises:
        ProgramError: A file is missing, damaged, or not the one that was saved with the others; or this machine cannot
            run the program.
    """
    given = Path(path)
    if not given.is_file():
        raise ProgramError("no such file", where=str(given), hint="give the path of a .vmfb")
    if threads is not None and not (
        isinstance(threads, SupportsIndex) and 1 <= index(threads) <= MOST_THREADS
    ):
        raise ProgramError(
            f"threads={threads!r} is not possible",
            hint=f"IREE's CPU runtime takes 1 to {MOST_THREADS} threads",
        )
    module = hold_module(given)
    description = _beside(module.path, ".json")
    if not description.is_file():
        return _load_bare(module, description, threads=threads or 1, verify=verify)
    metadata, belonging = _read_description(description)
    other_module = f"it is not the module that {description.name} describes"
    belonging.module.require(module, otherwise=other_module, verify=True)
    weights = {}
    for scope, known in belonging.parameters.items():
        weights[scope] = hold_weights(_beside(module.path, _parameter_suffix(scope)))
        other_weights = f"it does not contain the weights of {module.path.name}"
        known.require(weights[scope], otherwise=other_weights, verify=verify)
    if threads is not None and threads != metadata.threads:
        metadata = Metadata.from_json({**metadata.to_json(), "threads": index(threads)})
    program = Program(module=module, parameters=weights, metadata=metadata)
    if metadata.device == "local":
        program.load()
    else:
        _refuse_smaller_gpu(metadata)
    return program


def _refuse_smaller_gpu(metadata: Metadata) -> None:
    """Raises `ProgramError` for a GPU that is too small or too old.

    Otherwise the driver would report it in its own words, or a grid barrier would never open. Without a GPU, the
    program still loads, so that it can be inspected.
    """
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


@dataclass(frozen=True)
class _Known:
    """Entry of a description about one file."""

    bytes: int
    sha256: str

    def require(self, file: HeldFile, *, otherwise: str, verify: bool) -> None:
        file.expect(self.bytes, self.sha256, otherwise=otherwise, verify=verify)


@dataclass(frozen=True)
class _Belonging:
    """Entries of a description about the files that belong to it."""

    module: _Known
    parameters: Mapping[str, _Known]
    """Weights by scope."""


def _read_description(path: Path) -> tuple[Metadata, _Belonging]:
    try:
        data = parse_json(path.read_text())
        if data["format"] != _FORMAT:
            raise ProgramError(
                f"written by another version of Tilewright (format {data['format']}, this one reads {_FORMAT})",
                where=str(path),
                hint="compile the model again",
            )
        if data != signed(data):
            raise ProgramError(
                "it was changed after it was saved",
                where=str(path),
                hint="put back the files that were saved together, or compile the model again",
            )
        metadata = Metadata.from_json(data)
        _check(metadata)
        belonging = _Belonging(
            _Known(**data["module"]), {scope: _Known(**known) for scope, known in data["parameters"].items()}
        )
        check_kinds(_Belonging, belonging, "program")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ProgramError(
            f"malformed description: {error!r}", where=str(path), hint="compile the model again"
        ) from None
    return metadata, belonging


def signed(description: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the description with a hash of its content, which shows that it is unchanged since it was saved."""
    rest = {name: value for name, value in description.items() if name != "sha256"}
    return {**rest, "sha256": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def _beside(module: Path, suffix: str) -> Path:
    """Returns the file beside the module that has its name with another suffix.

    If the module is a link, a file beside the link takes precedence over one beside the link's target.
    """
    beside = module.with_name(module.stem + suffix)
    if beside.exists():
        return beside
    real = module.resolve()
    elsewhere = real.with_name(real.stem + suffix)
    return elsewhere if elsewhere.exists() else beside


def _check(metadata: Metadata) -> None:
    """Raises `ValueError` if a value has the wrong type, since JSON may hold anything anywhere."""
    check_kinds(Metadata, metadata, "program")
    if not 1 <= metadata.threads <= MOST_THREADS:
        raise ValueError(f"{metadata.threads} threads")
    if metadata.device == "local" and metadata.variants:
        names = metadata.target.split(",")
        if len(names) != len(metadata.variants) + 1:
            raise ValueError(f"{len(metadata.variants)} variants, but targets {names}")
    for spec in (*metadata.signature.inputs, *metadata.signature.outputs) if metadata.signature else ():
        spec.numpy_dtype  # noqa: B018 - raises for an unknown name


def _load_bare(module: HeldFile, description: Path, *, threads: int, verify: bool) -> Program:
    weights = _beside(module.path, _parameter_suffix("model"))
    parameters = {"model": weights} if weights.is_file() else {}
    interface = read_interface(module, entry=None)
    if parameters and verify:
        raise ProgramError(
            f"it is missing, so nothing says whether {weights.name} holds the weights of {module.path.name}",
            where=str(description),
            hint="put it beside the .vmfb, or give verify=False to tilewright.load",
        )
    metadata = Metadata(
        target="unknown",
        threads=threads,
        entry=interface.entry,
        signature=interface.signature,
        notes=(f"{description.name} is missing, so nothing is known of its kernels",),
    )
    program = Program(module=module, parameters=parameters, metadata=metadata)
    program.load()
    return program


def _threads(metadata: Metadata) -> str:
    return f", {spell_threads(metadata.threads)}" if metadata.device == "local" else ""


def _parameter_suffix(scope: str) -> str:
    """Returns the suffix of a parameter file after the module's name; it escapes characters that file names cannot
    have."""
    return ".irpa" if scope == "model" else f".{quote(scope, safe='')}.irpa"


def _refuse_taken(target: Path, weights: Mapping[str, Path]) -> None:
    """Raises `OutputError` if a file of the program would have the name of another program's weights.

    For example, the weights of scope "b" of "a.vmfb" and the weights of "a.b.vmfb" are both "a.b.irpa".
    """
    for path in weights.values():
        stem = path.stem
        while stem:
            if stem != target.stem and path.name in _saved_weights(target.with_name(f"{stem}.json")):
                raise OutputError(
                    f"its weights would replace those of {stem}.vmfb",
                    where=str(path),
                    hint="save under another name",
                )
            stem = stem.rpartition(".")[0]


def _saved_weights(description: Path) -> list[str]:
    """Returns the names of a saved program's parameter files; none if the file describes no program."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return [
            description.stem + _parameter_suffix(scope)
            for scope in parse_json(description.read_text())["parameters"]
        ]
    return []


class _Staged:
    """Files under temporary names in their folder, which are renamed together at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pending: dict[Path, tuple[Path, int]] = {}
        """Temporary names and open files, by final name."""

    def copy(self, source: HeldFile, final: Path) -> str:
        """Copies a file and returns the content hash of the written bytes."""
        # A link would be faster, but writing into the saved file would then change what this program maps.
        return source.copy(self._temporary(final))

    def write(self, data: bytes, final: Path) -> None:
        with open(self._temporary(final), "wb", closefd=False) as file:
            file.write(data)

    def commit(self) -> None:
        with _in_turn(self._folder):
            for final, (temporary, descriptor) in list(self._pending.items()):
                os.fchmod(descriptor, 0o644)
                temporary.replace(final)
                del self._pending[final]
                os.close(descriptor)

    def discard(self) -> None:
        for temporary, descriptor in self._pending.values():
            temporary.unlink(missing_ok=True)
            os.close(descriptor)

    def _temporary(self, final: Path) -> int:
        _sweep(final)
        descriptor, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".tmp", dir=self._folder)
        self._pending[final] = (Path(name), descriptor)
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor


@contextlib.contextmanager
def _in_turn(folder: Path) -> Iterator[None]:
    """Makes other processes that save into the folder wait, so that their files do not mix with these.

    If the folder cannot be locked, or stays locked, saving goes on; `load` refuses mixed files.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + _TURN_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.001)
                    continue
            except OSError:
                pass  # some file systems have no locks
            break
        yield
    finally:
        os.close(descriptor)


def _sweep(final: Path) -> None:
    """Removes temporary files that earlier, killed saves to the same name left behind."""
    start = f".{final.name}."
    for path in final.parent.iterdir():
        if not (path.name.startswith(start) and path.name.endswith(".tmp")):
            continue
        with contextlib.suppress(OSError), path.open("rb") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > _ABANDONED_S:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
