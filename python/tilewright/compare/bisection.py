"""Finds the first op of a model that is computed wrongly, and a small window of the model that shows it.

An op is the first if its result is wrong and those of the ops before it are right, each as the output of a program of
its ancestors. Fusion is then as in the whole program as far as possible; results that become right only because a later
op is missing are not found. The window is shrunk from the front, on the values of the whole model, as long as it is
still wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx import ModelProto

from tilewright.compare.windows import Windows
from tilewright.reference.judging import Difference
from tilewright.reference.oracle import Array

Test = Callable[[ModelProto, Sequence[Array]], list[Difference]]
"""A function that compiles a model, runs it on inputs, and returns what is wrong; nothing if it does not compile."""

_MOST_TRIES = 80
"""Most programs that are compiled to find and shrink a window."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The first op that is wrong, and a window of the model that shows it."""

    node: str
    op: str
    window: ModelProto
    inputs: list[Array]
    differences: list[Difference]
    ops: tuple[str, ...]
    """The names of the window's ops, in order."""


def name_of(node: object) -> str:
    """Returns a node's name, or that of its first result, which messages show in place of a missing name."""
    return str(getattr(node, "name", "") or next(filter(None, getattr(node, "output", [])), ""))


def find_first(windows: Windows, output: str, test: Test, *, progress: Callable[[str], None]) -> Found | None:
    """Returns the first op on the way to a wrong output; None if no program of a part of the model is wrong."""
    last = windows.producer(output)
    return None if last is None else _Search(windows, test, progress).run(last)


class _Search:
    def __init__(self, windows: Windows, test: Test, progress: Callable[[str], None]) -> None:
        self._windows, self._test, self._progress = windows, test, progress
        self._known: dict[tuple[int, ...], list[Difference]] = {}

    def run(self, last: int) -> Found | None:
        everything = self._windows.ancestors(last)
        if not self._wrong(everything):
            return None
        first = self._first(everything)
        window = self._shrunk(self._windows.ancestors(first))
        model, inputs = self._windows.window(window)
        node = self._windows.nodes[first]
        return Found(
            node=name_of(node),
            op=node.op_type,
            window=model,
            inputs=inputs,
            differences=self._wrong(window),
            ops=tuple(name_of(self._windows.nodes[index]) for index in window),
        )

    def _wrong(self, indices: Sequence[int]) -> list[Difference]:
        key = tuple(indices)
        if key not in self._known:
            if len(self._known) >= _MOST_TRIES:
                return []
            self._progress(f"program {len(self._known) + 1}, of {len(key)} op{'s' if len(key) > 1 else ''}")
            self._known[key] = self._test(*self._windows.window(indices))
        return self._known[key]

    def _first(self, ops: list[int]) -> int:
        """Halves the ops, and then climbs to a parent as long as one is wrong."""
        low, high = 0, len(ops) - 1  # the op at `high` is wrong
        while low < high:
            middle = (low + high) // 2
            if self._wrong(self._windows.ancestors(ops[middle])):
                high = middle
            else:
                low = middle + 1
        first = ops[high]
        while wrong := [p for p in self._windows.parents(first) if self._wrong(self._windows.ancestors(p))]:
            first = wrong[0]
        return first

    def _shrunk(self, ops: list[int]) -> list[int]:
        """Returns the last ops that are still wrong together, without those that can be left out of them."""
        count = 1
        while count < len(ops) and not self._wrong(ops[-count:]):
            count = min(2 * count, len(ops))
        kept = ops[-count:]
        for index in kept[:-1]:
            fewer = [each for each in kept if each != index]
            if self._wrong(fewer):
                kept = fewer
        return kept
