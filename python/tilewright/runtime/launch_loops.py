"""Loops of a program that runs without IREE: where the tensors of their bodies lie in each step.

A tensor that a loop carries lies in the memory of its initial value in step 0. After that, it lies where the step
before has put the next value, so steps alternate between two memories. A part of a sequence that a step reads or
writes moves along the sequence. So no step copies, unless a value has to be in two places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilewright.records.signature import element_dtype

ALIGNMENT = 64
"""Bytes that the addresses of tensors are multiples of, which kernels write."""


class NotOursError(Exception):
    """The program needs more than launches, loops over them, and slices."""


@dataclass(frozen=True)
class Step:
    """A launch of a kernel on tensors, given by their numbers, or a copy of the first tensor to the second."""

    kernel: str
    """Empty for a copy."""
    workgroups: int
    tensors: tuple[int, ...]
    """One per binding: what it reads, then what it writes in memory of its own."""
    bytes: int = 0
    """Bytes that are copied."""
    threads: int = 0
    """Threads of a block on a GPU."""
    shared_bytes: int = 0
    """Bytes of shared memory of a block that the launch asks for."""
    meets_at_grid: bool = False
    """True if blocks wait for each other, so that all of them must be resident at once."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """Sizes, none of which is negative."""
        return self.workgroups, self.bytes, self.threads, self.shared_bytes


@dataclass(frozen=True)
class MovingTensor:
    """A tensor whose memory depends on the step. In step 0 it begins `first_offset` bytes behind `first`, in every
    other step i `offset + i * stride` bytes behind `even` or `odd`, which are tensors, too."""

    tensor: int
    first: int
    even: int
    odd: int
    first_offset: int = 0
    offset: int = 0
    stride: int = 0

    @property
    def bases(self) -> tuple[int, int, int]:
        return self.first, self.even, self.odd


@dataclass(frozen=True)
class LoopSteps:
    """Steps that are repeated."""

    begin: int
    end: int
    """Steps from `begin` to `end - 1` are the body."""
    steps: int
    slots: tuple[MovingTensor, ...]
    """Each after those that it begins behind."""

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LoopSteps:
        slots = tuple(MovingTensor(**slot) for slot in data["slots"])
        return LoopSteps(data["begin"], data["end"], data["steps"], slots)


class FlowReader:
    """Turns the description of a program's flow into steps in order, and loops over them."""

    def __init__(
        self, tensors: Sequence[Mapping[str, Any]], results: frozenset[int], *, alignment: int = 1
    ) -> None:
        """`results` are tensors that need memory of their own, because they are results of the program. Kernels read
        parts of tensors that begin at multiples of `alignment` bytes."""
        self.steps: list[Step] = []
        self.loops: list[LoopSteps] = []
        self.made: dict[int, int] = {}
        """Bytes of the tensors that need memory of their own."""
        self.arguments: dict[int, int] = {}
        """Inputs of the program that nothing reads, by the numbers of new tensors."""
        self.local_bytes = 0
        self.alignment = alignment
        self._tensors = tensors
        self._results = results
        self._storage: dict[int, int] = {}
        self._next = len(tensors)

    def read(self, flow: Sequence[Mapping[str, Any]]) -> None:
        """Raises `NotOursError` if launches and loops are not all that the program consists of."""
        for item in flow:
            if "loop" in item:
                _Loop(self, item["loop"]).read()
            elif "slice" not in item and "update" not in item:
                self._launch(item)

    def read_results(self, results: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> list[int]:
        """Returns the tensors in whose memory the results of the program are, given their bytes.

        A result that no kernel computes (an input, a constant) or that is given twice is copied. Raises `NotOursError`
        if it lies where a loop has left it.
        """
        moving = {slot.tensor for loop in self.loops for slot in loop.slots}
        found: list[int] = []
        for result, size in zip(results, sizes, strict=True):
            if "tensor" in result:
                number = self.root(result["tensor"])
            else:
                number = self.invent()
                self.arguments[number] = result["argument"]
            if number in moving:
                raise NotOursError
            if number not in self.made or number in found:
                copied = self.invent(size)
                self.copy(number, copied, size)
                number = copied
            found.append(number)
        return found

    def root(self, number: int) -> int:
        """Returns the tensor whose memory a tensor takes."""
        while number in self._storage:
            number = self._storage[number]
        return number

    def share(self, number: int, other: int) -> None:
        """Lets a tensor take the memory of another one."""
        self._storage[number] = other

    def is_result(self, number: int) -> bool:
        return number in self._results

    def source(self, number: int) -> str:
        """Returns the op that makes a tensor, or "" if it is no op of another compiler."""
        return str(self._tensors[number].get("op", "")) if number < len(self._tensors) else ""

    def bytes_of(self, number: int) -> int:
        return int(math.prod(self._tensors[number]["shape"])) * self.element_bytes(number)

    def element_bytes(self, number: int) -> int:
        return element_dtype(self._tensors[number]["element"]).itemsize

    def make(self, number: int) -> int:
        """Gives a tensor memory of its own."""
        self.made[number] = self.bytes_of(number)
        return number

    def invent(self, bytes_: int | None = None) -> int:
        """Returns the number of a new tensor, with memory of its own if bytes are given."""
        number, self._next = self._next, self._next + 1
        if bytes_ is not None:
            self.made[number] = bytes_
        return number

    def copy(self, source: int, target: int, bytes_: int) -> None:
        self.steps.append(Step("", 1, (self.root(source), self.root(target)), bytes_))

    def _launch(self, launch: Mapping[str, Any]) -> None:
        if "export" not in launch:
            raise NotOursError
        bindings = [self.root(number) for number in launch["inputs"]]
        for number, tied in zip(launch["outputs"], launch["tied"], strict=True):
            if tied >= 0:
                self.share(number, bindings[tied])
            else:
                bindings.append(self.make(number))
        self.local_bytes = max(self.local_bytes, launch["local_bytes"])
        on_gpu = {
            name: launch[name] for name in ("threads", "shared_bytes", "meets_at_grid") if name in launch
        }
        self.steps.append(Step(launch["export"], launch["workgroups"], tuple(bindings), **on_gpu))


class _Loop:
    """Reads one loop."""

    def __init__(self, reader: FlowReader, loop: Mapping[str, Any]) -> None:
        if loop.get("steps", 0) < 1:
            raise NotOursError  # it may end early, or makes no step
        self._reader = reader
        self._count: int = loop["steps"]
        self._body: Sequence[Mapping[str, Any]] = loop["body"]
        self._carried: Sequence[Mapping[str, int]] = loop["carried"]
        self._slots: list[MovingTensor] = []

    def read(self) -> None:
        reader = self._reader
        slices = [item["slice"] for item in self._body if "slice" in item]
        updates = [item["update"] for item in self._body if "update" in item]
        collected = {update["result"]: self._updated(update) for update in updates}
        for entry in self._carried:
            if entry["next"] in collected and reader.source(entry["initial"]) != "tensor.empty":
                reader.copy(entry["initial"], entry["result"], reader.bytes_of(entry["result"]))
        begin, number = len(reader.steps), len(reader.loops)
        known = set(reader.made)
        reader.read(self._body)
        own = set(reader.made) - known
        if begin == len(reader.steps):
            raise NotOursError
        copies = [
            copied
            for update in updates
            if (copied := self._collect(update, collected[update["result"]], own))
        ]
        states = [entry for entry in self._carried if entry["next"] not in collected]
        after = [needed for entry in states if (needed := self._carry(entry, own))]
        for part in slices:
            self._move(part["result"], part["whole"], part)
        for source, target, size in copies:
            reader.copy(source, target, size)
        reader.loops.insert(
            number,
            LoopSteps(begin, len(reader.steps), self._count, tuple(map(self._with_roots, self._slots))),
        )
        for source, target in after:
            reader.copy(source, target, reader.bytes_of(target))

    def _with_roots(self, slot: MovingTensor) -> MovingTensor:
        root = self._reader.root
        return replace(slot, first=root(slot.first), even=root(slot.even), odd=root(slot.odd))

    def _updated(self, update: Mapping[str, int]) -> int:
        """Returns the memory in which a sequence is collected, part by part."""
        whole, result = update["whole"], update["result"]
        entry = next((e for e in self._carried if e["argument"] == whole and e["next"] == result), None)
        if entry is None or _is_read(whole, self._body) or _uses(result, self._carried) > 1:
            raise NotOursError
        self._reader.make(entry["result"])
        self._reader.share(whole, entry["result"])
        self._reader.share(result, entry["result"])
        return entry["result"]

    def _collect(self, update: Mapping[str, int], whole: int, own: set[int]) -> tuple[int, int, int] | None:
        """Lets a kernel write a part of a sequence where it belongs. Returns a copy where that is not possible."""
        part = self._reader.root(update["part"])
        size = self._reader.element_bytes(whole)
        is_aligned = update["offset"] * size % ALIGNMENT == 0 and update["stride"] * size % ALIGNMENT == 0
        if part in own and is_aligned and not self._is_placed(part):
            del self._reader.made[part]
            self._move(part, whole, update)
            return None
        target = self._reader.invent()
        self._move(target, whole, update)
        return part, target, self._reader.bytes_of(update["part"])

    def _carry(self, entry: Mapping[str, int], own: set[int]) -> tuple[int, int] | None:
        """Places a state. Returns a copy that comes after the loop, if it needs one."""
        reader = self._reader
        argument, following, result = entry["argument"], reader.root(entry["next"]), entry["result"]
        placed = next((slot for slot in self._slots if slot.tensor == following), None)
        if following in own and placed is None:
            del reader.made[following]
            reader.make(result)
            other = reader.invent(reader.bytes_of(argument))
            even, odd = (result, other) if self._count % 2 else (other, result)
            self._slots.append(MovingTensor(following, even, even, odd))
            self._slots.append(MovingTensor(argument, entry["initial"], odd, even))
            return None
        if placed is not None and placed.stride != 0 and placed.tensor in own:
            self._slots.append(
                replace(
                    placed,
                    tensor=argument,
                    first=entry["initial"],
                    first_offset=0,
                    offset=placed.offset - placed.stride,
                )
            )
            if reader.is_result(result):
                reader.make(result)
                return following, result
            reader.share(result, following)  # which stays where the last step has put it
            return None
        raise NotOursError  # it is no result of a kernel

    def _is_placed(self, tensor: int) -> bool:
        return any(slot.tensor == tensor for slot in self._slots)

    def _move(self, tensor: int, whole: int, part: Mapping[str, int]) -> None:
        size = self._reader.element_bytes(whole)
        offset, stride = part["offset"] * size, part["stride"] * size
        if offset % self._reader.alignment or stride % self._reader.alignment or "from" in part:
            raise NotOursError
        self._slots.append(MovingTensor(tensor, whole, whole, whole, offset, offset, stride))


def _is_read(tensor: int, flow: Sequence[Mapping[str, Any]]) -> bool:
    """Returns True if anything but an update reads a tensor."""
    for item in flow:
        if "loop" in item:
            loop = item["loop"]
            initial = [entry["initial"] for entry in loop.get("carried", ())]
            if tensor in initial or _is_read(tensor, loop.get("body", ())):
                return True
        elif "slice" in item:
            if item["slice"]["whole"] == tensor:
                return True
        elif "update" in item:
            if item["update"]["part"] == tensor:
                return True
        elif tensor in item.get("inputs", ()):
            return True
    return False


def _uses(tensor: int, carried: Sequence[Mapping[str, int]]) -> int:
    return sum(entry["next"] == tensor for entry in carried)


def lifetimes(
    steps: Sequence[Step], loops: Sequence[LoopSteps], is_placed: Callable[[int], bool]
) -> dict[int, tuple[int, int]]:
    """Returns the first and the last step in which each of the tensors that are to be placed is in use. What a loop
    uses is in use from its begin to its end, because the next step needs it again."""
    moving = {slot.tensor: slot for loop in loops for slot in loop.slots}
    lives: dict[int, tuple[int, int]] = {}

    def use(number: int, first: int, last: int, seen: frozenset[int] = frozenset()) -> None:
        if number in seen:
            return
        if number in moving:
            for base in moving[number].bases:
                use(base, first, last, seen | {number})
        elif is_placed(number):
            known = lives.get(number, (first, last))
            lives[number] = (min(known[0], first), max(known[1], last))

    for position, step in enumerate(steps):
        around = next((loop for loop in loops if loop.begin <= position < loop.end), None)
        first, last = (around.begin, around.end - 1) if around else (position, position)
        for number in step.tensors:
            use(number, first, last)
    for loop in loops:
        outermost = next(other for other in loops if other.begin <= loop.begin < other.end)
        for slot in loop.slots:
            use(slot.tensor, outermost.begin, outermost.end - 1)
    return lives
