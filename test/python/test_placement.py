"""Device addresses of the tensors of a program's launches."""

from __future__ import annotations

import itertools
from typing import Any

from tilewright.simulator.placement import place_tensors


def _launch(inputs: list[int], outputs: list[int]) -> dict[str, Any]:
    return {"inputs": inputs, "outputs": outputs}


def test_memory_that_nobody_reads_any_more_is_taken_again() -> None:
    """0 is an argument, 4 the result; 1 is dead when 3 is made, but 2 is not."""
    launches = [_launch([0], [1]), _launch([1], [2]), _launch([0, 2], [3]), _launch([3], [4])]
    addresses = place_tensors(launches, {4}, lambda number: 100)
    assert addresses[3] == addresses[1]
    assert len({addresses[number] for number in (0, 1, 2, 4)}) == 4


def test_what_is_alive_together_lies_apart() -> None:
    sizes = {0: 1000, 1: 300, 2: 700, 3: 256, 4: 40}
    launches = [_launch([0], [1, 2]), _launch([1], [3]), _launch([2, 3], [4])]
    addresses = place_tensors(launches, {4}, sizes.__getitem__)
    for alive in ([0, 1, 2, 4], [0, 1, 2, 3, 4], [0, 2, 3, 4]):
        ranges = sorted((addresses[number], addresses[number] + sizes[number]) for number in alive)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(ranges))


def test_a_result_that_is_read_again_keeps_its_place() -> None:
    launches = [_launch([0], [1]), _launch([1], [2]), _launch([2], [3])]
    addresses = place_tensors(launches, {1, 3}, lambda number: 64)
    assert len(set(addresses.values())) == 4


def test_what_nobody_reads_lives_for_its_launch() -> None:
    launches = [_launch([0], [1, 2]), _launch([0], [3])]
    addresses = place_tensors(launches, {2}, lambda number: 64)
    assert addresses[3] == addresses[1]
