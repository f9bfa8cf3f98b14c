"""The Python code asks what is done for a kind of machines (records/kinds.py), and never which kind it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

KIND = {"backend", "device", "kind"}
"""Members and variables that hold a kind, or the name of one."""

NAMES = {"cpu", "cuda", "local", "CPU", "CUDA"}


def _name(node: ast.expr) -> str:
    """Returns the last part of a dotted name, or ""."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _kinds_compared(text: str) -> Iterator[int]:
    """Yields the lines that compare a kind with the name of one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            words = {one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)}
            named = {_name(side) for side in sides}
            if named & KIND and NAMES & (words | named):
                yield node.lineno


def test_nothing_asks_which_kind_a_machine_is_of() -> None:
    files = (ROOT / "python/tilewright").rglob("*.py")
    assert [f"{file.name}:{line}" for file in files for line in _kinds_compared(file.read_text())] == []


@pytest.mark.parametrize(
    "text", ['target.backend == "cpu"', 'device != "local"', 'metadata.device in ("cuda",)', "kind is CUDA"]
)
def test_such_a_question_is_found(text: str) -> None:
    assert list(_kinds_compared(text)) == [1]
