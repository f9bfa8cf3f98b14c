"""Modes of numerics: divisions in f32, unknown names, and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from click.testing import CliRunner
from rounded_graphs import ID, ROW, softmax
from tilewright.cli.main import cli
from tilewright.errors import CompileError

pytestmark = [pytest.mark.cpu_levels, pytest.mark.lands(one_in=6)]


Array = np.ndarray[Any, np.dtype[Any]]


def test_strict_divides_in_f32_as_well() -> None:
    """By default a row is multiplied by the reciprocal of its divisor, which does not always give the nearest
    quotient."""
    text = f"""
    func.func @divide(%x: tensor<64x256xf32>, %d: tensor<64xf32>) -> tensor<64x256xf32> {{
      %e = tensor.empty() : tensor<64x256xf32>
      %y = linalg.generic {{indexing_maps = [{ID}, {ROW}, {ID}], iterator_types = ["parallel", "parallel"]}}
          ins(%x, %d : tensor<64x256xf32>, tensor<64xf32>) outs(%e : tensor<64x256xf32>) {{
      ^bb0(%a: f32, %b: f32, %o: f32):
        %v = arith.divf %a, %b : f32
        linalg.yield %v : f32
      }} -> tensor<64x256xf32>
      return %y : tensor<64x256xf32>
    }}"""
    random = np.random.default_rng(2)
    x, d = random.uniform(1, 2, (64, 256)).astype(np.float32), random.uniform(1, 2, 64).astype(np.float32)
    quotient = x / d[:, None]
    (strict,) = tilewright.compile(text, threads=1, numerics="strict", strict=True)(x, d)
    (default,) = tilewright.compile(text, threads=1, strict=True)(x, d)
    np.testing.assert_array_equal(strict, quotient)
    exact = x.astype(np.float64) / d.astype(np.float64)[:, None]
    assert np.max(np.abs(default - exact) / np.spacing(quotient)) <= 1.5


@pytest.mark.cpu_levels("cpu")
def test_unknown_numerics_are_refused() -> None:
    with pytest.raises(CompileError, match="numerics='exact' is unknown"):
        tilewright.compile("", numerics="exact")  # type: ignore[arg-type]


@pytest.mark.cpu_levels("cpu")
def test_the_command_line_has_it_too(tmp_path: Path) -> None:
    graph = softmax("f16")
    (tmp_path / "softmax.mlir").write_text(graph.text(graph.steps[-1][0]))
    ran = CliRunner().invoke(cli, ["explain", str(tmp_path / "softmax.mlir"), "--numerics", "strict"])
    assert ran.exit_code == 0, ran.output
    assert "strict numerics" in ran.output
