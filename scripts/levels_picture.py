"""Draws the levels of the compilation as SVG (docs/levels.svg)."""

from __future__ import annotations

from html import escape

_WIDTH, _ROW, _GAP, _TOP = 920, 74, 18, 20

LEVELS = (
    (
        "1  tensor expressions",
        "passes/graph, passes/normalize",
        "linalg on tensors: matmul, exp, add, transpose",
        "#e8f0fe",
    ),
    (
        "2  planned graph",
        "passes/plan",
        "tile.subprogram: which ops share a kernel, and a scope on every edge",
        "#e6f4ea",
    ),
    (
        "3  tile program",
        "passes/program",
        "tile.program: loops over tiles, loads, stores, buffers, barriers",
        "#fef7e0",
    ),
    ("4  target code", "passes/codegen", "vectors, then LLVM or NVVM, then an ELF object or PTX", "#fce8e6"),
    (
        "5  IREE module",
        "passes/iree",
        "dispatches of our kernels beside IREE's own: .vmfb and .irpa",
        "#f3e8fd",
    ),
)
STEPS = (
    "plan: fuse, tile, choose scopes",
    "make movement explicit",
    "generate code",
    "splice into IREE's module",
)
"""What leads from each level to the next."""


def draw() -> str:
    """Returns the picture as text."""
    height = _TOP + len(LEVELS) * (_ROW + _GAP) + 66
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>The levels of a compilation: from a model to a module of IREE</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#555"/></marker></defs>',
        _text(30, _TOP + 14, "ONNX, PyTorch, StableHLO, linalg  →  IREE's importers", size=14, color="#333"),
    ]
    y = _TOP + 30
    for place, (name, folder, what, color) in enumerate(LEVELS):
        parts += [
            f'<rect x="30" y="{y}" width="620" height="{_ROW}" rx="8" fill="{color}" stroke="#777"/>',
            _text(48, y + 29, name, size=17, weight="bold"),
            _text(632, y + 29, folder, size=13, color="#555", anchor="end", family="monospace"),
            _text(48, y + 54, what, size=14, color="#333"),
        ]
        if place < len(STEPS):
            middle = y + _ROW + _GAP / 2
            parts += [
                f'<path d="M 650 {y + _ROW / 2} h 24 v {_ROW + _GAP} h -18" fill="none" stroke="#555" '
                'stroke-width="1.5" marker-end="url(#tip)"/>',
                _text(684, middle + 5, STEPS[place], size=13, color="#333"),
            ]
        y += _ROW + _GAP
    parts.append(
        _text(
            30, y + 8, "→  stock IREE runs it: CPUs, NVIDIA GPUs; from Python, C or iree-run-module", size=14
        )
    )
    return "\n".join([*parts, "</svg>", ""])


def _text(
    x: float, y: float, text: str, *, size: int, color: str = "black", weight: str = "normal",
    anchor: str = "start", family: str = "",
) -> str:  # fmt: skip
    font = f' font-family="{family}"' if family else ""
    return (
        f'<text x="{x}" y="{y:g}" font-size="{size}" fill="{color}" font-weight="{weight}" '
        f'text-anchor="{anchor}"{font}>{escape(text)}</text>'
    )
