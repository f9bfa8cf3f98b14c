"""The command line as tests call it: in this process, or as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from tilewright.cli.main import cli


def invoke(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin)


def tilewright_process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tilewright", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, **options)
