"""A compilation cache with one program, for tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest
import tilewright
from click.testing import CliRunner
from tilewright.cli.main import cli

GIGABYTE = 10**9


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory, model: onnx.ModelProto
) -> tuple[Path, tilewright.Program]:
    """Returns a cache with one program with weights, and the program as it was compiled."""
    folder = tmp_path_factory.mktemp("cache")
    program = tilewright.compile(model, threads=1, cache=folder)
    assert program.cache_notes == ()
    return folder, program


@pytest.fixture
def cache(filled: tuple[Path, tilewright.Program], tmp_path: Path) -> Path:
    """Returns a copy of the filled cache, for tests that change it."""
    return Path(shutil.copytree(filled[0], tmp_path / "cache"))


def entry_of(folder: Path) -> Path:
    [entry] = (folder / "programs").iterdir()
    return entry


def run(*arguments: Any) -> Any:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result
