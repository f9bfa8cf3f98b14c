"""Assigns device addresses to a program's tensors, so that launches that share an L2 find each other's data there.

Arguments, weights, constants and results have addresses of their own. What a launch makes for later ones, or for
itself, is transient: it lies in one slab, whose memory is reused after its last reader, first fit in launch order. IREE
lays transients out in the same way (slices in its stream dialect).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from tilewright.simulator.device import RESERVED_BYTES

_ALIGNMENT = 256


def place_tensors(
    launches: Sequence[Mapping[str, Any]], results: Collection[int], size: Callable[[int], int]
) -> dict[int, int]:
    """Returns the address of each tensor in bytes.

    `launches` have lists of tensor numbers `inputs` and `outputs`; `size` returns the bytes of a tensor.
    """
    made = {number: place for place, launch in enumerate(launches) for number in launch["outputs"]}
    last = {number: place for place, launch in enumerate(launches) for number in _tensors_of(launch)}
    addresses: dict[int, int] = {}
    end = RESERVED_BYTES
    for number in last:
        if number not in made or number in results:
            addresses[number], end = end, _aligned(end + size(number))
    slab = end
    live: list[tuple[int, int, int]] = []  # begin, end, last launch
    for place, launch in enumerate(launches):
        live = [block for block in live if block[2] >= place]
        for number in launch["outputs"]:
            if number in addresses:
                continue
            begin = _first_fit(live, slab, size(number))
            addresses[number] = begin
            live.append((begin, _aligned(begin + size(number)), last[number]))
    return addresses


def _tensors_of(launch: Mapping[str, Any]) -> Iterable[int]:
    return [*launch["inputs"], *launch["outputs"]]


def _first_fit(live: Iterable[tuple[int, int, int]], begin: int, size: int) -> int:
    for block_begin, block_end, _ in sorted(live):
        if begin + size <= block_begin:
            break
        begin = max(begin, block_end)
    return begin


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
