"""Arrows between parts of the code, and the levels that say which way they may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def wrong_arrows(arrows: Iterable[tuple[str, str, str]], levels: Sequence[Sequence[str]]) -> Iterator[str]:
    """Arrows (place, from part, to part) that do not run to a lower level.

    Parts of one level know nothing of each other, so arrows that all run downwards make no circle.
    """
    level_of = {part: number for number, row in enumerate(levels) for part in row}
    for place, source, target in arrows:
        unknown = [part for part in (source, target) if part not in level_of]
        if unknown:
            yield f"{place}: {unknown[0]} has no level"
        elif source != target and level_of[target] >= level_of[source]:
            yield f"{place}: {source} must not know {target}"
