"""A PyTorch model with an installed wheel: as a program, and through torch.compile by the name of the back end."""

from __future__ import annotations

import sys
from pathlib import Path

import tilewright
import torch


def main(folder: Path) -> None:
    """Fails loudly if a kernel or a number is missing."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(48, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 9)]
    model, x = torch.nn.Sequential(*layers).eval(), torch.randn(5, 48)
    program = tilewright.compile(model, example_inputs=(x,), threads=1)
    assert program.kernels, "no kernel of ours: everything was left to IREE"
    again = tilewright.load(program.save(folder / "torch.vmfb"))
    compiled = torch.compile(model, backend="tilewright", options={"threads": 1})
    with torch.no_grad():
        results = program(x), again(x), compiled(x)
        expected = model.double()(x.double())
    from tilewright.torch.backend import reports

    assert sum(report.kernels for report in reports), "torch.compile made no kernel of ours"
    for result in results:
        # Sums of at most 64 terms of size 1 in f32, and a norm.
        torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-5)
    print(f"{len(program.kernels)} kernels, numbers as PyTorch has them in float64")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
