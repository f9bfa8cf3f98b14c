"""Movement between caches: the simulator against a simple one, and the block-order model against generated code."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from tilewright.ir.native import native
from tilewright.runtime.kernels import buffer
from tilewright.simulator.movement import Cache, Hierarchy, compile_traced, trace

from benchmarks.chain_models import Chain
from benchmarks.chain_movement import measure_chain
from benchmarks.chain_programs import ChainBlocks, K, L, M, N, fused_chain, separate_chain
from benchmarks.validate_movement import CASES, Case, measure, summarize, tilings

_TARGET = "x86-64-v2"


class _PlainCache:
    """One fully associative level, implemented as simply as possible."""

    def __init__(self, lines: int) -> None:
        self._lines, self._held = lines, OrderedDict[int, bool]()
        self.fills = self.write_backs = 0

    def access(self, line: int, *, is_store: bool) -> None:
        dirty = self._held.pop(line, None)
        if dirty is None:
            self.fills += 1
            if len(self._held) == self._lines:
                self.write_backs += self._held.popitem(last=False)[1]
        self._held[line] = bool(dirty) or is_store

    def flush(self) -> None:
        self.write_backs += sum(self._held.values())


def _records(accesses: list[tuple[int, int, bool]]) -> np.ndarray:
    return np.array([a << 16 | size << 1 | store for a, size, store in accesses], dtype=np.uint64)


def test_simulator_counts_what_a_plain_one_counts() -> None:
    random = np.random.default_rng(0)
    accesses = [
        (int(a), int(s), bool(w))
        for a, s, w in zip(
            random.integers(0, 4096, 5000),
            random.integers(0, 64, 5000),
            random.integers(0, 2, 5000),
            strict=True,
        )
    ]
    plain = _PlainCache(lines=20)
    for address, size, is_store in accesses:
        if size:
            for line in range(address // 32, (address + size - 1) // 32 + 1):
                plain.access(line, is_store=is_store)
    plain.flush()
    hierarchy = Hierarchy([Cache(capacity_bytes=20 * 32, line_bytes=32)])
    hierarchy.replay(_records(accesses))
    (level,) = hierarchy.movement()
    assert (level.fetched, level.written_back) == (32 * plain.fills, 32 * plain.write_backs)


def test_ways_conflict() -> None:
    """Lines of one set evict each other, although the cache has room."""
    addresses = [(64 * 8 * i, 4, False) for i in (0, 1, 2, 0, 1, 2)]
    small, full = (
        Hierarchy([Cache(capacity_bytes=64 * 16, ways=ways)]) for ways in (2, 0)
    )  # 8 sets of 2 ways, or one set of 16
    for hierarchy in (small, full):
        hierarchy.replay(_records(addresses))
    assert small.movement()[0].fetched == 6 * 64
    assert full.movement()[0].fetched == 3 * 64


def test_levels_see_what_the_ones_above_miss_and_evict() -> None:
    """Two lines alternate in a cache of one line: the next level fetches each once and receives the writes."""
    hierarchy = Hierarchy([Cache(capacity_bytes=64), Cache(capacity_bytes=1024)])
    hierarchy.replay(_records([(0, 4, True), (64, 4, False)] * 10))
    inner, outer = hierarchy.movement()
    assert (inner.fetched, inner.written_back) == (20 * 64, 10 * 64)
    assert (outer.fetched, outer.written_back) == (2 * 64, 64)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tile_programs_compute_the_chain(case: Case, tmp_path: Path) -> None:
    """The extents differ, and every loop has tiles of several blocks."""
    m, n, k, inner = 12, 48, 20, 32
    blocks = ChainBlocks(extents=(m, n, k, inner), tiles=(4, 16, 5, 8), order=case.order)
    program = fused_chain(blocks) if case.reuse else separate_chain(blocks)
    (kernel,) = compile_traced(program, tmp_path, target=_TARGET)
    random = np.random.default_rng(0)
    a, b, d = (random.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, inner), (inner, n)))
    e, c = np.full((m, n), np.nan, np.float32), np.full((m, inner), np.nan, np.float32)
    outputs = [e] if case.reuse else [e, c]
    addresses = [array.ctypes.data for array in (a, b, d, *outputs)]
    assert trace(kernel, addresses, Hierarchy([Cache(capacity_bytes=1024)])) > 0
    np.testing.assert_allclose(e, a.astype(np.float64) @ b @ d, rtol=1e-4, atol=1e-4)


# Tiles of m, n, k and l; live tiles take at most three quarters of 1 KiB.
_TILINGS = ((4, 4, 4, 4), (8, 4, 4, 8), (8, 8, 4, 4), (12, 4, 4, 8), (4, 16, 8, 4), (6, 8, 8, 8))


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_model_predicts_what_generated_code_moves(case: Case) -> None:
    cache = Cache(capacity_bytes=1024, line_bytes=16)
    result = summarize(case, cache, [measure(case, 48, cache, tiles, _TARGET) for tiles in _TILINGS])
    assert not result.full
    assert result.of_identity > 0.99
    assert all(0.95 < point.observed / point.predicted < 1.05 for point in result.points)


def test_drawn_tilings_fit_and_begin_with_the_best() -> None:
    cache = Cache(capacity_bytes=1024, line_bytes=16)
    drawn = tilings(CASES[0], 48, cache, count=30)
    assert len(set(drawn)) == 30
    moved = {
        tiles: native.gemm_chain_movement([48] * 4, list(CASES[0].order), list(tiles), True)
        for tiles in drawn
    }
    assert all(memory <= cache.capacity_bytes for _, _, memory in moved.values())
    usable = [tiles for tiles in drawn if moved[tiles][2] <= 0.75 * cache.capacity_bytes]
    assert drawn[0] == min(usable, key=lambda tiles: moved[tiles][0])


def test_orders_that_read_a_block_before_it_is_complete_are_refused() -> None:
    with pytest.raises(ValueError, match="k after m and l"):
        ChainBlocks(extents=(8, 8, 8, 8), tiles=(4, 4, 4, 4), order=(M, K, L, N))


def test_a_buffer_is_aligned() -> None:
    assert buffer(10)[1] % 64 == 0


def test_plans_say_what_their_code_moves() -> None:
    """Compares movement with the plan of a chain whose tensors fit L2 but not L1, in the planner's order and tiles.

    The excess is the data between the products, which stays in one buffer and moves once from cold caches, and copied
    panels of rhs, which take room in L1 (1.15 there). On a busy machine, the runtime may have a second buffer.
    """
    chain = Chain(name="small", batch=16, m=64, n=48, k=64, inner=192)
    moved = measure_chain(chain, target=_TARGET)
    assert moved.kernels == 1
    for observed, predicted in zip(moved.fused, moved.predicted, strict=True):
        assert 0.98 < observed / predicted < 1.2
