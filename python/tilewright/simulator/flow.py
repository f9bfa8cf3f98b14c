"""The order in which a simulated program runs: launches, loops over launches, and slices that move with the step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.errors import SimulationError
from tilewright.runtime.tensors import LaunchTensors

Item = Mapping[str, Any]


def launches_in(flow: Sequence[Item]) -> Iterator[Item]:
    """Yields the launches of a flow, also those in loops, once each."""
    for item in flow:
        if "loop" in item:
            yield from launches_in(item["loop"].get("body", ()))
        elif "kernel" in item:
            yield item


def made_in_loops(flow: Sequence[Item]) -> set[int]:
    """Returns the tensors that launches in loops make, which may be in use in the next step."""
    loops = [item["loop"].get("body", ()) for item in flow if "loop" in item]
    return {number for body in loops for launch in launches_in(body) for number in launch["outputs"]}


def run_flow(flow: Sequence[Item], tensors: LaunchTensors, launch: Callable[[Item], None]) -> None:
    """Runs a flow on tensors; `launch` runs a launch. Raises `SimulationError` for a loop whose steps are not known."""
    for item in flow:
        if "loop" in item:
            _repeat(item["loop"], tensors, launch)
        elif "slice" in item:
            _take(item["slice"], tensors)
        elif "update" in item:
            _update(item["update"], tensors)
        elif "kernel" in item:
            launch(item)


def _repeat(loop: Item, tensors: LaunchTensors, launch: Callable[[Item], None]) -> None:
    if "steps" not in loop:
        raise SimulationError(
            f"has a loop ({loop['op']}) whose number of steps is not known before it runs",
            hint="simulate a model whose loops have a known number of steps",
        )
    carried = loop["carried"]
    values = [entry["initial"] for entry in carried]
    for step in range(loop["steps"]):
        _pass_on(tensors, values, [entry["argument"] for entry in carried])
        tensors.forget_dependents(_made_by_step(loop))
        run_flow(_at(loop["body"], step), tensors, launch)
        values = [entry["next"] for entry in carried]
    _pass_on(tensors, values, [entry["result"] for entry in carried])


def _pass_on(tensors: LaunchTensors, values: Sequence[int], targets: Sequence[int]) -> None:
    arrays = [tensors.get(number).copy() for number in values]
    for number, target, array in zip(values, targets, arrays, strict=True):
        tensors.put([target], [array.reshape(tensors.shape(target))], is_real=tensors.are_real([number]))


def _made_by_step(loop: Item) -> set[int]:
    made = {entry["argument"] for entry in loop["carried"]}
    for item in loop["body"]:
        if "loop" in item:
            made |= {entry["result"] for entry in item["loop"].get("carried", ())}
        elif "slice" in item or "update" in item:
            made.add((item.get("slice") or item["update"])["result"])
        elif "kernel" in item:
            made.update(item["outputs"])
    return made


def _at(body: Sequence[Item], step: int) -> list[Item]:
    """Returns the body with the offsets of a step."""
    return [
        {kind: _part_at(item[kind], step)}
        if (kind := next((kind for kind in ("slice", "update") if kind in item), ""))
        else item
        for item in body
    ]


def _part_at(part: Item, step: int) -> Item:
    """Returns a part of a tensor where it lies in a step; it may move in some steps only."""
    moved = min(max(step, part.get("from", step)), part.get("to", step))
    return {**part, "offset": part["offset"] + moved * part["stride"], "stride": 0}


def _take(part: Item, tensors: LaunchTensors) -> None:
    shape = tensors.shape(part["result"])
    whole = tensors.get(part["whole"]).reshape(-1)
    count = tensors.size(part["result"]) // whole.itemsize
    taken = whole[part["offset"] : part["offset"] + count].copy().reshape(shape)
    tensors.put([part["result"]], [taken], is_real=tensors.are_real([part["whole"]]))


def _update(part: Item, tensors: LaunchTensors) -> None:
    whole, own = tensors.get(part["whole"]).copy(), tensors.get(part["part"]).reshape(-1)
    whole.reshape(-1)[part["offset"] : part["offset"] + own.size] = own
    is_real = tensors.are_real([part["part"], part["whole"]])
    tensors.put([part["result"]], [whole.reshape(tensors.shape(part["result"]))], is_real=is_real)
