"""Cells of tables in generated pages."""

from __future__ import annotations


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
