"""The order of launches on the simulated device: parts of tensors lie where their step says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from tilewright.runtime.tensors import LaunchTensors
from tilewright.simulator.flow import run_flow

STEPS = 5


class _Tensors:
    """Tensors by their numbers, all of them real."""

    def __init__(
        self, arrays: dict[int, np.ndarray[Any, Any]], shapes: Mapping[int, tuple[int, ...]]
    ) -> None:
        self._arrays, self._shapes = arrays, shapes

    def get(self, number: int) -> np.ndarray[Any, Any]:
        return self._arrays[number]

    def put(self, numbers: Sequence[int], arrays: Sequence[np.ndarray[Any, Any]], *, is_real: bool) -> None:
        self._arrays.update(zip(numbers, arrays, strict=True))

    def shape(self, number: int) -> tuple[int, ...]:
        return self._shapes[number]

    def size(self, number: int) -> int:
        return 4 * int(np.prod(self._shapes[number]))

    def are_real(self, numbers: Sequence[int]) -> bool:
        return True

    def forget_dependents(self, numbers: set[int]) -> None:
        pass


def test_parts_that_move_in_some_steps_only() -> None:
    shapes = {0: (3, 2), 1: (3, 2), 2: (3, 2), 3: (1, 2), 4: (3, 2), 5: (3, 2)}
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    tensors = _Tensors({0: x, 1: np.zeros((3, 2), np.float32)}, shapes)
    body = [
        {"slice": {"whole": 0, "result": 3, "offset": 0, "stride": 2, "from": 0, "to": 2}},
        {"update": {"whole": 2, "result": 4, "part": 3, "offset": -4, "stride": 2, "from": 2, "to": STEPS}},
    ]
    carried = [{"initial": 1, "argument": 2, "next": 4, "result": 5}]
    loop = {"op": "scf.for", "steps": STEPS, "carried": carried, "body": body}
    run_flow([{"loop": loop}], cast(LaunchTensors, tensors), lambda launch: None)
    # Steps 0 to 2 write the first row, 3 and 4 the others; from step 2 on the last row is read.
    np.testing.assert_array_equal(tensors.get(5), np.stack([x[2]] * 3))
