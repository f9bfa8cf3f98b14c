"""The steps of a program on slots, as the runtime takes them (`runtime/DirectProgram.h`).

Inputs have the first slots, then come outputs, constants, tensors that kernels hand over, and tensors that move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.runtime.launch_loops import MovingTensor
from tilewright.runtime.launches import LaunchPlan, place

MovingSlot = tuple[int, int, int, int, int, int, int]
"""The slot, those that it begins behind (in step 0, in even and in odd steps), and in bytes the offset in step 0, the
offset in every other step, and the stride."""


@dataclass(frozen=True)
class SlottedPlan:
    """Launches, loops and memory of a program."""

    launches: list[tuple[str, int, list[int], int]]
    """Kernel (empty for a copy), workgroups, slots, and bytes of a copy."""
    loops: list[tuple[int, int, int, list[MovingSlot]]]
    """First launch, end, steps, and moving slots."""
    constants: list[str]
    """Numbers of the constants that steps read, in the order of their slots."""
    offsets: list[int]
    """Offset in the program's own memory of each tensor that kernels hand over, in bytes."""
    own_bytes: int


def assign_slots(plan: LaunchPlan, inputs: int) -> SlottedPlan:
    """Returns the steps of a program with this number of inputs."""
    moving = [slot for loop in plan.loops for slot in loop.slots]
    read = {str(number) for step in plan.steps for number in step.tensors}
    read |= {str(number) for slot in moving for number in slot.bases}
    constants = [number for number in plan.constants if number in read]
    offsets, own_bytes = place(plan)
    slots = {int(number): argument for number, argument in plan.arguments.items()}
    others = [*plan.results, *map(int, constants), *map(int, offsets), *(slot.tensor for slot in moving)]
    slots |= {number: inputs + position for position, number in enumerate(others)}
    return SlottedPlan(
        launches=[
            (step.kernel, step.workgroups, [slots[number] for number in step.tensors], step.bytes)
            for step in plan.steps
        ],
        loops=[
            (loop.begin, loop.end, loop.steps, [_moving(slot, slots) for slot in loop.slots])
            for loop in plan.loops
        ],
        constants=constants,
        offsets=list(offsets.values()),
        own_bytes=own_bytes,
    )


def _moving(slot: MovingTensor, slots: Mapping[int, int]) -> MovingSlot:
    bases = slots[slot.first], slots[slot.even], slots[slot.odd]
    return (slots[slot.tensor], *bases, slot.first_offset, slot.offset, slot.stride)
