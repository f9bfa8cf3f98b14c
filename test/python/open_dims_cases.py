"""An encoder with open dims, and compilations of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import tilewright
from dynamic_models import encoder

LONGEST_SECONDS = 600.0  # that a compilation in the background may take on a busy machine


def settle(program: tilewright.Program) -> None:
    """Waits until nothing is compiled in the background any more."""
    end = time.monotonic() + LONGEST_SECONDS
    while any(shape.state in ("waiting", "compiling") for shape in program.shapes):
        assert time.monotonic() < end, program.explain()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def compile(cache: Path) -> Callable[..., tilewright.Program]:
    return lambda model, **options: tilewright.compile(model, threads=1, cache=cache, **options)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "encoder.onnx"
    onnx.save(encoder(), path)
    return path
