"""The main job with an installed wheel, as scripts/wheel.sh runs it: compile, save, load and run a transformer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import tilewright
from onnx.reference import ReferenceEvaluator
from tilewright import ir
from tilewright.runtime.inputs import random_inputs


def scopes(op: ir.OpView) -> list[str]:
    """Returns the scopes of the edges of a planned module."""
    return [str(ir.view(each).scope.value) for each in op.walk("tile.connect")]


def main(model: Path, folder: Path) -> None:
    """Fails loudly if a kernel or a number is missing."""
    program = tilewright.compile(model, threads=2)
    assert program.kernels, "no kernel of ours: everything was left to IREE"
    assert not program.metadata.notes, program.metadata.notes
    assert program.signature is not None
    inputs = random_inputs(program.signature, seed=0)
    again = tilewright.load(program.save(folder / "model.vmfb"))
    names = [spec.name for spec in program.signature.inputs]
    expected = ReferenceEvaluator(onnx.load(model)).run(None, dict(zip(names, inputs, strict=True)))
    assert isinstance(expected, list)
    for got, same, want in zip(program(*inputs), again(*inputs), expected, strict=True):
        np.testing.assert_array_equal(got, same)
        # Sums over hundreds of f32 in another order, through every layer.
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    seen: list[str] = []
    tilewright.compile(model, threads=2, passes={"planned": [lambda op: seen.extend(scopes(op))]})
    assert "block" in seen, "a pass in Python has seen no tile in a buffer"
    print(f"{len(program.kernels)} kernels, numbers as the ONNX reference has them")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
