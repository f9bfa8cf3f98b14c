"""A program with weights of several scopes is saved with a file for each."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import tilewright
from saved_programs import (
    SCOPES,
    TWO_SCOPES,
    WEIGHTS_THEMSELVES,
    Array,
    Case,
    Scopes,
    run_stock,
)


def test_every_scope_has_a_file_under_the_name_of_the_module(scopes: Scopes, tmp_path: Path) -> None:
    saved = scopes.program.save(tmp_path / "products.vmfb")
    names = ["products.a%2F..%2Fleft.irpa", "products.json", "products.right.irpa", "products.vmfb"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == names
    for path in [tmp_path / name for name in names]:
        path.rename(tmp_path / path.name.replace("products", "moved", 1))
    for path in scopes.given.values():
        path.unlink()
    moved = tilewright.load(saved.with_stem("moved"))
    scopes.check(moved(scopes.x))
    scopes.check(run_stock(moved.module_path, dict(moved.parameter_paths), scopes.x, tmp_path, outputs=2))


def test_weights_of_another_scope_are_refused(scopes: Scopes, tmp_path: Path) -> None:
    saved = scopes.program.save(tmp_path / "products.vmfb")
    left, right = tilewright.load(saved).parameter_paths.values()
    right.write_bytes(left.read_bytes())
    with pytest.raises(
        tilewright.ProgramError, match=r"right\.irpa: it does not contain the weights of products\.vmfb"
    ):
        tilewright.load(saved)


def test_weights_in_another_format_are_saved_as_irpa(scopes: Scopes, tmp_path: Path) -> None:
    given = {
        scope: safetensors(tmp_path / f"{n}.safetensors", scopes.weights[scope])
        for n, scope in enumerate(SCOPES)
    }
    program = tilewright.compile(WEIGHTS_THEMSELVES, threads=1, parameters=given)
    for again in (program, tilewright.load(program.save(tmp_path / "weights.vmfb"))):
        for result, scope in zip(again(), SCOPES, strict=True):
            np.testing.assert_array_equal(result, scopes.weights[scope])


def safetensors(path: Path, array: Array) -> Path:
    entry = {"dtype": "F32", "shape": array.shape, "data_offsets": [0, array.nbytes]}
    header = json.dumps({"w": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes())
    return path


def test_no_save_replaces_the_weights_of_another_program(scopes: Scopes, small: Case, tmp_path: Path) -> None:
    small.program.save(tmp_path / "products.right.vmfb")
    with pytest.raises(
        tilewright.OutputError,
        match=r"products\.right\.irpa: its weights would replace those of products\.right",
    ):
        scopes.program.save(tmp_path / "products.vmfb")
    small.check(tilewright.load(tmp_path / "products.right.vmfb"))
    saved = scopes.program.save(tmp_path / "other.vmfb")
    with pytest.raises(
        tilewright.OutputError, match=r"other\.right\.irpa: its weights would replace those of other\.vmfb"
    ):
        small.program.save(tmp_path / "other.right.vmfb")
    scopes.check(tilewright.load(saved)(scopes.x))


def test_no_save_replaces_the_weights_that_the_program_was_compiled_from(
    scopes: Scopes, tmp_path: Path
) -> None:
    given = {scope: path.rename(tmp_path / path.name) for scope, path in scopes.given.items()}
    given["right"] = given["right"].rename(tmp_path / "products.right.irpa")
    program = tilewright.compile(TWO_SCOPES, threads=1, parameters=given)
    assert program.parameter_paths["right"] == given["right"], "nothing of it is stored in another way"
    scopes.check(tilewright.load(program.save(tmp_path / "products.vmfb"))(scopes.x))
    given["a/../left"] = given["a/../left"].rename(tmp_path / "other.a%2F..%2Fleft.irpa")
    program = tilewright.compile(TWO_SCOPES, threads=1, parameters=given)
    with pytest.raises(tilewright.OutputError, match=r"left\.irpa: the program was compiled from this file"):
        program.save(tmp_path / "other.vmfb")
    scopes.check(tilewright.compile(TWO_SCOPES, threads=1, parameters=given)(scopes.x))
