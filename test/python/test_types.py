"""The type stubs of the extension modules, which are hand-written for type checkers that see only the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import tilewright


def interface(stub: Path) -> list[str]:
    """Returns the declarations of a stub, without its docstring and the values of constants."""
    body = ast.parse(stub.read_text()).body
    for node in body:
        if isinstance(node, ast.AnnAssign):
            node.value = None
    return [ast.unparse(node) for node in body if not isinstance(node, ast.Expr)]


@pytest.mark.parametrize("name", ["_native", "_runtime"])
def test_the_stub_is_what_the_extension_module_says_of_itself(name: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "nanobind.stubgen",
        "-q",
        "-m",
        f"tilewright.{name}",
        "-O",
        str(tmp_path),
    ]
    subprocess.run(command, check=True)
    assert interface(Path(tilewright.__path__[0]) / f"{name}.pyi") == interface(tmp_path / f"{name}.pyi")
