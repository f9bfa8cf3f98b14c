"""The examples run as a user would run them; each checks its own result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh"))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    if name.startswith("torch_"):
        pytest.importorskip("torch")
    (tmp_path / "tilewright").write_text(f'#!/bin/sh\nexec {sys.executable} -m tilewright "$@"\n')
    (tmp_path / "tilewright").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    script = str(EXAMPLES / name)
    command = [sys.executable, script] if name.endswith(".py") else ["bash", script, str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_example_is_described() -> None:
    text = (EXAMPLES / "README.md").read_text()
    assert all(
        f"[{path.name}]({path.name})" in text
        for path in EXAMPLES.iterdir()
        if path.is_file() and path.name != "README.md"
    )
