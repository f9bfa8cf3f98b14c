"""Room in the compilation cache: what is stored, what goes first, and processes that share it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from cache_cases import GIGABYTE, entry_of
from cache_key_cases import TEXT
from parameter_files import archive
from tilewright.cache.store import Cache
from tilewright.runtime.metadata import Metadata

_PRODUCT_AND_SUM = """
util.global private @w = #stream.parameter.named<"packed"::"w"> : tensor<33x64xf32>
util.global private @b = #stream.parameter.named<"plain"::"b"> : tensor<6x64xf32>
func.func @layer(%x: tensor<6x33xf32>) -> tensor<6x64xf32> {
  %w = util.global.load @w : tensor<33x64xf32>
  %b = util.global.load @b : tensor<6x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x64xf32>) -> tensor<6x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<6x33xf32>, tensor<33x64xf32>)
      outs(%init : tensor<6x64xf32>) -> tensor<6x64xf32>
  %z = arith.addf %y, %b : tensor<6x64xf32>
  return %z : tensor<6x64xf32>
}
"""


def test_only_parameter_files_that_are_rewritten_are_stored(tmp_path: Path) -> None:
    """The weights of a contraction are packed, and so stored. A file that the program reads as it is stays the user's
    own, and a hit reads it where it lies."""
    rng = np.random.default_rng(3)
    w, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((33, 64), (6, 64)))
    plain = archive(tmp_path / "plain.irpa", {"b": bias})
    paths = {"packed": archive(tmp_path / "packed.irpa", {"w": w}), "plain": plain}
    options: dict[str, Any] = {"threads": 1, "cache": tmp_path / "cache", "parameters": paths}
    compiled = tilewright.compile(_PRODUCT_AND_SUM, **options)
    found = tilewright.compile(_PRODUCT_AND_SUM, **options)
    assert found.cache_notes
    assert compiled.parameter_paths["plain"] == found.parameter_paths["plain"] == plain
    stored = {file.name for file in entry_of(tmp_path / "cache").glob("*.irpa")}
    assert stored == {"model.packed.irpa"}
    x = rng.standard_normal((6, 33)).astype(np.float32)
    np.testing.assert_allclose(found(x)[0], x.astype(np.float64) @ w + bias, rtol=1e-4, atol=1e-4)


def keep(cache: Cache, key: str, folder: Path, *, size: int = 1000) -> None:
    """Stores a stand-in for a program."""
    folder.mkdir(exist_ok=True)
    module = folder / f"{key}.vmfb"
    module.unlink(missing_ok=True)  # the entry may be a link to the earlier one
    module.write_bytes(key.encode() * (size // len(key)))
    metadata = Metadata(target="none", threads=1, entry="f", signature=None)
    cache.keep(key, model="m", module=module, parameters={}, metadata=metadata, given={})


def test_the_least_recently_used_program_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", most_bytes=8000)  # of descriptions of about 1 kB and modules of 2 kB
    for number, key in enumerate(["aa", "bb"]):
        keep(cache, key, tmp_path / "made", size=2000)
        os.utime(tmp_path / "cache/programs" / key, (number, number))
    assert cache.find("aa", {}) is not None  # is now the more recently used one
    keep(cache, "cc", tmp_path / "made", size=2000)
    assert cache.find("bb", {}) is None
    assert cache.find("aa", {}) is not None and cache.find("cc", {}) is not None
    assert cache.usage().bytes <= 8000


def test_a_program_larger_than_the_cache_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_GB", "0.000001")
    [note] = tilewright.compile(TEXT, threads=1, cache=tmp_path).cache_notes
    assert note.startswith("not stored in the compilation cache: it has ")


def test_a_size_that_is_no_number_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_GB", "ten")
    with pytest.raises(tilewright.OutputError, match="TILEWRIGHT_CACHE_GB is 'ten'"):
        tilewright.compile(TEXT, threads=1, cache=tmp_path)


def test_leftovers_of_killed_processes_are_removed_and_others_stay(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", most_bytes=GIGABYTE)
    old, new = (tmp_path / "cache/unfinished" / name for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "model.vmfb").touch()
    os.utime(old, (1, 1))
    keep(cache, "aa", tmp_path / "made")
    assert (old.exists(), new.exists()) == (False, True)


_RACER = """
import sys
from pathlib import Path
from test_cache_room import keep
from tilewright.cache.store import Cache, DamagedEntryError
cache, made = Cache(Path(sys.argv[1]), most_bytes=6000), Path(sys.argv[2])
for turn in range(60):
    for key in ("aa", "bb", "cc"):
        keep(cache, key, made)
        found = cache.find(key, {})
        assert found is None or bytes(found.module.buffer[:2]) == key.encode()
    if turn % 10 == 9:
        cache.clear()
"""


def test_processes_that_store_find_and_remove_at_once_never_see_a_part(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", _RACER, str(tmp_path / "cache")]
    # Another conftest.py is on the path, too; the one beside this file comes first.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    racers = [
        subprocess.Popen([*arguments, str(tmp_path / name)], env=environment, stderr=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    errors = [racer.communicate(timeout=120)[1].decode() for racer in racers]
    assert errors == [""] * 3
