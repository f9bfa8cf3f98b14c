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
from tilewright.runtime.buckets import Bucket, Rows
from tilewright.system.deadline import Deadline

if TYPE_CHECKING:
    from tilewright.runtime.program import Program

MOST_SHAPES = 16
"""Most shapes with a program of their own that were not asked for by `Program.build`."""
_MOST_KNOWN = 64
"""Most shapes without a program that are remembered."""

Key: TypeAlias = tuple[tuple[str, int], ...]
State: TypeAlias = Literal["seen", "waiting", "compiling", "ready", "covered", "failed"]
"""What became of a shape: "seen" has no program, as there are many others or sizes are listed; "waiting" is compiled
next; "covered" is computed by the program of a larger shape."""

_HARDLY_LARGER = 1.1
"""Ratio of rows up to which the program of a larger shape serves for good, as one of its own would save no more."""
_MOST_LARGER = 4.0
"""Ratio up to which a larger shape serves at all. Beyond it, IREE's dynamic program is about as fast."""


_DOING = {"waiting": "waiting to be compiled", "compiling": "being compiled"}


class Compile(Protocol):
    """Compiles a dynamic model."""

    def one(self, sizes: Sizes, *, background_deadline: Deadline | None = None) -> Program:
        """Returns a program for one shape, not loaded yet; raises `TilewrightError`. The deadline is for a compilation
        in the background, whose process then has the priority of the thread."""

    def rows(self, sizes: Sizes, larger: Sizes, *, background_deadline: Deadline) -> Rows | str:
        """Returns where the rows are if a program for `larger` computes a call with `sizes`, which differs in one dim;
        otherwise why that cannot be shown. Raises `TilewrightError`."""

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
    may_compile: bool = True
    """False if there is no room for a program of its own, and only a larger one may serve."""
    bucket: Bucket | None = field(default=None, repr=False)
    """The program of a larger shape that computes it."""
    uncovered: str = ""
    """Why the program of a larger shape does not compute it."""
    program: Program | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Returns everything but the program."""
        fields = ("sizes", "state", "calls", "seconds", "kernels", "origin", "error", "uncovered")
        larger = dict(self.bucket.sizes) if self.bucket else None
        return {**{name: getattr(self, name) for name in fields}, "filled_up_to": larger}

    def __str__(self) -> str:
        text = f"shape {spell_sizes(self.sizes)}: "
        if self.state == "ready":
            text += f"{self.kernels} fused kernels, after {self.seconds:.1f} s"
            text += f", {self.origin}" if self.origin else ""
        elif self.bucket is not None:
            text += f"filled up to {spell_sizes(self.bucket.sizes)}, as each row is computed by itself"
            text += f", while its own program is {_DOING[self.state]}" if self.state in _DOING else ""
        elif self.state == "failed":
            text += f"IREE's dynamic program, because its own failed: {self.error}"
        elif self.state == "seen":
            text += "the program below, for it gets none of its own"
        else:
            text += f"IREE's dynamic program, while its own is {_DOING[self.state]}"
        text += f"; not filled up: {self.uncovered}" if self.uncovered and self.state != "ready" else ""
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
        self._refuted: dict[str, str] = {}
        """Why calls are not filled up along a dim."""
        self._lock = threading.Lock()

    def find(self, sizes: Sizes) -> Program | Bucket | None:
        """Returns the program for a shape or a larger one, loaded; None if the dynamic program is to run. It may begin
        to compile one."""
        if sizes in self._ahead:
            return None
        with self._lock:
            shape = self._touch(sizes)
            shape.calls += 1
            program, bucket = shape.program, shape.bucket
            if program is None and shape.state == "seen":
                self._begin(shape)
            if program is None and bucket is not None:
                self._touch(bucket.sizes)
        if program is not None:
            return self._loaded(shape, program)
        if bucket is not None and self._loaded(shape, bucket.program) is not None:
            return bucket
        return None

    def _begin(self, shape: ShapeState) -> None:
        """Lets the background find a program for a shape that has none, if there is room or a larger one may serve."""
        shape.may_compile = self._may_compile(shape)
        if shape.may_compile or (shape.bucket is None and self._larger(shape) is not None):
            shape.state = "waiting"
            background.background.add(_Compilation(weakref.ref(self), shape))

    def _larger(self, shape: ShapeState) -> ShapeState | None:
        """Returns the shape with a program that is the least larger in one dim, and equal in all others."""
        found: tuple[float, ShapeState] | None = None
        for other in self._known.values():
            differing = [name for name in self._names if other.sizes[name] != shape.sizes[name]]
            if other.program is None or len(differing) != 1 or not shape.sizes[differing[0]]:
                continue
            if differing[0] in self._refuted:
                shape.uncovered = self._refuted[differing[0]]
                continue
            ratio = other.sizes[differing[0]] / shape.sizes[differing[0]]
            if 1 < ratio <= _MOST_LARGER and (found is None or ratio < found[0]):
                found = ratio, other
        return found[1] if found else None

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
            self._forget(_MOST_KNOWN, lambda shape: shape.state in ("seen", "covered", "failed"))
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
            larger = self._larger(shape)
        if larger is not None and self._cover(shape, larger, deadline):
            return
        started = time.monotonic()
        try:
            program = self._compile.one(shape.sizes, background_deadline=deadline)
        except Exception as error:  # whatever fails, the dynamic program serves the shape
            self._fail(shape, error)
            return
        shape.seconds = time.monotonic() - started
        self._fill(shape, program)

    def _cover(self, shape: ShapeState, larger: ShapeState, deadline: Deadline) -> bool:
        """Finds out whether the program of a larger shape may serve. Returns True if no other one is to be compiled."""
        try:
            found = self._compile.rows(shape.sizes, larger.sizes, background_deadline=deadline)
        except Exception as error:  # then it is not proven
            found = _one_line(error)
        with self._lock:
            [name] = [name for name in self._names if larger.sizes[name] != shape.sizes[name]]
            if isinstance(found, str):
                self._refuted[name] = shape.uncovered = found
            elif larger.program is not None:
                shape.bucket = Bucket(sizes=larger.sizes, rows=found, program=larger.program)
            ratio = larger.sizes[name] / shape.sizes[name]
            if shape.bucket is not None and ratio <= _HARDLY_LARGER:
                shape.state = "covered"
            elif not shape.may_compile:
                shape.state = "seen"
            return shape.state != "compiling"

    def _fill(self, shape: ShapeState, program: Program) -> None:
        with self._lock:
            shape.kernels = len(program.kernels)
            shape.origin = next(iter(program.cache_notes), "")
            shape.program, shape.state, shape.error, shape.bucket = program, "ready", "", None
            self._forget(self._most, lambda known: known.state == "ready" and not known.is_wanted)

    def _fail(self, shape: ShapeState, error: Exception) -> None:
        with self._lock:
            shape.program, shape.state, shape.error, shape.bucket = None, "failed", _one_line(error), None

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


def _one_line(error: Exception) -> str:
    text = str(error) if isinstance(error, TilewrightError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:500]


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
