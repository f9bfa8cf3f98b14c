"""Stores arrays in a folder for another process, including bfloat16, which .npy files hold as plain bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

_DTYPES = "dtypes.json"


def save(folder: Path, arrays: Sequence[Array]) -> None:
    """Writes arrays as 0.npy, 1.npy, ..., and a list of their dtypes."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, array in enumerate(arrays):
        bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
        np.save(folder / f"{index}.npy", bits)
    (folder / _DTYPES).write_text(json.dumps([array.dtype.name for array in arrays]))


def load(folder: Path) -> list[Array]:
    """Reads the arrays that `save` wrote."""
    names = json.loads((folder / _DTYPES).read_text())
    dtypes = [np.dtype(getattr(ml_dtypes, name, name)) for name in names]
    return [np.load(folder / f"{index}.npy").view(dtype) for index, dtype in enumerate(dtypes)]
