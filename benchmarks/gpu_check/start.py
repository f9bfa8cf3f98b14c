"""Checks our kernels on this machine's GPU: `python3 run.py`, with --output FILE for the results.

It needs Python 3.12, numpy and an NVIDIA driver, but no network. It also times PyTorch and JAX if they are installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Import name of each wheel; installed packages are used instead.
_PACKAGES = {
    "iree_base_runtime": "iree.runtime",
    "ml_dtypes": "ml_dtypes",
    "onnx": "onnx",
    "protobuf": "google.protobuf",
    "typing_extensions": "typing_extensions",
}


def main() -> int:
    """Makes the missing packages importable and starts the check."""
    if importlib.util.find_spec("numpy") is None:
        return _error("numpy is not installed for this Python; use the one that PyTorch is installed for")
    with tempfile.TemporaryDirectory(prefix="tilewright-gpu-check-") as folder:
        for wheel in sorted((HERE / "wheels").glob("*.whl")):
            name, version, *_, tag, interface, _ = wheel.stem.split("-")
            if _is_installed(name, version):
                continue
            if not _runs_here(tag, interface):
                return _error(
                    f"{name} is not installed, and {wheel.name} is not for Python "
                    f"{sys.version_info.major}.{sys.version_info.minor}; use Python 3.12 on x86-64, or install it"
                )
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
        # By default, JAX takes most of the GPU's memory at once.
        environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(HERE), folder, os.environ.get("PYTHONPATH")])
        )
        command = [sys.executable, "-m", "benchmarks.gpu_check.run", str(HERE), *sys.argv[1:]]
        return subprocess.run(command, env=environment, check=False).returncode


def _is_installed(name: str, version: str) -> bool:
    if name == "iree_base_runtime":  # modules run only in the release that they were compiled for
        try:
            return metadata.version(name) == version
        except metadata.PackageNotFoundError:
            return False
    try:
        return importlib.util.find_spec(_PACKAGES.get(name, name)) is not None
    except ModuleNotFoundError:  # the surrounding package is missing
        return False


def _runs_here(tag: str, interface: str) -> bool:
    """True if a wheel with these tags is for this Python.

    Examples are "cp312" with "abi3", "cp312" with "cp312", and "py3" with "none".
    """
    if tag.startswith("py"):
        return True
    made_for = (3, int(tag.removeprefix("cp3")))
    return sys.version_info[:2] == made_for or (interface == "abi3" and sys.version_info[:2] > made_for)


def _error(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
