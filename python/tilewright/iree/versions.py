"""Check that the pinned version of IREE is installed.

Text of IREE's own dialects crosses the boundary, and that text changes between releases without notice; so any other
version is refused.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata

from tilewright.errors import VersionError

PINNED_IREE = "3.13.0"
PACKAGES = ("iree-base-compiler", "iree-base-runtime")


@cache
def installed_version(package: str) -> str | None:
    """Returns the installed version of a Python package, or None. It is looked up once in a process."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def check_iree(*packages: str) -> None:
    """Raises `VersionError` unless the given packages of IREE (default: all) are installed at the pinned version."""
    for package in packages or PACKAGES:
        found = installed_version(package)
        if found == PINNED_IREE:
            continue
        state = f"{package} {found} is installed" if found else f"{package} is not installed"
        raise VersionError(
            f"{state}, but this Tilewright works with {package} {PINNED_IREE} only",
            hint=f"run: pip install {package}=={PINNED_IREE}",
        )
