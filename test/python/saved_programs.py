"""Programs with weights that tests save, copy and damage."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tilewright
from parameter_files import archive, two_products
from tilewright.runtime.held import HeldFile

from benchmarks.workloads.builder import GraphBuilder

Array = np.ndarray[Any, Any]

LARGE = (3, 1031, 1201)
"""Sizes of a product whose 4.95 MB of weights are more than one piece, so that they are mapped."""

SMALL = (5, 33, 17)
"""Sizes of a product whose weights are copied into memory."""


def product(rows: int, depth: int, width: int) -> tuple[onnx.ModelProto, Array]:
    """Returns a model of x @ w, and w."""
    w = np.random.default_rng().standard_normal((depth, width)).astype(np.float32)
    g = GraphBuilder("product")
    g.output(g.op("MatMul", g.input("x", (rows, depth)), g.constant(w, "w")), (rows, width))
    return g.build(), w


class Case:
    """A compiled product, with its expected result."""

    def __init__(self, rows: int, depth: int, width: int) -> None:
        model, self.w = product(rows, depth, width)
        self.program = tilewright.compile(model, threads=1)
        self.x = np.random.default_rng().standard_normal((rows, depth)).astype(np.float32)

    def check(self, program: tilewright.Program) -> None:
        """Checks the result: an f32 sum of n normal products is off by a few sqrt(n) roundings of its terms."""
        exact = self.x.astype(np.float64) @ self.w.astype(np.float64)
        tolerance = 4 * np.sqrt(self.w.shape[0]) * np.finfo(np.float32).eps * np.abs(exact).max()
        np.testing.assert_allclose(program(self.x)[0], exact, rtol=0, atol=tolerance)


def files_of(module: Path) -> list[Path]:
    return [module.with_suffix(suffix) for suffix in (".vmfb", ".irpa", ".json")]


def copy_to(module: Path, folder: Path, stem: str | None = None) -> Path:
    """Copies a program's three files, under another name if one is given."""
    folder.mkdir(exist_ok=True)
    for path in files_of(module):
        shutil.copy(path, folder / f"{stem or module.stem}{path.suffix}")
    return folder / f"{stem or module.stem}.vmfb"


def flip(path: Path, offset: int) -> None:
    """Changes one byte in place."""
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def content_hash(path: Path) -> str:
    return HeldFile(path, may_map=True).digest()


def run_stock(
    module: Path, parameters: dict[str, Path], x: Array, folder: Path, *, outputs: int
) -> list[Array]:
    """Returns the results of IREE's own tool."""
    np.save(folder / "x.npy", x)
    results = [folder / f"{number}.npy" for number in range(outputs)]
    command = [
        str(Path(sys.executable).parent / "iree-run-module"),
        "--device=local-sync",
        f"--module={module}",
        *(f"--parameters={scope}={path}" for scope, path in parameters.items()),
        f"--function={tilewright.load(module).metadata.entry}",
        f"--input=@{folder / 'x.npy'}",
        *(f"--output=@{path}" for path in results),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [np.load(path) for path in results]


SCOPES = ("a/../left", "right")
TWO_SCOPES = two_products(*SCOPES)
WEIGHTS_THEMSELVES = """
util.global private @w = #stream.parameter.named<"a/../left"::"w"> : tensor<33x64xf32>
util.global private @v = #stream.parameter.named<"right"::"w"> : tensor<33x64xf32>
func.func @weights() -> (tensor<33x64xf32>, tensor<33x64xf32>) {
  %w = util.global.load @w : tensor<33x64xf32>
  %v = util.global.load @v : tensor<33x64xf32>
  return %w, %v : tensor<33x64xf32>, tensor<33x64xf32>
}
"""


class Scopes:
    """A program with weights in two files."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng()
        self.weights = {scope: random.standard_normal((33, 64)).astype(np.float32) for scope in SCOPES}
        self.x = random.standard_normal((6, 33)).astype(np.float32)
        self.given = {
            scope: archive(folder / f"given-{number}.irpa", {"w": self.weights[scope]})
            for number, scope in enumerate(SCOPES)
        }
        self.program = tilewright.compile(TWO_SCOPES, threads=1, parameters=self.given)

    def check(self, results: list[Array]) -> None:
        for result, scope in zip(results, SCOPES, strict=True):
            exact = self.x.astype(np.float64) @ self.weights[scope].astype(np.float64)
            # Tolerance of f32 sums of 33 terms
            np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-4)
