"""The compilation cache on the command line and in the environment."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import pytest
from cache_cases import GIGABYTE, entry_of, run
from cache_cases import cache as cache
from cache_cases import filled as filled
from cache_key_cases import TEXT
from click.testing import CliRunner
from tilewright.cli.main import cli
from tilewright.records.options import CompileOptions


def test_the_environment_names_the_cache_and_switches_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    assert CompileOptions().cache == tmp_path
    for off in ("off", "OFF", "0"):
        monkeypatch.setenv("TILEWRIGHT_CACHE", off)
        assert CompileOptions().cache is None
    monkeypatch.delenv("TILEWRIGHT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert CompileOptions().cache == tmp_path / "tilewright/programs"


def test_the_command_line_uses_the_cache(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(TEXT)
    arguments = ("compile", model, "-o", tmp_path / "model.vmfb", "--cache", tmp_path / "cache")
    assert "from the compilation cache" not in run(*arguments).stderr
    assert "note: from the compilation cache, compiled 20" in run(*arguments).stderr
    assert "from the compilation cache" not in run(*arguments[:-2], "--no-cache").stderr


def test_the_command_shows_the_cache(cache: Path) -> None:
    shown = json.loads(run("cache", "--cache", cache, "--json").stdout)
    size = sum(file.stat().st_size for file in entry_of(cache).iterdir())
    assert shown == {"folder": str(cache), "programs": 1, "bytes": size, "mostBytes": 10 * GIGABYTE}
    assert f"{cache}: 1 programs" in run("cache", "--cache", cache).stdout


def test_the_command_clears_what_is_old(cache: Path) -> None:
    days_ago = time.time() - 3 * 86400
    os.utime(entry_of(cache), (days_ago, days_ago))
    assert (
        json.loads(run("cache", "clear", "--cache", cache, "--older-than", 4, "--json").stdout)["removed"]
        == 0
    )
    assert "1 programs removed" in run("cache", "clear", "--cache", cache, "--older-than", 2).stdout
    assert "0 programs removed" in run("cache", "clear", "--cache", cache).stdout


def test_an_empty_cache_is_shown_and_cleared(tmp_path: Path) -> None:
    assert "0 programs" in run("cache", "--cache", tmp_path / "none").stdout
    assert "0 programs removed" in run("cache", "--cache", tmp_path / "none", "clear").stdout
    with contextlib.suppress(FileNotFoundError):
        assert list((tmp_path / "none").iterdir()) == []


def test_no_command_without_a_cache() -> None:
    result = CliRunner().invoke(cli, ["cache"])
    assert result.exit_code == 1
    assert "TILEWRIGHT_CACHE switches the cache off" in result.stderr
