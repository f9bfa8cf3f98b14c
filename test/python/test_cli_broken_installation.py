"""The command line of an installation that does not load: help and doctor still say why."""

from __future__ import annotations

import subprocess
import sys

import pytest

_BROKEN = """
import sys
for name in ("tilewright._native", "iree", "iree.compiler", "iree.runtime"):
    sys.modules[name] = None
from tilewright.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["doctor"], ["doctor", "--json"]], ids=" ".join
)
def test_a_broken_installation_can_still_be_examined(arguments: list[str]) -> None:
    command = [sys.executable, "-c", _BROKEN, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == (1 if "doctor" in arguments else 0), result.stderr
    said = " ".join((result.stdout + result.stderr).split())
    assert "the extension module cannot be loaded" in said
    assert "internal error" not in said


@pytest.mark.parametrize("command", ["compile", "run", "explain", "tune", "simulate", "targets"])
def test_a_broken_installation_has_the_help_of_every_command(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BROKEN, command, "--help"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_what_does_not_load_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BROKEN, "targets"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the extension module cannot be loaded")
    assert done.stderr.count("\n") == 1
