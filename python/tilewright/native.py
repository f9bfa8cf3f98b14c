"""Loads the extension module, with an error that says what to do when that fails."""

from __future__ import annotations

from tilewright.errors import NativeError

try:
    from tilewright import _native as native
except ImportError as error:
    raise NativeError(
        f"the extension module cannot be loaded: {error}",
        hint="install the package with pip, or build it and put python/ of the build on PYTHONPATH",
    ) from error

__all__ = ["native"]
