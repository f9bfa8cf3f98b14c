"""Identity of the compiler: whatever of it a rebuild or an update changes."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from pathlib import Path

from tilewright.cache.hashes import Hashes
from tilewright.ir.native import native
from tilewright.iree.versions import PACKAGES, installed_version
from tilewright.system.version import package_version

_PACKAGE = Path(__file__).parents[1]
_LIBRARIES = ("libMLIR.", "libLLVM.", "libLLVM-")
"""Beginnings of the names of shared libraries that compile, where they are not linked into the extension module. Those
of Python bindings to MLIR have other names; a process may have IREE's or not."""
_FRONT_ENDS = ("onnx", "torch", "numpy", "ml_dtypes")
"""Packages that read models and weights."""


def compiler_identity(hashes: Hashes) -> dict[str, str]:
    """Returns the versions of what compiles, and content hashes of what a developer may rebuild.

    Raises `OSError` if a part of the compiler cannot be read.
    """
    packages = {name: installed_version(name) or "" for name in (*PACKAGES, *_FRONT_ENDS)}
    return {
        "tilewright": package_version(),
        "python": platform.python_version(),
        **packages,
        "sources": _sources(),
        **{library.name: hashes.digest(library) for library in _libraries()},
    }


def _sources() -> str:
    """Returns a hash of the package's Python sources. A build folder has links to them instead of copies."""
    stamps = []
    for folder, _, names in os.walk(_PACKAGE, followlinks=True):
        for name in names:
            if name.endswith(".py"):
                about = (path := Path(folder, name)).stat()
                stamps.append((path, about.st_ino, about.st_size, about.st_mtime_ns))
    return _hash_of(tuple(sorted(stamps)))


@functools.lru_cache(maxsize=1)
def _hash_of(stamps: tuple[tuple[Path, int, int, int], ...]) -> str:
    """Returns a hash of the content of files. It is computed once for files with the same stamps, since a process that
    compiles small models would otherwise read two hundred files for each."""
    hashed = hashlib.sha256()
    for path, *_ in stamps:
        content = path.read_bytes()
        hashed.update(f"{path.relative_to(_PACKAGE)} {len(content)}\n".encode() + content)
    return hashed.hexdigest()


def _libraries() -> list[Path]:
    """Returns the extension module, and the compiler's libraries that this process has mapped."""
    found = {Path(str(native.__file__))}
    for line in Path("/proc/self/maps").read_text().splitlines():
        name = line.partition("/")[2]
        if name.rpartition("/")[2].startswith(_LIBRARIES):
            found.add(Path("/" + name))
    return sorted(found)
