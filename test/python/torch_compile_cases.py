"""Models for tests of the back end of torch.compile, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
backend = pytest.importorskip("tilewright.torch.backend")
nn = torch.nn


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=backend.tilewright, options={"threads": 1, **options})


def left() -> list[str]:
    """Returns the notes on what was left to PyTorch."""
    return [note for report in backend.reports for note in report.left]


def assert_ours() -> None:
    """Asserts that kernels of ours ran, and nothing was left to PyTorch, which agrees with itself on any question."""
    assert left() == []
    assert backend.reports and all(report.kernels for report in backend.reports)
    assert {report.runs_in for report in backend.reports} == {"tilewright"}


class Vision(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 9, 3)
        )
        self.head = nn.Linear(9, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.features(x).mean((2, 3)))


class Masked(nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, x: Any, mask: Any) -> Any:
        mixed, weights = self.attention(x, x, x, attn_mask=mask)
        return {"mixed": mixed + x, "weights": weights}


def attend(q: Any, k: Any, v: Any) -> Any:
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


CASES: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "mlp": lambda: (
        nn.Sequential(nn.Linear(17, 33), nn.GELU(), nn.Linear(33, 9), nn.Softmax(-1)),
        (torch.randn(5, 17),),
    ),
    "norms": lambda: (
        nn.Sequential(nn.LayerNorm(19), nn.Linear(19, 40), nn.RMSNorm(40), nn.GroupNorm(5, 40)),
        (torch.randn(7, 19),),
    ),
    "attention": lambda: (attend, tuple(torch.randn(2, 3, 11, 16) for _ in range(3))),
    "attention with a mask": lambda: (
        Masked(),
        (torch.randn(2, 7, 24), torch.ones(7, 7, dtype=torch.bool).triu(1)),
    ),
    "encoder": lambda: (nn.TransformerEncoderLayer(24, 3, 40, batch_first=True), (torch.randn(2, 7, 24),)),
    "encoder, norm first": lambda: (
        nn.TransformerEncoderLayer(24, 3, 40, batch_first=True, norm_first=True, activation="gelu"),
        (torch.randn(2, 7, 24),),
    ),
    "vision": lambda: (Vision(), (torch.randn(2, 3, 13, 11),)),
    "embedding": lambda: (
        nn.Sequential(nn.Embedding(97, 31), nn.Linear(31, 13)),
        (torch.randint(0, 97, (3, 11)),),
    ),
}
