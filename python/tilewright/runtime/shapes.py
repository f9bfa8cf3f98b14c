"""Programs for the shapes that a dynamic model is called with.

A call whose shape has a program of its own runs that. Any other call runs IREE's dynamic program, and a thread in the
background compiles a program for its shape. How many programs are kept is bounded; the one that was not used for the
longest time goes first. A shape whose compilation fails stays with the dynamic program, and the failure is kept for
`explain`; it is not tried again unless the caller asks for it (`Program.build`).
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from tilewright.errors import ProgramError, TilewrightError
from tilewright.records.dims import Dim, Sizes, spell_sizes
from tilewright.runtime import background
from tilewright.system.deadline import Deadline

if TYPE_CHECKING:
    from tilewright.runtime.program import Program

MOST_SHAPES = 16
"""Most shapes with a program of their own that were not asked for by `Program.build`."""
_MOST_KNOWN = 64
"""Most shapes without a program that are remembered."""

Key: TypeAlias = tuple[tuple[str, int], ...]
State: TypeAlias = Literal["seen", "waiting", "compiling", "ready", "failed"]
"""What became of a shape: "seen" has no program, as there are many others or sizes are listed; "waiting" is compiled
next."""


_DOING = {"waiting": "waiting to be compiled", "compiling": "being compiled"}


class Compile(Protocol):
    """Compiles a dynamic model."""

    def one(self, sizes: Sizes, *, background_deadline: Deadline | None = None) -> Program:
        """Returns a program for one shape, not loaded yet; raises `TilewrightError`. The deadline is for a compilation
        in the background, whose process then has the priority of the thread."""

    def all(self, shapes: Sequence[Sizes]) -> Program:
        """Returns one program for several shapes, with the dynamic program for others; raises `TilewrightError`."""


@dataclass(kw_only=True)
class ShapeState:
    """What became of a shape."""

    sizes: dict[str, int]
    state: State = "seen"
    calls: int = 0
    """Calls with it, including those that ran the dynamic program."""
    seconds: float = 0.0
    """Time from the request for a program to the program."""
    kernels: int = 0
    """Kernels of ours in its program."""
    origin: str = ""
    """Note of the compilation cache on the program."""
    error: str = ""
    """Why there is no program."""
    is_wanted: bool = False
    """True if the caller asked for it: it is kept."""
    program: Program | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the program."""
        fields = ("sizes", "state", "calls", "seconds", "kernels", "origin", "error")
        return {name: getattr(self, name) for name in fields}

    def __str__(self) -> str:
        text = f"shape {spell_sizes(self.sizes)}: "
        if self.state == "ready":
            text += f"{self.kernels} fused kernels, after {self.seconds:.1f} s"
            text += f", {self.origin}" if self.origin else ""
        elif self.state == "failed":
            text += f"IREE's dynamic program, because its own failed: {self.error}"
        elif self.state == "seen":
            text += "the program below, for it gets none of its own"
        else:
            text += f"IREE's dynamic program, while its own is {_DOING[self.state]}"
        return f"{text}; {self.calls} calls"


