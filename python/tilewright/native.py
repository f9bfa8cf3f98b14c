"""Loads the extension module, with an error that says what to do when that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import NativeError

if TYPE_CHECKING:
    from tilewright import _native


def native() -> _native:
    """The module `tilewright._native`."""
    try:
        from tilewright import _native
    except ImportError as error:
        raise NativeError(
            f"the extension module cannot be loaded: {error}",
            hint="install the package with pip, or build it and set PYTHONPATH to python/ in the build directory",
        ) from error
    return _native
