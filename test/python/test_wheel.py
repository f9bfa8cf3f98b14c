"""The package as it is installed, in an environment of its own: metadata, entry points, and what the build installs.

The wheel that $TILEWRIGHT_WHEEL names is installed, as scripts/wheel.sh does with the one that it has built. Without
it, the same files come from the build for development, which takes seconds instead of minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _run(*command: str | Path, folder: Path) -> str:
    """Runs a command that sees neither this checkout nor this environment, and returns what it printed."""
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "TILEWRIGHT_CACHE": "off"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the Python of an environment with the package; others of the packages here are linked into it."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q"]
    built = os.environ.get("TILEWRIGHT_WHEEL")
    if built is None:
        options = ["--no-deps", "--no-index", "--no-build-isolation", "--config-settings=wheel.cmake=false"]
        subprocess.run([*pip, "wheel", *options, "-w", str(folder), str(ROOT)], check=True)
        [built] = map(str, folder.glob("tilewright-*.whl"))
    venv.create(folder / "user", with_pip=False)
    python = folder / "user/bin/python"
    subprocess.run([*pip, f"--python={python}", "install", "--no-index", "--no-deps", built], check=True)
    [packages] = folder.glob("user/lib/python*/site-packages")
    if "TILEWRIGHT_WHEEL" not in os.environ:
        options = ["--component", "wheel", "--prefix", str(packages)]
        install = ["cmake", "--install", str(ROOT / "build"), *options]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "tilewright" not in entry.name and not (packages / entry.name).exists():
            (packages / entry.name).symlink_to(entry)
    return python


def test_an_installed_package_compiles_a_model_of_pytorch(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    printed = _run(installed, ROOT / "test/wheel/torch_job.py", tmp_path, folder=tmp_path)
    assert "numbers as PyTorch has them in float64" in printed


def test_its_commands_are_installed(installed: Path, tmp_path: Path) -> None:
    assert "tilewright" in _run(installed.parent / "tilewright", "--version", folder=tmp_path)
    where = _run(installed, "-c", "import tilewright; print(tilewright.__file__)", folder=tmp_path)
    tool = Path(where.strip()).parent / "bin/tilewright-opt"
    assert where.startswith(str(installed.parent.parent))
    assert "MLIR" in _run(tool, "--version", folder=tmp_path)


def test_it_has_the_extras_that_the_guide_names(installed: Path, tmp_path: Path) -> None:
    code = "import importlib.metadata as m; print(*m.metadata('tilewright').get_all('Provides-Extra'))"
    extras = set(_run(installed, "-c", code, folder=tmp_path).split())
    assert {"torch", "jax", "cuda", "tune"} <= extras
    guide = (ROOT / "docs/guide/install.md").read_text()
    assert all(f"tilewright[{extra}]" in guide for extra in extras - {"test", "wheel"})
