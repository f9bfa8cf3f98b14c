"""Keys of compilations without the compilations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.cache.use import CacheUse

TEXT = """
func.func @twice(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = arith.addf %x, %x : tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}"""


Key = Callable[..., str]


class Found(Exception):
    """Carries the key out of a compilation before it begins."""


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Key:
    """Returns a function with the arguments of `tilewright.compile` that returns the key of the compilation."""

    def find(use: CacheUse) -> None:
        assert use._cache is not None
        raise Found(use._key(use._request.key(use._cache.hashes)))

    monkeypatch.setattr(CacheUse, "find", find)

    def key_of(model: Any = TEXT, target: Any = "x86-64-avx2", **options: Any) -> str:
        with pytest.raises(Found) as found:
            tilewright.compile(model, target, **{"cache": tmp_path / "cache", "threads": 2, **options})
        return str(found.value)

    return key_of
