"""The library for C refuses files that cannot be right, and addresses that kernels cannot use, each with its reason."""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from exported_cases import Opened
from exported_cases import library as library

from benchmarks.workloads import stitch

Array = np.ndarray[Any, Any]


# Files that cannot be right are refused when they are opened.


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("exported") / "model.twp"
    return tilewright.compile(stitch.softmax((7, 129)), threads=1).export(path).read_bytes()


def _flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 255]) + data[position + 1 :]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-1], "its size is wrong"),
        (lambda data: data + b"\0", "its size is wrong"),
        (lambda data: data[:20], "no program that `tilewright export` wrote"),
        (lambda data: b"", "no program that `tilewright export` wrote"),
        (lambda data: _flipped(data, 3), "no program that `tilewright export` wrote"),
        (lambda data: _flipped(data, 7), "another version of Tilewright wrote it"),
        (lambda data: _flipped(data, 40), "its checksum is wrong"),
        (lambda data: _flipped(data, 24), "its size is wrong"),
    ],
)
def test_a_damaged_file_is_refused(
    damage: Any, reason: str, exported: bytes, library: ctypes.CDLL, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.twp"
    path.write_bytes(damage(exported))
    with pytest.raises(ValueError, match=reason) as error:
        Opened(library, path)
    assert str(error.value).startswith(f"{path}: ")


def test_a_missing_file_is_refused(library: ctypes.CDLL, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.twp: it cannot be read: No such file"):
        Opened(library, tmp_path / "none.twp")


def test_a_processor_without_a_feature_is_named(
    exported: bytes, library: ctypes.CDLL, tmp_path: Path
) -> None:
    """The first feature of the description is renamed to one that no processor has."""
    import zlib

    start = 32 + 4 + struct.unpack_from("<I", exported, 32)[0] + 4
    length = struct.unpack_from("<I", exported, start)[0]
    changed = bytearray(exported)
    changed[start + 4 : start + 4 + length] = b"x" * length
    end = struct.unpack_from("<Q", exported, 16)[0]
    struct.pack_into("<I", changed, 8, zlib.crc32(changed[32:end]))
    path = tmp_path / "other.twp"
    path.write_bytes(changed)
    with pytest.raises(ValueError, match=f"but this processor lacks {'x' * length}"):
        Opened(library, path)


# Addresses that kernels cannot use are refused when the program is called.


def test_a_misaligned_output_is_refused(exported: bytes, library: ctypes.CDLL, tmp_path: Path) -> None:
    path = tmp_path / "model.twp"
    path.write_bytes(exported)
    x = np.zeros((7, 129), np.float32)
    with Opened(library, path) as opened:
        with pytest.raises(ValueError, match=r"output '\w+' is not at a multiple of 64 bytes"):
            opened.call([x], misplaced=4)
        assert not library.tw_call(opened.handle, None, None)
        assert opened.error().endswith("has no address")
