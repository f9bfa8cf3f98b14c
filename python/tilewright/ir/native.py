"""Loader of the extension module, with an error that says what to do if that fails."""

from __future__ import annotations

from tilewright.errors import NativeError

try:
    from tilewright import _native as native
except ImportError as error:
    too_old = "' not found (required by" in str(
        error
    )  # the dynamic loader's text for a missing symbol version
    raise NativeError(
        f"the extension module cannot be loaded: {error}",
        hint="this Linux is older than the wheel supports; build the package here from its source"
        if too_old
        else "install the package with pip, or build it and put python/ of the build on PYTHONPATH",
    ) from error

__all__ = ["native"]
