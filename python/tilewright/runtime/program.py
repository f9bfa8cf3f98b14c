"""A compiled program, which can be called, saved and inspected."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from tilewright.errors import InputError, ProgramError
from tilewright.records.dims import (
    all_shapes,
    check_sizes,
    dim_names,
    open_axes,
    read_dims,
    settle_names,
    signature_inputs,
    sizes_of,
)
from tilewright.records.plan import Plan
from tilewright.records.report import Kernel
from tilewright.records.signature import Array, Signature
from tilewright.records.threads import threads_in_iree
from tilewright.runtime.again import Again
from tilewright.runtime.buckets import Bucket
from tilewright.runtime.cuda_session import CudaCall, CudaSession
from tilewright.runtime.cuda_tensors import is_on_gpu
from tilewright.runtime.direct import DirectCall, DirectSession, is_available
from tilewright.runtime.explain import explain_json, explain_text
from tilewright.runtime.gpu_fit import NotResidentError, refuse_older_gpu, refuse_smaller_gpu
from tilewright.runtime.held import HeldFile, hold_module, hold_weights
from tilewright.runtime.jax_arrays import JaxCaller
from tilewright.runtime.metadata import Metadata
from tilewright.runtime.nested import NestedCaller
from tilewright.runtime.processor import missing_features
from tilewright.runtime.saving import export_file, save_files
from tilewright.runtime.session import BoundCall, Session
from tilewright.runtime.shapes import Shapes, ShapeState
from tilewright.runtime.state import Steps
from tilewright.runtime.trace import Span
from tilewright.system.cores import spell_threads
from tilewright.system.outputs import refuse_special


class Program:
    """A model compiled by `tilewright.compile`, or loaded by `tilewright.load`."""

    _quick: Callable[[Sequence[Any]], list[Any] | None] | None = None
    """Runs arrays that fit as they are, once the program is loaded, if it takes no nested arguments and has no kernels
    for other shapes."""

    def __init__(
        self,
        *,
        module: Path | HeldFile,
        parameters: Mapping[str, Path | HeldFile],
        metadata: Metadata,
        keep_alive: object = None,
        sources: Iterable[Path] = (),
        cache_notes: Sequence[str] = (),
        make_shapes: Callable[[Metadata], Shapes | None] = lambda _: None,
        again: Again[Program] | None = None,
    ) -> None:
        self._module = hold_module(module)
        self._parameters = {scope: hold_weights(file) for scope, file in parameters.items()}
        self._metadata = metadata
        self._session: Session | None = None
        self._direct: DirectSession | CudaSession | None = None
        self._caller: NestedCaller | JaxCaller | None = None
        self._loading = threading.Lock()
        self._keep_alive = keep_alive
        """Owner of the files, kept alive while the program maps them."""
        self._sources = tuple(source.absolute() for source in sources)
        """Parameter files that the program was compiled from, which `save` must not replace."""
        self._cache_notes = tuple(cache_notes)
        self._again = again or Again()
        self._shapes = make_shapes(metadata)
        """Programs for shapes of a dynamic model; None if nothing more can be compiled."""
        self._axes = open_axes(signature_inputs(metadata.signature)) if metadata.signature else ()

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs the program on arrays in the order of its inputs; returns a list in the order of its outputs.

        Inputs may also be given by name, and those with defaults, which come last, may be left out. A program that was
        a PyTorch module or a function of JAX is called like it, on tensors or arrays, and returns what it returns.
        Raises `InputError` for arrays that do not fit the signature (number, dtype or shape), and `ProgramError` if the
        program cannot be loaded or fails.

        A program for a GPU that runs without IREE also takes tensors on the GPU: of PyTorch and CuPy, whose kernels are
        launched on the current stream and whose results are tensors of the same library, and others by DLPack.

        A program of a dynamic model runs kernels for the shapes of the arrays if it has such; see docs/guide/shapes.md.
        """
        if self._quick is not None and not named and (results := self._quick(arrays)) is not None:
            return results
        if self._metadata.calling is not None:
            caller = self._nested()
            values = caller.flatten(arrays, named)
            chosen = self._find(values)
            if isinstance(chosen, Bucket):
                return chosen.program._nested().run(chosen.filled(values), chosen.cut)
            return (caller if chosen is self else chosen._nested()).run(values)
        if named:
            arrays = (*arrays, *self._by_position(len(arrays), named))
        chosen = self._find(arrays)
        if isinstance(chosen, Bucket):
            return chosen.cut(chosen.program._run(chosen.filled(self._check(arrays))))
        return chosen._run(arrays)

    def _run(self, arrays: Sequence[Any]) -> list[Array]:
        direct = self._direct_session()
        if direct is not None:
            results = direct.run_fitting(arrays)
            return direct(direct.checked(self._check(arrays))) if results is None else results
        call = self._bind(arrays)
        call()
        return call.outputs()

    def trace(self, *arrays: Any, calls: int = 3) -> list[Span]:
        """Calls the program on arrays several times and returns where the time went, for `runtime.trace.save_trace`.

        A program that runs without IREE has a span for each kernel on each thread; others have one for each call.
        """
        chosen = self._for_shapes(arrays)
        checked, direct = chosen._check(arrays), chosen._direct_session()
        session = None if direct else chosen.session()
        spans = []
        for number in range(calls):
            started = time.perf_counter()
            if direct is not None:
                spans += direct.trace(direct.checked(checked))
            elif session is not None:
                session(checked, chosen.signature)
            spans.append(Span(f"call {number}", 0, started, time.perf_counter()))
        return spans

    def bind(self, *arrays: Any, graph: bool = False, **named: Any) -> BoundCall | DirectCall | CudaCall:
        """Returns a call whose inputs are moved into place once.

        `call()` runs it, and `call.outputs()` returns the results. With `graph`, a program on a GPU that runs without
        IREE is captured into a CUDA graph, which the driver launches at once; an input of that name is given by
        position. Raises the errors of `__call__`, and `ProgramError` if there is nothing to capture.
        """
        if named:
            arrays = (*arrays, *self._by_position(len(arrays), named))
        return self._for_shapes(arrays)._bind(arrays, graph=graph)

    def _bind(self, arrays: Sequence[Any], *, graph: bool = False) -> BoundCall | DirectCall | CudaCall:
        direct = self._direct_session()
        if isinstance(direct, CudaSession):
            return direct.bind(arrays if direct.takes(arrays) else self._check(arrays), graph=graph)
        if graph:
            raise ProgramError(
                "it cannot be captured into a CUDA graph: "
                + ("it runs on processors" if direct else "IREE runs it"),
                where=self._metadata.entry,
                hint="bind it without graph=True",
            )
        checked = self._check(arrays)
        return direct.bind(checked) if direct else self.session().bind(checked, self._metadata.signature)

    def _check(self, arrays: Sequence[Any]) -> list[Array]:
        """Returns inputs as contiguous arrays; raises `InputError` for those that do not fit the signature."""
        signature = self._metadata.signature
        for position, array in enumerate(arrays):
            if is_on_gpu(array):
                name = (
                    signature.inputs[position].name
                    if signature and position < len(signature.inputs)
                    else f"{position}"
                )
                raise InputError(
                    "it is on a GPU, and this program takes arrays in the host's memory",
                    where=f"input '{name}'",
                    hint="copy it there, as x.cpu() does",
                )
        return (
            signature.check_inputs(arrays) if signature else [np.require(a, requirements="C") for a in arrays]
        )

    def _by_position(self, before: int, named: Mapping[str, Any]) -> list[Any]:
        """Returns the inputs given by name in order, with defaults between them; `before` others precede them."""
        inputs = self._metadata.signature.inputs[before:] if self._metadata.signature else ()
        names = [spec.name for spec in inputs]
        if unknown := [name for name in named if name not in names]:
            raise InputError(
                f"'{unknown[0]}' was given by name, but no input that is left has this name",
                hint=f"the inputs that are left: {', '.join(names) or 'none'}",
            )
        upto = inputs[: 1 + max(map(names.index, named))]
        for spec in upto:
            if spec.name not in named and not spec.has_default:
                raise InputError(f"input '{spec.name}' is missing")
        defaults = self.runner().defaults
        return [named[spec.name] if spec.name in named else defaults.array(spec) for spec in upto]

    def _for_shapes(self, values: Sequence[Any]) -> Program:
        """Returns the program that runs arrays or tensors of these shapes as they are; see `_find`."""
        found = self._find(values)
        return self if isinstance(found, Bucket) else found

    def _find(self, values: Sequence[Any]) -> Program | Bucket:
        """Returns the program that runs arrays or tensors of these shapes, or one for more rows; this one, if they do
        not fit it.

        Raises `InputError` for sizes that it was not compiled for.
        """
        signature = self._metadata.signature
        if not self._axes or signature is None:
            return self
        sizes = sizes_of(self._axes, signature, values)
        if sizes is None:
            return self
        check_sizes(sizes, self._metadata.dims, self._axes, signature)
        return (self._shapes.find(sizes) if self._shapes else None) or self

    def build(
        self, dims: Mapping[str, int | Sequence[int]] | None = None, /, **named: int | Sequence[int]
    ) -> None:
        """Compiles a dynamic model for sizes of its dims now, and keeps that: `program.build(batch=1, seq=[16, 128])`.

        Every dim must get a size or a list of sizes; all combinations are compiled. A dim whose name is no word of
        Python ("x.0") is given in a mapping. Raises `ProgramError` if the program has no dims or its model is not at
        hand, `CompileError` for sizes that are wrong, and the errors of `tilewright.compile`.
        """
        names = dim_names(self._axes)
        if self._shapes is None or self.signature is None:
            reason = "its model is not at hand" if names else "its shapes are fixed"
            raise ProgramError(
                f"it cannot be built for more shapes: {reason}",
                where=self._metadata.entry,
                hint="use what tilewright.compile returns for a dynamic model",
            )
        given = settle_names(
            read_dims({**(dims or {}), **named}), signature_inputs(self.signature), where=self._metadata.entry
        )
        shapes = all_shapes(given, names)
        for sizes in shapes:
            check_sizes(sizes, self._metadata.dims, self._axes, self.signature)
        self._shapes.build(shapes)

    @property
    def shapes(self) -> tuple[ShapeState, ...]:
        """What became of the shapes that a program of a dynamic model was called with or built for."""
        return self._shapes.all() if self._shapes is not None else ()

    def _nested(self) -> NestedCaller | JaxCaller:
        """Returns the caller for the arguments of the module or function, made at the first call."""
        if self._caller is None:
            signature, calling = self._metadata.signature, self._metadata.calling
            assert signature is not None and calling is not None
            is_local = self._metadata.kind.in_process
            self._caller = (
                JaxCaller(self.runner(), signature, calling)
                if calling.kind == "jax"
                else NestedCaller(self.runner(), signature, calling, is_local=is_local)
            )
        return self._caller

    def steps(self, /, **state: Any) -> Steps:
        """Returns successive calls with state between them (`compile(..., state=)`).

        The state begins with the arrays given by the names of their inputs, or with zeros. Raises `ProgramError` if the
        program has no state.
        """
        if not self._metadata.state or self.signature is None:
            raise ProgramError(
                "it has no state", where=self._metadata.entry, hint="compile it with state={output: input}"
            )
        chosen = self._for_state(state)
        return Steps(
            chosen.session(), chosen._metadata.signature or self.signature, self._metadata.state, state
        )

    def _for_state(self, state: Mapping[str, Any]) -> Program:
        """Returns the program for steps: one for a shape if the state alone gives all sizes, else this one."""
        signature = self.signature
        if not self._axes or signature is None:
            return self
        held = [spec for spec in signature.inputs if spec.name in state]
        axes = open_axes([(spec.name, spec.shape) for spec in held])
        if set(dim_names(axes)) != set(dim_names(self._axes)):
            return self
        part = Signature(tuple(held), ())
        sizes = sizes_of(axes, part, [state[spec.name] for spec in held])
        if sizes is None:
            return self
        check_sizes(sizes, self._metadata.dims, axes, part)
        found = self._shapes.find(sizes) if self._shapes else None
        return self if found is None or isinstance(found, Bucket) else found

    def load(self) -> None:
        """Loads the program into the runtime that calls use; otherwise the first call does so.

        Raises `ProgramError` if this machine cannot run it.
        """
        self.runner()

    def runner(self) -> DirectSession | CudaSession | Session:
        """Returns the session that runs calls, loaded."""
        return self._direct_session() or self.session()

    @property
    def runtime(self) -> Literal["direct", "iree"]:
        """What runs calls: "direct" for a program whose kernels are all ours, otherwise IREE's runtime. Both give the
        same bits."""
        return "direct" if self._metadata.launches is not None and is_available() else "iree"

    def _direct_session(self) -> DirectSession | CudaSession | None:
        """Returns the session that runs the kernels without IREE, or None if only IREE can run the program."""
        if self._direct is not None or self.runtime != "direct":
            return self._direct
        with self._loading:
            if self._direct is None:
                self._direct = self._load_direct()
                if self._metadata.calling is None and not self._axes:
                    self._quick = self._direct.run_fitting
            return self._direct

    def _load_direct(self) -> DirectSession | CudaSession:
        metadata = self._metadata
        launches, signature, entry = metadata.launches, metadata.signature, metadata.entry
        assert launches is not None and signature is not None
        if metadata.kind.in_process:
            self._refuse_missing_features()
            return DirectSession(
                launches, self._module, self._parameters, signature, threads=metadata.threads, entry=entry
            )
        refuse_older_gpu(metadata)
        try:
            loaded = CudaSession(
                launches, self._module, self._parameters, signature, entry=entry, report=metadata.report
            )
            self._again = replace(self._again, without_barriers=None)  # which holds the model
            return loaded
        except NotResidentError as error:
            if self._again.without_barriers is None:
                raise
            self._take(self._again.without_barriers())
            self.add_note(f"compiled again without grid barriers, because {error.message}")
        return self._load_direct()

    def _take(self, other: Program) -> None:
        """Becomes another program of the same model."""
        self._module, self._parameters, self._metadata = other._module, other._parameters, other._metadata
        self._keep_alive, self._again = (self._keep_alive, other._keep_alive), other._again

    def add_note(self, note: str) -> None:
        """Adds a note to those of the compilation, which `explain` shows."""
        self._metadata = replace(self._metadata, notes=(*self._metadata.notes, note))

    def _deploy(self) -> None:
        """Gets a module for IREE, if there is none yet. Raises the errors of `tilewright.compile`."""
        if self._metadata.is_deployable:
            return
        assert self._again.deployed is not None, "only what compile returns has no module"
        notes = self._metadata.notes
        self._take(self._again.deployed())
        self._metadata = replace(self._metadata, notes=notes)

    def _refuse_missing_features(self) -> None:
        if missing := missing_features(self._metadata.features):
            target = self._metadata.target
            raise ProgramError(
                f"it was compiled for target {target}, but this machine lacks {', '.join(missing)}",
                where=self._metadata.entry,
                hint="compile it for target 'cpu' here",
            )

    def session(self) -> Session:
        """Returns the program in IREE's runtime, which can run every program; loads it if it is not loaded yet.

        Raises `ProgramError` if this machine cannot run it.
        """
        with self._loading:
            if self._session is None:
                self._deploy()
                self._refuse_missing_features()
                refuse_smaller_gpu(self._metadata)
                self._session = Session(
                    self._module,
                    self._parameters,
                    entry=self._metadata.entry,
                    threads=threads_in_iree(self._metadata.report, self._metadata.threads),
                    kind=self._metadata.kind,
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
    def cache_notes(self) -> tuple[str, ...]:
        """Notes on the compilation cache: that the program came from it, and when it was compiled, or why not.

        `save` does not store them.
        """
        return self._cache_notes

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that Tilewright compiled; IREE's own are not among them. Those that are compiled for shapes when
        the program is called are in `shapes`."""
        ahead = [kernel for shape in self._metadata.shapes for kernel in shape.report.kernels]
        return (*self._metadata.report.kernels, *ahead)

    @property
    def plan(self) -> Plan | None:
        """The plan of the program, to inspect or to change; None if there was nothing to plan."""
        return Plan.from_json(self._metadata.plan) if self._metadata.plan is not None else None

    @property
    def module_path(self) -> Path:
        """Path of the module for IREE's tools (`iree-run-module --module=`)."""
        self._deploy()
        return self._module.path

    @property
    def parameter_paths(self) -> Mapping[str, Path]:
        """Paths of the weights by scope, for IREE's tools (`--parameters=scope=path`)."""
        return {scope: file.path for scope, file in self._parameters.items()}

    @overload
    def explain(self, format: Literal["text"] = "text", *, verbose: bool = False) -> str: ...
    @overload
    def explain(self, format: Literal["json"], *, verbose: bool = False) -> dict[str, Any]: ...
    def explain(
        self, format: Literal["text", "json"] = "text", *, verbose: bool = False
    ) -> str | dict[str, Any]:
        """Returns what was built and why: a summary (kernels, the boundaries between them, coverage), then each
        kernel with tiles, predictions and numerics.

        The text names ops that only say where elements lie if `verbose` is set. JSON has everything.
        """
        if format == "json":
            return explain_json(self._metadata, self._cache_notes, shapes=self.shapes)
        if format == "text":
            return explain_text(self._metadata, self._cache_notes, shapes=self.shapes, verbose=verbose)
        raise ValueError(f"format must be 'text' or 'json', not {format!r}")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the module to `path` (.vmfb), and its weights (.irpa) and this program's metadata (.json)
        beside it.

        All files are written under temporary names first and renamed when all are complete, so programs that use
        the earlier files keep them. Raises `OutputError` if they cannot be written; the earlier files are then still
        there. A process that is killed between two renames leaves files that `load` refuses.

        A program of a dynamic model is saved with all shapes that it has kernels for, in one module, which takes
        another compilation; that raises the errors of `tilewright.compile`.
        """
        refuse_special(path)
        self._deploy()
        together = self._shapes.save_as_one() if self._shapes is not None else None
        if together is not None:
            return together.save(path)
        return save_files(
            Path(path),
            module=self._module,
            parameters=self._parameters,
            metadata=self._metadata,
            sources=self._sources,
        )

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Writes code and weights as one file (.twp), which the runtime for C runs without Python and IREE.

        Raises `ProgramError` if the program needs IREE, and `OutputError` if the file cannot be written.
        """
        from tilewright.runtime.exported import exported

        refuse_special(path)
        return export_file(Path(path), exported(self._metadata, self._module, self._parameters))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the program with its weights. What unpickles it runs native code, as `load` does."""
        from tilewright.runtime.pickling import packed, unpacked  # they make programs

        return unpacked, (packed(self), self._sources, self._cache_notes)

    def __repr__(self) -> str:
        signature = str(self.signature) if self.signature else "(?) -> (?)"
        return (
            f"<tilewright.Program {self._metadata.entry}{signature}, {len(self.kernels)} fused kernels, "
            f"target {self._metadata.target}{_threads(self._metadata)}>"
        )


def _threads(metadata: Metadata) -> str:
    return f", {spell_threads(metadata.threads)}" if metadata.kind.in_process else ""