class Shapes:
    """The shapes of one dynamic program. All methods may be called from any thread."""

    def __init__(
        self,
        compile: Compile,
        *,
        names: Sequence[str],
        dims: Mapping[str, Dim],
        ahead: Sequence[Sizes] = (),
        most: int = MOST_SHAPES,
    ) -> None:
        """`ahead` are shapes that the dynamic program itself has kernels for."""
        self._compile, self._names, self._dims, self._most = compile, tuple(names), dims, most
        self._ahead = [dict(sizes) for sizes in ahead]
        self._known: OrderedDict[Key, ShapeState] = OrderedDict()
        """Least recently used first."""
        self._lock = threading.Lock()

    def find(self, sizes: Sizes) -> Program | None:
        """Returns the program for a shape, loaded; None if the dynamic program is to run. It may begin to compile
        one."""
        if sizes in self._ahead:
            return None
        with self._lock:
            shape = self._touch(sizes)
            shape.calls += 1
            program = shape.program
            if program is None and shape.state == "seen" and self._may_compile(shape):
                shape.state = "waiting"
                background.background.add(_Compilation(weakref.ref(self), shape))
        return self._loaded(shape, program) if program is not None else None

    def build(self, shapes: Sequence[Sizes]) -> None:
        """Compiles programs for shapes, and keeps them. Raises `TilewrightError`."""
        for sizes in shapes:
            if sizes in self._ahead:
                continue
            with self._lock:
                shape = self._touch(sizes)
                shape.is_wanted = True
                is_there = shape.program is not None
            if not is_there:
                self._fill(shape, self._compile_now(shape))

    def all(self) -> tuple[ShapeState, ...]:
        """Returns what became of every shape that is remembered, least recently used first."""
        with self._lock:
            return tuple(self._known.values())

    def save_as_one(self) -> Program | None:
        """Returns one program for all shapes that have kernels; None if the dynamic program is that."""
        ready = [shape.sizes for shape in self.all() if shape.program is not None]
        return self._compile.all([*self._ahead, *ready]) if ready else None

    def _touch(self, sizes: Sizes) -> ShapeState:
        """Returns what is known of a shape, as the most recently used one."""
        key = tuple((name, sizes[name]) for name in self._names)
        if key not in self._known:
            self._known[key] = ShapeState(sizes=dict(key))
            self._forget(_MOST_KNOWN, lambda shape: shape.state in ("seen", "failed"))
        self._known.move_to_end(key)
        return self._known[key]

    def _may_compile(self, shape: ShapeState) -> bool:
        """True if a shape is to get a program: at its first call while there is room, and at its second otherwise, so
        that shapes that come once do not replace those that come often."""
        if not all(
            size > 0 and (not self._dims[name].ahead or size in self._dims[name].ahead)
            for name, size in shape.sizes.items()
        ):
            return False
        taken = sum(known.state in ("waiting", "compiling", "ready") for known in self._known.values())
        waiting = sum(known.state == "waiting" for known in self._known.values())
        return taken < self._most or (shape.calls >= 2 and waiting < self._most)

    def _compile_now(self, shape: ShapeState) -> Program:
        started = time.monotonic()
        program = self._compile.one(shape.sizes)
        shape.seconds = time.monotonic() - started
        return program

    def compile_in_background(self, shape: ShapeState, deadline: Deadline) -> None:
        """Compiles a program for a shape, unless it has one meanwhile; a failure is noted."""
        with self._lock:
            if shape.state != "waiting":
                return
            shape.state = "compiling"
        started = time.monotonic()
        try:
            program = self._compile.one(shape.sizes, background_deadline=deadline)
        except Exception as error:  # whatever fails, the dynamic program serves the shape
            self._fail(shape, error)
            return
        shape.seconds = time.monotonic() - started
        self._fill(shape, program)

    def _fill(self, shape: ShapeState, program: Program) -> None:
        with self._lock:
            shape.kernels = len(program.kernels)
            shape.origin = next(iter(program.cache_notes), "")
            shape.program, shape.state, shape.error = program, "ready", ""
            self._forget(self._most, lambda known: known.state == "ready" and not known.is_wanted)

    def _fail(self, shape: ShapeState, error: Exception) -> None:
        with self._lock:
            text = str(error) if isinstance(error, TilewrightError) else f"{type(error).__name__}: {error}"
            shape.program, shape.state, shape.error = None, "failed", " ".join(text.split())[:500]

    def _loaded(self, shape: ShapeState, program: Program) -> Program | None:
        # It is loaded in the thread of the call: threads that the runtime starts inherit its priority.
        try:
            program.load()
        except ProgramError as error:
            self._fail(shape, error)
            return None
        return program

    def _forget(self, most: int, is_one: _Test) -> None:
        """Forgets the least recently used shapes of a kind if there are too many."""
        keys = [key for key, shape in self._known.items() if is_one(shape)]
        for key in keys[: max(0, len(keys) - most)]:
            del self._known[key]


class _Test(Protocol):
    def __call__(self, shape: ShapeState, /) -> bool: ...


@dataclass(frozen=True)
class _Compilation:
    """A compilation that waits for the background; it is dropped with the program that it is for."""

    shapes: weakref.ref[Shapes]
    shape: ShapeState

    def __call__(self, deadline: Deadline) -> None:
        shapes = self.shapes()
        if shapes is not None:
            shapes.compile_in_background(self.shape, deadline)
