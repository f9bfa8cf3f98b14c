"""Inputs for a program: random ones and arrays from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tilewright.errors import InputError
from tilewright.records.signature import Array, Signature, TensorSpec


def random_inputs(
    signature: Signature, *, seed: int = 0, dims: Mapping[str, int] | None = None
) -> list[Array]:
    """Returns seeded inputs: floats standard normal within ±4, integers from 0 to 3, masks of zeros and ones. Inputs
    with defaults are left out.

    A mask is an input with "mask" in its name; the first entry of its last axis is 1, so that no row is empty. `dims`
    sizes the named dims; other dims that are known only at run time are 1.
    """
    named = {dim for spec in signature.inputs for dim in spec.shape if isinstance(dim, str)}
    if unknown := sorted(set(dims or {}) - named):
        raise InputError(f"no dim is called '{unknown[0]}'; there are: {', '.join(sorted(named)) or 'none'}")
    rng = np.random.default_rng(seed)
    return [_checked_random(spec, rng, dims or {}) for spec in signature.required]


def _checked_random(spec: TensorSpec, rng: np.random.Generator, dims: Mapping[str, int]) -> Array:
    try:
        return _random(spec, rng, dims)
    except (MemoryError, ValueError) as error:
        raise InputError(
            f"random inputs cannot be made: {error}",
            where=f"input '{spec.name}'",
            hint="make its dims smaller",
        ) from None


def _random(spec: TensorSpec, rng: np.random.Generator, dims: Mapping[str, int]) -> Array:
    shape = [d if isinstance(d, int) else dims.get(d or "", 1) for d in spec.shape]
    dtype = spec.numpy_dtype
    if "mask" in spec.name.lower() and shape:
        mask = rng.random(shape) < 0.75
        mask[..., :1] = True
        return np.asarray(mask).astype(dtype)
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if np.issubdtype(dtype, np.integer):
        return np.asarray(rng.integers(0, 4, shape)).astype(dtype)
    return np.asarray(np.clip(rng.standard_normal(shape), -4.0, 4.0)).astype(dtype)


def read_arrays(paths: Sequence[Path], signature: Signature | None) -> list[Array]:
    """Reads arrays from .npy files in order, or from one .npz by the names of the inputs or in its own order."""
    arrays: list[Array] = []
    for path in paths:
        loaded = _read(path)
        if isinstance(loaded, dict):
            order = _by_name(loaded, signature) if signature else list(loaded)
            arrays += [loaded[name] for name in order]
        else:
            arrays.append(loaded)
    return arrays


def _by_name(loaded: Mapping[str, Array], signature: Signature) -> list[str]:
    """Returns the names of a file's arrays in the order of the inputs, or their own if these are other names."""
    names = [spec.name for spec in signature.inputs]
    if not loaded or not {spec.name for spec in signature.required} <= set(loaded):
        return list(loaded)
    given = [name for name in names if name in loaded]
    if missing := [name for name in names[: len(given)] if name not in loaded]:
        raise InputError(
            f"'{given[-1]}' is given without '{missing[0]}', which comes before it",
            hint=f"give '{missing[0]}', too",
        )
    return given or list(loaded)


def _read(path: Path) -> Array | dict[str, Array]:
    try:
        # Pickles are code, which a data file must not run.
        loaded = np.load(path, allow_pickle=False)
        return (
            {name: loaded[name] for name in loaded.files} if hasattr(loaded, "files") else np.asarray(loaded)
        )
    except FileNotFoundError:
        raise InputError("no such file", where=str(path)) from None
    except Exception as error:  # numpy raises a dozen kinds; MemoryError if a header lies
        raise InputError(f"not a .npy or .npz file, or a damaged one ({error})", where=str(path)) from None
