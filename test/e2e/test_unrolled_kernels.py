"""Tests of kernels with large unrolled loop bodies: passes that revisit a body see few ops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tilewright
from legalized_cases import model_of
from onnx import helper


def _seen_by_canonicalizer(folder: Path, kernel: str) -> list[str]:
    """Returns the lines of the function of a kernel as they are when canonicalization begins."""
    (canonical,) = (folder / "passes").rglob(f"func_func_{kernel}/*_canonicalize.mlir")
    dumps = sorted(canonical.parent.glob("*.mlir"))
    earlier = dumps[: dumps.index(canonical)]
    (module,) = (folder / "passes").rglob("*_tile-convert-to-vector.mlir")
    return (earlier[-1] if earlier else module).read_text().splitlines()


def test_canonicalization_sees_merged_addresses(tmp_path: Path) -> None:
    """A tile of windows under guards has some 14 000 lines for its addresses, nearly all of which are equal. The time
    of the canonicalizer grows with the square of what it sees."""
    x, w, y = (np.zeros(shape, np.float32) for shape in ((1, 8, 7, 9), (8, 3, 3, 3), (1, 3, 14, 18)))
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], pads=[0, 1, 1, 0], strides=[2, 2])]
    model = model_of(nodes, {"x": x}, {"y": y}, {"w": w})
    program = tilewright.compile(model, threads=1, target="x86-64-avx512", dump_dir=tmp_path, strict=True)
    (kernel,) = [kernel.name for kernel in program.kernels if kernel.name.startswith("contract")]
    assert len(_seen_by_canonicalizer(tmp_path, kernel)) < 4000
