"""The version of this package."""

from __future__ import annotations

from importlib import metadata


def package_version() -> str:
    """Returns the version of this package, or "0+unknown" if it runs from a build directory."""
    try:
        return metadata.version("tilewright")
    except metadata.PackageNotFoundError:
        return "0+unknown"
