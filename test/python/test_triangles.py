"""Recognition of constants that are triangles of two numbers, and what the compiler receives for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from parameter_files import archive
from tilewright.frontends.triangles import Triangles, mark_triangles


def _above(rows: int, columns: int, diagonal: int) -> np.ndarray:
    return np.triu(np.full((rows, columns), -np.inf, dtype=np.float32), k=diagonal)


@pytest.mark.parametrize(("rows", "columns", "diagonal"), [(5, 5, 1), (3, 7, 5), (7, 3, -2), (4, 6, 0)])
def test_finds_the_diagonal(rows: int, columns: int, diagonal: int) -> None:
    assert Triangles.of(_above(rows, columns, diagonal)) == Triangles(diagonal, 0.0, -np.inf)


def test_one_element_out_of_place_is_none() -> None:
    matrix = _above(5, 7, 1)
    matrix[3, 6] = 0
    assert Triangles.of(matrix) is None
    assert Triangles.of(np.zeros((5, 7))) is None


def test_marks_the_loads_of_such_parameters_alone(tmp_path: Path) -> None:
    weight = np.arange(35, dtype=np.float32)
    path = archive(tmp_path / "model.irpa", {"mask": _above(5, 7, 1), "weight": weight})

    def text(of: str, mark: str) -> str:
        shape = "tensor<1x1x5x7xf32>"
        return (
            f'  "util.global"() <{{initial_value = #stream.parameter.named<"model"::"{of}"> : {shape}, '
            f'sym_name = "{of}_0", sym_visibility = "private", type = {shape}}}> : () -> ()\n'
            f'  %0 = "util.global.load"() <{{global = @{of}_0}}>{mark} : () -> {shape}\n'
        )

    mark = " {tile.triangles = [1 : i64, 0x0000000000000000 : f64, 0xFFF0000000000000 : f64]}"
    before = text("mask", "") + text("weight", "")
    assert mark_triangles(before, {"model": path}) == text("mask", mark) + text("weight", "")
    assert mark_triangles(before, {}) == before
