"""Results that a loop collects: one slice in each iteration, put side by side in a tensor that the loop carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler.dialects import arith

from tilewright.frontends import scf as pieces
from tilewright.frontends.scf import Length, Value


@dataclass(frozen=True)
class Stack:
    """A collected result, and where its slices go.

    If the shape of the whole result is known when the loop begins, the loop carries a tensor of this shape, and each
    iteration writes its slice. Otherwise, each iteration makes a tensor that is longer by one slice, which moves more
    data.
    """

    name: str
    where: str
    slice_type: Any
    """The builtin tensor type of a slice."""
    axis: int
    sizes: Sequence[Length] | None
    """The lengths of a slice's dims, if all of them are known before the loop."""
    room: Length | None
    """The most slices, if this is known before the loop."""
    is_reversed: bool = False
    is_boxed: bool = False
    """True if the tensor crosses the border of the loop as a buffer view."""

    @property
    def type(self) -> Any:
        """The builtin tensor type of the collected result while the loop runs."""
        room = -1
        if self.sizes is not None and isinstance(self.room, int) and not self.is_boxed:
            room = self.room
        shape = pieces.shape_of(self.slice_type)
        return pieces.tensor_type(
            [*shape[: self.axis], room, *shape[self.axis :]], self.slice_type.element_type
        )

    def begin(self) -> Value:
        """Makes the tensor that the loop begins with."""
        if self.sizes is not None and self.room is not None:
            # IREE writes into the buffer of a view, so two loops must not get the same one.
            return self._empty(self.sizes, pieces.opaque(self.room) if self.is_boxed else self.room)
        return self._empty([max(0, size) for size in pieces.shape_of(self.slice_type)], 0)

    def store(self, collected: Value, step: Value, value: Value) -> Value:
        """Returns the tensor with the slice of an iteration. Slices of different shapes end the program."""
        value = pieces.as_type(value, self.slice_type, what=f"'{self.name}'", where=self.where)
        self._check_shape(collected, step, value)
        if self.sizes is None or self.room is None:
            return self._append(collected, step, value)
        position = pieces.from_end(self.room, step) if self.is_reversed else step
        return pieces.put(value, collected, self.axis, position)

    def _check_shape(self, collected: Value, step: Value, value: Value) -> None:
        others = [length for axis, length in enumerate(pieces.lengths(collected)) if axis != self.axis]
        message = f"{self.where}: iterations give '{self.name}' different shapes"
        for dim, (size, other) in enumerate(zip(pieces.shape_of(self.slice_type), others, strict=True)):
            if size < 0:
                length = pieces.length(value, dim)
                if self.sizes is None:  # The first slice determines the shape.
                    is_first = arith.cmpi(arith.CmpIPredicate.eq, step, pieces.index(0))
                    other = arith.select(is_first, pieces.index(length), pieces.index(other))
                pieces.require_equal(length, other, message)

    def _append(self, collected: Value, step: Value, value: Value) -> Value:
        """Returns a tensor that is longer by one slice."""
        longer = self._empty(pieces.lengths(value), arith.addi(step, pieces.index(1)))
        copied = pieces.put_all(collected, longer, self.axis, 1 if self.is_reversed else 0)
        return pieces.put(value, copied, self.axis, 0 if self.is_reversed else step)

    def _empty(self, sizes: Sequence[Length], room: Length) -> Value:
        return pieces.empty(self.type, [*sizes[: self.axis], room, *sizes[self.axis :]])
