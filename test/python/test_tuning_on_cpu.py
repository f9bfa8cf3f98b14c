"""What tuning times on a processor: the launches of a build as a program of the runtime without IREE."""

from __future__ import annotations

from typing import Any

from tilewright.tuning.on_cpu import Operand, Operands, read_build


def _launch(inputs: list[int], output: int) -> dict[str, Any]:
    return {
        "kernel": f"k{output}",
        "export": f"k{output}_dispatch",
        "inputs": inputs,
        "outputs": [output],
        "tied": [-1],
        "workgroups": 2,
        "local_bytes": 64 * output,
    }


def _tensor(*shape: int, **more: Any) -> dict[str, Any]:
    return {"shape": list(shape), "element": "f32", **more}


def test_what_kernels_do_not_make_is_given_to_them() -> None:
    tensors = [_tensor(3, argument=1), _tensor(5), _tensor(7), _tensor(11, argument=0), _tensor(13)]
    flow = {
        "launches": [_launch([0, 1], 2), _launch([2, 3], 4)],
        "tensors": tensors,
        "processor_bits": {},
    }
    plan, operands = read_build(flow)
    assert operands == (Operand(0, 1, 12), Operand(1, -1, 20), Operand(3, 0, 44))
    assert plan.bytes == {"2": 28, "4": 52}
    assert plan.local_bytes == 256


def test_builds_read_the_same_data_and_copies_of_weights_do_not() -> None:
    operands, weight = Operands(), Operand(4, 1, 100)
    of_another_build = Operand(9, 1, 100)
    assert operands.address(weight, 0) == operands.address(of_another_build, 0)
    assert operands.address(weight, 0) != operands.address(weight, 1)
