"""Parameter files have the bytes that IREE's own writer writes."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from iree import runtime
from tilewright.runtime.parameter_file import Data, Splat, write_parameters

_RANDOM = np.random.default_rng(7)
_ARRAYS = {
    "w": _RANDOM.standard_normal((3, 5)).astype(np.float32),
    "größe": _RANDOM.standard_normal(67).astype(np.float16),
    "b": _RANDOM.standard_normal((7, 9)).astype(ml_dtypes.bfloat16),
    "bytes": _RANDOM.integers(-128, 127, 4097, dtype=np.int8),
    "one": np.array(3.5),
    "none": np.zeros((0, 4), np.float32),
}
_SPLATS = {
    "zeros": Splat(4096, b"\0"),
    "ones": Splat(40, b"\0\0\x80\x3f"),
    "wide": Splat(32, bytes(range(16))),
}


def _written(folder: Path, arrays: dict[str, np.ndarray], splats: dict[str, Splat]) -> tuple[bytes, bytes]:
    """Returns what we and what IREE writes."""
    index = runtime.ParameterIndex()
    for name, array in arrays.items():
        index.add_buffer(name, array.reshape(-1).view(np.uint8))
    for name, splat in splats.items():
        index.add_splat(name, splat.pattern, splat.length)
    index.create_archive_file(str(folder / "iree.irpa"))
    data = {name: Data(array.nbytes, [array]) for name, array in arrays.items()}
    write_parameters(folder / "ours.irpa", {**data, **splats})
    return (folder / "ours.irpa").read_bytes(), (folder / "iree.irpa").read_bytes()


@pytest.mark.parametrize(
    ("arrays", "splats"),
    [
        (_ARRAYS, {}),
        ({}, _SPLATS),
        (_ARRAYS, _SPLATS),
        ({"x": np.arange(4096, dtype=np.uint8)}, {}),
        ({}, {}),
    ],
    ids=["data", "splats", "both", "a page", "nothing"],
)
def test_the_bytes_are_those_of_iree(
    arrays: dict[str, np.ndarray], splats: dict[str, Splat], tmp_path: Path
) -> None:
    ours, theirs = _written(tmp_path, arrays, splats)
    assert ours == theirs


def test_splats_before_data_keep_their_order(tmp_path: Path) -> None:
    array = np.arange(5.0)
    index = runtime.ParameterIndex()
    index.add_splat("first", b"\1", 9)
    index.add_buffer("second", array.view(np.uint8))
    index.create_archive_file(str(tmp_path / "iree.irpa"))
    write_parameters(
        tmp_path / "ours.irpa", {"first": Splat(9, b"\1"), "second": Data(array.nbytes, [array])}
    )
    assert (tmp_path / "ours.irpa").read_bytes() == (tmp_path / "iree.irpa").read_bytes()


def test_blocks_follow_each_other(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.int16).reshape(4, 6)
    write_parameters(tmp_path / "whole.irpa", {"x": Data(array.nbytes, [array])})
    write_parameters(tmp_path / "rows.irpa", {"x": Data(array.nbytes, iter(array))})
    assert (tmp_path / "rows.irpa").read_bytes() == (tmp_path / "whole.irpa").read_bytes()


def test_blocks_of_another_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'x' has not the 8 bytes"):
        write_parameters(tmp_path / "x.irpa", {"x": Data(8, [np.zeros(3, np.uint8)])})
