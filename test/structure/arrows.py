"""Dependencies between parts of the code, and the levels that restrict their direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def wrong_arrows(arrows: Iterable[tuple[str, str, str]], levels: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields the dependencies (place, from part, to part) that do not lead to a lower level.

    Parts of one level must not depend on each other, so if all dependencies lead downwards, there is no cycle.
    """
    level_of = {part: number for number, row in enumerate(levels) for part in row}
    for place, source, target in arrows:
        unknown = [part for part in (source, target) if part not in level_of]
        if unknown:
            yield f"{place}: {unknown[0]} has no level"
        elif source != target and level_of[target] >= level_of[source]:
            yield f"{place}: {source} must not know {target}"
