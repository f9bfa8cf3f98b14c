"""Shapes of models with open dims that are built ahead, and saved in one module for stock IREE."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from dynamic_models import assert_right, encoder, inputs_of, layer_norm
from open_dims_cases import cache as cache
from open_dims_cases import compile as compile
from open_dims_cases import path as path
from open_dims_cases import settle
from tilewright.errors import ProgramError

pytestmark = pytest.mark.usefixtures("full_priority")


def test_shapes_built_ahead_are_one_module_for_stock_iree(compile: Any, path: Path, tmp_path: Path) -> None:
    model = encoder()
    program = compile(path, dims={"batch": 2, "seq": [4, 13]})
    assert [dict(shape.sizes) for shape in program.metadata.shapes] == [{"seq": 13}, {"seq": 4}]
    assert all(shape.report.kernels for shape in program.metadata.shapes)
    saved = program.save(tmp_path / "encoder.vmfb")
    loaded = tilewright.load(saved)
    assert "seq=13: " in loaded.explain() and loaded.kernels
    for seq in (4, 13, 6):
        inputs = inputs_of(model, 2, seq)
        outputs = loaded(*inputs)
        assert_right(model, inputs, outputs)
        for number, array in enumerate(inputs):
            np.save(tmp_path / f"{number}.npy", array)
        command: list[str | Path] = [
            Path(sys.executable).with_name("iree-run-module"),
            "--device=local-sync",
            f"--module={saved}",
        ]
        command += [f"--parameters={scope}={file}" for scope, file in loaded.parameter_paths.items()]
        command += [f"--function={loaded.metadata.entry}", f"--output=@{tmp_path / 'y.npy'}"]
        command += [f"--input=@{tmp_path / f'{number}.npy'}" for number in range(len(inputs))]
        subprocess.run(command, check=True, capture_output=True)
        assert np.array_equal(np.load(tmp_path / "y.npy"), outputs[0])


def test_the_module_runs_the_kernels_of_a_listed_shape(compile: Any, path: Path) -> None:
    """Kernels sum in another order than IREE's dynamic program, so equal bits show which of them ran."""
    program = compile(path, dims={"batch": 2, "seq": [4, 13]})
    inputs = inputs_of(encoder(), 2, 13)
    alone = compile(path, dims={"batch": 2, "seq": 13})
    dynamic = compile(path)
    assert np.array_equal(program(*inputs)[0], alone(*inputs)[0])
    assert not np.array_equal(program(*inputs)[0], dynamic(*inputs)[0])


@pytest.mark.full
def test_saving_ships_the_shapes_that_were_built(compile: Any, path: Path, tmp_path: Path) -> None:
    program = compile(path)
    program.build(batch=[1, 3], seq=7)
    loaded = tilewright.load(program.save(tmp_path / "encoder.vmfb"))
    assert [dict(shape.sizes) for shape in loaded.metadata.shapes] == [
        {"batch": 3, "seq": 7},
        {"batch": 1, "seq": 7},
    ]
    for sizes in ((1, 7), (3, 7), (1, 3)):
        inputs = inputs_of(encoder(), *sizes)
        assert_right(encoder(), inputs, loaded(*inputs))
    with pytest.raises(ProgramError, match="its model is not at hand"):
        loaded.build(batch=1, seq=1)


def test_listed_sizes_alone_get_kernels(compile: Any) -> None:
    model = layer_norm()
    program = compile(model, dims={"seq": [3]})  # batch has any size, so that the shapes are not known before
    for seq in (3, 4):
        program(*inputs_of(model, 2, seq))
    settle(program)
    assert [shape.state for shape in program.shapes] == ["ready", "seen"]
