"""Programs that run without IREE: where tensors lie, also in each step of a loop, checked by carrying steps out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tilewright.records.signature import Signature, TensorSpec
from tilewright.runtime.launch_loops import LoopSteps, Step
from tilewright.runtime.launches import LaunchPlan, place, plan_launches

Array = np.ndarray[Any, Any]
Flow = dict[str, Any]

STEPS, WIDTH = 5, 16  # of 64 bytes, so that kernels may write a step where it belongs


def _tensor(*shape: int, **more: Any) -> dict[str, Any]:
    return {"shape": list(shape), "element": "f32", **more}


def _launch(kernel: str, inputs: Sequence[int], output: int) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "export": kernel,
        "workgroups": 1,
        "inputs": list(inputs),
        "outputs": [output],
        "tied": [-1],
        "local_bytes": 0,
    }


def _recurrence(*, steps: int = STEPS, width: int = WIDTH, **changes: Any) -> Flow:
    """Describes h = add(x[i], h), c = add(c, h) and y[i] = h over the steps of x; results are y, c and h."""
    tensors = [
        _tensor(steps, width, argument=0),  # 0: x
        _tensor(width, argument=1),  # 1: the first h and c
        _tensor(width),  # 2: h before the step
        _tensor(width),  # 3: h after the loop
        _tensor(width),  # 4: c before the step
        _tensor(width),  # 5: c after the loop
        _tensor(steps, width, op="tensor.empty"),  # 6
        _tensor(steps, width),  # 7: y before the step
        _tensor(steps, width),  # 8: y after the loop
        _tensor(width),  # 9: x[i]
        _tensor(width),  # 10: h
        _tensor(width),  # 11: c
        _tensor(steps, width),  # 12: y
    ]
    loop = {
        "op": "scf.for",
        "steps": steps,
        "carried": [
            {"initial": 1, "argument": 2, "next": 10, "result": 3},
            {"initial": 1, "argument": 4, "next": 11, "result": 5},
            {"initial": 6, "argument": 7, "next": 12, "result": 8},
        ],
        "body": [
            {"slice": {"whole": 0, "result": 9, "offset": 0, "stride": width}},
            _launch("add", [9, 2], 10),
            _launch("add", [4, 10], 11),
            {"update": {"whole": 7, "result": 12, "part": 10, "offset": 0, "stride": width}},
        ],
    }
    loop |= changes
    return {
        "tensors": tensors,
        "launches": [{"loop": loop}],
        "results": [{"tensor": 8}, {"tensor": 5}, {"tensor": 3}],
        "processor_bits": {},
        "at_load": {"function": "", "results": []},
    }


def _signature(flow: Flow) -> Signature:
    given = {t["argument"]: t["shape"] for t in flow["tensors"] if "argument" in t}
    made = [flow["tensors"][result["tensor"]]["shape"] for result in flow["results"]]
    return Signature(
        tuple(TensorSpec(f"in{n}", "float32", tuple(given[n])) for n in sorted(given)),
        tuple(TensorSpec(f"out{n}", "float32", tuple(shape)) for n, shape in enumerate(made)),
    )


KERNELS: Mapping[str, Callable[..., Array]] = {"add": np.add, "negate": np.negative}


def _run(plan: LaunchPlan, inputs: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
    """Carries a plan out. Memory that nothing has written is NaN; kernels write tensors of one length."""
    offsets, own_bytes = place(plan)
    own = np.full(own_bytes // 4, np.nan, np.float32)
    outputs = [np.full(size, np.nan, np.float32) for size in sizes]
    places: dict[int, tuple[Array, int]] = {}
    for name, argument in plan.arguments.items():
        places[int(name)] = (np.ascontiguousarray(inputs[argument]).reshape(-1), 0)
    for number, output in zip(plan.results, outputs, strict=True):
        places[number] = (output, 0)
    for name, offset in offsets.items():
        places[int(name)] = (own, offset)

    def view(number: int, count: int) -> Array:
        memory, offset = places[number]
        return memory[offset // 4 : offset // 4 + count]

    def run(begin: int, end: int, loops: Sequence[LoopSteps]) -> None:
        position = begin
        while position < end:
            loop = next((loop for loop in loops if loop.begin == position), None)
            if loop is None:
                step = plan.steps[position]
                if step.kernel:
                    read = [view(number, WIDTH) for number in step.tensors[:-1]]
                    view(step.tensors[-1], WIDTH)[:] = KERNELS[step.kernel](*read)
                else:
                    view(step.tensors[1], step.bytes // 4)[:] = view(step.tensors[0], step.bytes // 4)
                position += 1
                continue
            inner = loops[loops.index(loop) + 1 :]
            for i in range(loop.steps):
                for slot in loop.slots:
                    base = slot.first if i == 0 else slot.odd if i % 2 else slot.even
                    by = slot.first_offset if i == 0 else slot.offset + i * slot.stride
                    places[slot.tensor] = (places[base][0], places[base][1] + by)
                run(loop.begin, loop.end, inner)
            position = loop.end

    run(0, len(plan.steps), plan.loops)
    return outputs


def _expected(x: Array, first: Array) -> tuple[Array, Array, Array]:
    h = c = first
    y = []
    for part in x:
        h = part + h
        c = c + h
        y.append(h)
    return np.stack(y), c, h


@pytest.mark.parametrize("steps", [1, 2, 5, 6])
def test_states_and_collected_slices(steps: int) -> None:
    flow = _recurrence(steps=steps)
    plan = plan_launches(flow, _signature(flow))
    assert plan is not None
    plan.check(_signature(flow))
    rng = np.random.default_rng(steps)
    x, first = rng.standard_normal((steps, WIDTH), np.float32), rng.standard_normal(WIDTH, np.float32)
    results = _run(plan, [x, first], [steps * WIDTH, WIDTH, WIDTH])
    for ours, exact in zip(results, _expected(x, first), strict=True):
        np.testing.assert_array_equal(ours, exact.reshape(-1))


def test_a_step_copies_nothing_where_kernels_may_write() -> None:
    plan = plan_launches(flow := _recurrence(), _signature(flow))
    assert plan is not None
    (loop,) = plan.loops
    assert all(step.kernel for step in plan.steps[loop.begin : loop.end])


def test_parts_at_unaligned_offsets_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.WIDTH", 7)
    flow = _recurrence(width=7)
    plan = plan_launches(flow, _signature(flow))
    assert plan is not None
    rng = np.random.default_rng(7)
    x, first = rng.standard_normal((STEPS, 7), np.float32), rng.standard_normal(7, np.float32)
    results = _run(plan, [x, first], [STEPS * 7, 7, 7])
    assert any(not step.kernel for step in plan.steps)
    for ours, exact in zip(results, _expected(x, first), strict=True):
        np.testing.assert_array_equal(ours, exact.reshape(-1))


def test_a_plan_survives_json() -> None:
    plan = plan_launches(flow := _recurrence(), _signature(flow))
    assert plan is not None
    assert LaunchPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 0},
        {"body": []},
        {"body": [{"loop": {"op": "scf.while"}}]},
        {"body": [{"op": "cf.assert"}]},
    ],
)
def test_other_loops_are_left_to_iree(changes: Mapping[str, Any]) -> None:
    flow = _recurrence()
    flow["launches"][0]["loop"] |= changes
    assert plan_launches(flow, _signature(flow)) is None


def test_a_part_that_moves_in_some_steps_only_is_left_to_iree() -> None:
    flow = _recurrence()
    flow["launches"][0]["loop"]["body"][0]["slice"] |= {"from": 0, "to": 3}
    assert plan_launches(flow, _signature(flow)) is None


def test_a_state_that_no_kernel_makes_is_left_to_iree() -> None:
    flow = _recurrence()
    flow["launches"][0]["loop"]["carried"][1]["next"] = 9
    assert plan_launches(flow, _signature(flow)) is None


def test_a_sequence_that_the_body_reads_is_left_to_iree() -> None:
    flow = _recurrence()
    flow["launches"][0]["loop"]["body"].insert(1, _launch("negate", [7], 12))
    assert plan_launches(flow, _signature(flow)) is None


# The memory of tensors that kernels hand to each other


def test_tensors_that_are_alive_at_once_do_not_overlap() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        count = int(rng.integers(1, 12))
        sizes = {str(number): int(rng.integers(1, 300)) for number in range(count)}
        steps = [Step("k", 1, tuple(rng.integers(0, count, 3).tolist())) for _ in range(8)]
        plan = LaunchPlan(tuple(steps), {}, (), {}, sizes, (), (), 0, {})
        offsets, total = place(plan)
        for position in range(len(steps)):
            alive = [
                number
                for number in map(int, offsets)
                if any(number in step.tensors for step in steps[: position + 1])
                and any(number in step.tensors for step in steps[position:])
            ]
            spans = sorted(
                (offsets[str(number)], offsets[str(number)] + sizes[str(number)]) for number in alive
            )
            assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
            assert all(end <= total for _, end in spans)
