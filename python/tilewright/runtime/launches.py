"""Programs as launches of kernels on tensors: enough to run them without IREE (`direct`, `cuda_session`).

`tile-print-launches` says which kernels run on which tensors. A program that needs anything else in a call, such as ops
that IREE computes, has no `LaunchPlan`. What IREE computes once, when a program is loaded, are constants.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.errors import InputError
from tilewright.records.signature import Signature, TensorSpec, element_dtype
from tilewright.runtime.launch_loops import ALIGNMENT, FlowReader, LoopSteps, NotOursError, Step, lifetimes
from tilewright.runtime.stored import parameters_in
from tilewright.runtime.tensors import parameter_of

_MOST_CONSTANT_BYTES = 1 << 20
"""Most bytes of constants in a description, which is text; larger ones are weights in a file of their own."""


_GPU_ALIGNMENT = 16
"""Bytes that the addresses of a GPU kernel's tensors are multiples of, because it reads vectors."""


@dataclass(frozen=True)
class CodeImage:
    """Code for GPUs in a module."""

    capability: str
    """Compute capability that a GPU needs at least: "sm_90", or "sm_90a" for that one only."""
    offset: int
    """Where the code begins in the module, in bytes."""
    bytes: int

    @property
    def least(self) -> tuple[int, int]:
        found = re.fullmatch(r"sm_(\d+)(\d)a?", self.capability)
        if found is None:
            raise ValueError(f"code for '{self.capability}'")
        return int(found[1]), int(found[2])

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Returns True if a GPU of this compute capability runs the code."""
        return self.least == capability if self.capability.endswith("a") else self.least <= capability


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
    loops: tuple[LoopSteps, ...] = ()
    """Steps that are repeated, in the order of their bodies, each loop before those in it."""
    at_load: str = ""
    """Function of the module that returns what IREE computes at load; "" if there is none. A constant that is one of
    its results has the number of the result as `at_load`."""
    computed: tuple[Mapping[str, Any], ...] = ()
    """Shapes and elements of the results of that function."""
    images: tuple[CodeImage, ...] = ()
    """The kernels of a program for GPUs, once for each capability; empty for CPUs."""

    def check(self, signature: Signature) -> None:
        """Raises `ValueError` if a number is negative or out of range, or a tensor is not described once."""
        numbers = [self.local_bytes, *self.bytes.values(), *self.processor_bits.values()]
        numbers += [number for step in self.steps for number in step.numbers]
        numbers += [number for image in self.images for number in (image.offset, image.bytes, *image.least)]
        if not self.steps or min(numbers) < 0 or max(self.processor_bits.values(), default=0) >= 64:
            raise ValueError("launches with sizes out of range")
        if not set(self.arguments.values()) <= set(range(len(signature.inputs))):
            raise ValueError("launches on inputs that there are not")
        if not _is_static(signature) or len(self.results) != len(signature.outputs):
            raise ValueError("launches with other results than the signature has")
        sizes = [tuple(map(size_of, specs)) for specs in (signature.inputs, signature.outputs)]
        if sizes != [self.input_bytes, self.output_bytes]:
            raise ValueError("launches on inputs or outputs of other sizes than the signature has")
        moving = [slot for loop in self.loops for slot in loop.slots]
        known = [*map(int, self.arguments), *self.results, *map(int, self.constants), *map(int, self.bytes)]
        known += [slot.tensor for slot in moving]
        if len(known) != len(set(known)):
            raise ValueError("launches on a tensor that is described twice")
        used = {number for step in self.steps for number in step.tensors}
        if not used.union(*(slot.bases for slot in moving)) <= set(known):
            raise ValueError("launches on tensors that are not described")
        if self.computed and not self.at_load:
            raise ValueError("launches on results of no function")
        for tensor in (*self.constants.values(), *self.computed):
            self._check_type(tensor)
        for tensor in self.constants.values():
            self._check_constant(tensor)

    def _check_type(self, tensor: Mapping[str, Any]) -> None:
        try:
            element_dtype(tensor["element"])
            if not all(type(size) is int and size >= 0 for size in tensor["shape"]):
                raise ValueError("launches on a constant of no size")
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise ValueError("launches on a constant that is described wrongly") from error

    def _check_constant(self, tensor: Mapping[str, Any]) -> None:
        try:
            parts = list(parameters_in(tensor["recipe"])) if "recipe" in tensor else []
            sizes = [size for part in parts for size in part["shape"]]
            if not all(type(size) is int and size >= 0 for size in sizes):
                raise ValueError("launches on a constant of no size")
            is_known = parts or "base64" in tensor or parameter_of(tensor) is not None
            is_known = is_known or 0 <= tensor.get("at_load", -1) < len(self.computed)
            if not is_known or not {part["name"] for part in parts} <= set(self.constants):
                raise ValueError("launches on a constant of unknown origin")
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("launches on a constant that is described wrongly") from error

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LaunchPlan:
        steps = tuple(Step(**{**step, "tensors": tuple(step["tensors"])}) for step in data["steps"])
        loops = tuple(map(LoopSteps.from_json, data.get("loops", ())))
        lists = {name: tuple(data[name]) for name in ("results", "input_bytes", "output_bytes")}
        computed = tuple(data.get("computed", ()))
        images = tuple(CodeImage(**image) for image in data.get("images", ()))
        made = {"steps": steps, "loops": loops, "computed": computed, "images": images}
        return LaunchPlan(**{**data, **lists, **made})


def plan_launches(
    flow: Mapping[str, Any], signature: Signature, *, images: Sequence[CodeImage] = ()
) -> LaunchPlan | None:
    """Returns the launches of a program, or None if kernels of ours alone cannot run it. `images` are the code of one
    for GPUs."""
    if not _is_static(signature):
        return None
    tensors = flow.get("tensors", [])
    returned = frozenset(result.get("tensor", -1) for result in flow["results"])
    reader = FlowReader(tensors, returned, alignment=_GPU_ALIGNMENT if images else 1)
    try:
        reader.read(flow["launches"])
        results = reader.read_results(flow["results"], [size_of(spec) for spec in signature.outputs])
    except NotOursError:
        return None
    made = set(reader.made)
    moving = {slot.tensor for loop in reader.loops for slot in loop.slots}
    used = {number for step in reader.steps for number in step.tensors}
    used = (used | {base for loop in reader.loops for slot in loop.slots for base in slot.bases}) - moving
    arguments = reader.arguments | {
        number: tensors[number]["argument"]
        for number in used - made - set(reader.arguments)
        if "argument" in tensors[number]
    }
    constants = _with_parts(used - made - set(arguments), tensors)
    sizes = [reader.made[number] for number in results]
    if constants is None or not _fit(signature, tensors, arguments, sizes):
        return None
    if sum(len(constant.get("base64", "")) for constant in constants.values()) > _MOST_CONSTANT_BYTES:
        return None
    return LaunchPlan(
        steps=tuple(reader.steps),
        loops=tuple(reader.loops),
        arguments={str(number): argument for number, argument in arguments.items()},
        results=tuple(results),
        constants={str(number): constant for number, constant in constants.items()},
        bytes={str(number): size for number, size in reader.made.items() if number not in results},
        input_bytes=tuple(map(size_of, signature.inputs)),
        output_bytes=tuple(map(size_of, signature.outputs)),
        local_bytes=reader.local_bytes,
        processor_bits=flow["processor_bits"],
        at_load=flow["at_load"]["function"],
        computed=tuple(flow["at_load"]["results"]),
        images=tuple(images),
    )


def _with_parts(
    numbers: Iterable[int], tensors: Sequence[Mapping[str, Any]]
) -> dict[int, Mapping[str, Any]] | None:
    """Returns constants and those that they are made of, or None if one is computed in another way."""
    found: dict[int, Mapping[str, Any]] = {}
    left = list(numbers)
    while left:
        number = left.pop()
        tensor = tensors[number]
        if "recipe" in tensor:
            left += [int(parameter["name"]) for parameter in parameters_in(tensor["recipe"])]
        elif "base64" not in tensor and "at_load" not in tensor and parameter_of(tensor) is None:
            return None
        found[number] = tensor
    return found


def _bytes(tensor: Mapping[str, Any]) -> int:
    return int(math.prod(tensor["shape"]) * element_dtype(tensor["element"]).itemsize)


def _fit(
    signature: Signature, tensors: Sequence[Any], arguments: Mapping[int, int], sizes: Sequence[int]
) -> bool:
    """Returns True if inputs are tensors of the sizes that kernels read, and outputs have these sizes."""
    if any(spec.is_scalar for spec in (*signature.inputs, *signature.outputs)):
        return False
    read = [(number, argument) for number, argument in arguments.items() if number < len(tensors)]
    return all(
        _bytes(tensors[number]) == size_of(signature.inputs[argument]) for number, argument in read
    ) and list(sizes) == list(map(size_of, signature.outputs))


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
    numbers = lifetimes(plan.steps, plan.loops, lambda number: str(number) in plan.bytes)
    lives = {str(number): life for number, life in numbers.items()}
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
