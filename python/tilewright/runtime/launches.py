"""What a program does, as launches of kernels on tensors: enough to run it without IREE (`direct`).

`tile-print-launches` says which kernels run on which tensors. A program that needs anything else (ops that IREE
computes, results that are inputs, defaults) has no `LaunchPlan`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.records.signature import Signature, TensorSpec, element_dtype
from tilewright.runtime.tensors import parameter_of

ALIGNMENT = 64
"""Bytes that the addresses of tensors are multiples of."""

_MOST_CONSTANT_BYTES = 1 << 20
"""Most bytes of constants in a description, which is text; larger ones are weights in a file of their own."""


@dataclass(frozen=True)
class Step:
    """A launch of a kernel on tensors, given by their numbers."""

    kernel: str
    workgroups: int
    tensors: tuple[int, ...]
    """One per binding: what it reads, then what it writes in memory of its own."""


@dataclass(frozen=True)
class LaunchPlan:
    """What a program does, as launches of kernels on numbered tensors."""

    steps: tuple[Step, ...]
    arguments: Mapping[str, int]
    """The input that a tensor is, by the tensor's number (as text, because JSON's keys are)."""
    results: tuple[int, ...]
    """The tensor of each output."""
    constants: Mapping[str, Mapping[str, Any]]
    """Tensors that are weights or constants, as `tile-print-launches` describes them."""
    bytes: Mapping[str, int]
    """Bytes of the tensors that kernels hand to each other."""
    input_bytes: tuple[int, ...]
    output_bytes: tuple[int, ...]
    local_bytes: int
    """Bytes of memory that a workgroup needs."""
    processor_bits: Mapping[str, int]
    """The bit by which kernels know each feature of the processor."""

    def check(self, signature: Signature) -> None:
        """Raises `ValueError` if a number is negative or out of range, or a tensor is not described once."""
        numbers = [self.local_bytes, *self.bytes.values(), *self.processor_bits.values()]
        numbers += [step.workgroups for step in self.steps]
        if not self.steps or min(numbers) < 0 or max(self.processor_bits.values(), default=0) >= 64:
            raise ValueError("launches with sizes out of range")
        if not set(self.arguments.values()) <= set(range(len(signature.inputs))):
            raise ValueError("launches on inputs that there are not")
        if not _is_static(signature) or len(self.results) != len(signature.outputs):
            raise ValueError("launches with other results than the signature has")
        sizes = [tuple(map(size_of, specs)) for specs in (signature.inputs, signature.outputs)]
        if sizes != [self.input_bytes, self.output_bytes]:
            raise ValueError("launches on inputs or outputs of other sizes than the signature has")
        known = [*map(int, self.arguments), *self.results, *map(int, self.constants), *map(int, self.bytes)]
        if len(known) != len(set(known)):
            raise ValueError("launches on a tensor that is described twice")
        if not {number for step in self.steps for number in step.tensors} <= set(known):
            raise ValueError("launches on tensors that are not described")
        for tensor in self.constants.values():
            self._check_constant(tensor)

    def _check_constant(self, tensor: Mapping[str, Any]) -> None:
        try:
            element_dtype(tensor["element"])
            parts = tensor.get("arranged", {"inputs": [], "shapes": []})
            sizes = [*tensor["shape"], *(size for shape in parts["shapes"] for size in shape)]
            sizes += [parts.get("axis", 0), *parts.get("permutation", ())]
            if not all(type(size) is int and size >= 0 for size in sizes):
                raise ValueError("launches on a constant of no size")
            is_known = parts["inputs"] or "base64" in tensor or parameter_of(tensor) is not None
            if not is_known or not {str(part) for part in parts["inputs"]} <= set(self.constants):
                raise ValueError("launches on a constant of unknown origin")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("launches on a constant that is described wrongly") from error

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LaunchPlan:
        steps = tuple(Step(s["kernel"], s["workgroups"], tuple(s["tensors"])) for s in data["steps"])
        lists = {name: tuple(data[name]) for name in ("results", "input_bytes", "output_bytes")}
        return LaunchPlan(**{**data, **lists, "steps": steps})


def plan_launches(flow: Mapping[str, Any], signature: Signature) -> LaunchPlan | None:
    """Returns the launches of a program, or None if kernels of ours alone cannot run it."""
    tensors = flow.get("tensors", [])
    storage: dict[int, int] = {}
    """The tensor whose memory another one takes."""
    steps, made = [], set[int]()
    for launch in flow["launches"]:
        if "export" not in launch:
            return None
        bindings = [storage.get(number, number) for number in launch["inputs"]]
        for number, tied in zip(launch["outputs"], launch["tied"], strict=True):
            if tied >= 0:
                storage[number] = bindings[tied]
            else:
                bindings.append(number)
                made.add(number)
        steps.append(Step(launch["export"], launch["workgroups"], tuple(bindings)))
    results = [storage.get(result.get("tensor", -1), result.get("tensor", -1)) for result in flow["results"]]
    if len(set(results)) < len(results) or not made.issuperset(results):
        return None  # a result is given twice, or no kernel computes it
    used = {number for step in steps for number in step.tensors}
    arguments = {number: tensors[number]["argument"] for number in used if "argument" in tensors[number]}
    constants = _with_parts(used - made - set(arguments), tensors)
    if constants is None or not _fit(signature, tensors, arguments, results):
        return None
    if sum(len(constant.get("base64", "")) for constant in constants.values()) > _MOST_CONSTANT_BYTES:
        return None
    return LaunchPlan(
        steps=tuple(steps),
        arguments={str(number): argument for number, argument in arguments.items()},
        results=tuple(results),
        constants={str(number): constant for number, constant in constants.items()},
        bytes={str(number): _bytes(tensors[number]) for number in made.difference(results)},
        input_bytes=tuple(map(size_of, signature.inputs)),
        output_bytes=tuple(map(size_of, signature.outputs)),
        local_bytes=max((launch["local_bytes"] for launch in flow["launches"]), default=0),
        processor_bits=flow["processor_bits"],
    )


def _with_parts(
    numbers: Iterable[int], tensors: Sequence[Mapping[str, Any]]
) -> dict[int, Mapping[str, Any]] | None:
    """Returns constants and those that they are concatenated from, or None if one is computed in another way."""
    found: dict[int, Mapping[str, Any]] = {}
    left = list(numbers)
    while left:
        number = left.pop()
        tensor = tensors[number]
        if "arranged" in tensor:
            left += tensor["arranged"]["inputs"]
        elif "base64" not in tensor and parameter_of(tensor) is None:
            return None
        found[number] = tensor
    return found


def _bytes(tensor: Mapping[str, Any]) -> int:
    return int(math.prod(tensor["shape"]) * element_dtype(tensor["element"]).itemsize)


def _fit(
    signature: Signature, tensors: Sequence[Any], arguments: Mapping[int, int], results: Sequence[int]
) -> bool:
    """Returns True if inputs and outputs are tensors of the sizes that kernels read and write."""
    specs = (*signature.inputs, *signature.outputs)
    if any(spec.has_default or spec.is_scalar or spec.is_coded for spec in specs):
        return False
    if not _is_static(signature):
        return False
    pairs = [(number, signature.inputs[argument]) for number, argument in arguments.items()]
    pairs += list(zip(results, signature.outputs, strict=True))
    return all(_bytes(tensors[number]) == size_of(spec) for number, spec in pairs)


def _is_static(signature: Signature) -> bool:
    specs = (*signature.inputs, *signature.outputs)
    return all(isinstance(size, int) and size >= 0 for spec in specs for size in spec.shape)


def size_of(spec: TensorSpec) -> int:
    """Returns the bytes of an input or output whose sizes are known."""
    return math.prod(shape_of(spec)) * spec.numpy_dtype.itemsize


def shape_of(spec: TensorSpec) -> tuple[int, ...]:
    """Returns the shape of an input or output whose sizes are known."""
    return tuple(size for size in spec.shape if isinstance(size, int))


def place(plan: LaunchPlan) -> tuple[dict[str, int], int]:
    """Returns the offset of each tensor that kernels hand to each other, and the bytes of all of them.

    Tensors that are alive at the same time do not overlap; larger ones are placed first, each as low as possible.
    """
    lives: dict[str, tuple[int, int]] = {}
    for position, step in enumerate(plan.steps):
        for number in map(str, step.tensors):
            if number in plan.bytes:
                lives[number] = (lives.get(number, (position, position))[0], position)
    offsets: dict[str, int] = {}
    total = 0
    for number in sorted(lives, key=lambda number: (-plan.bytes[number], int(number))):
        first, last = lives[number]
        size = _rounded_up(plan.bytes[number])
        taken = sorted(
            (offsets[other], offsets[other] + plan.bytes[other])
            for other in offsets
            if lives[other][0] <= last and first <= lives[other][1]
        )
        offset = 0
        for start, end in taken:
            if offset + size <= start:
                break
            offset = max(offset, _rounded_up(end))
        offsets[number] = offset
        total = max(total, offset + size)
    return offsets, total


def _rounded_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
