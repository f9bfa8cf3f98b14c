"""Conv with one window along a dim, and elements behind it that it does not read."""

from __future__ import annotations

from tilewright.frontends.rewrites.rule import Operation, Rule
from tilewright.frontends.rewrites.windows import end_with_window


def _end_with_window(operation: Operation) -> bool:
    return end_with_window(operation, weights=1)


RULES = (
    Rule(
        "Conv",
        _end_with_window,
        "IREE displaces such a window",
        forms="open batches with one window along a dim",
    ),
)
