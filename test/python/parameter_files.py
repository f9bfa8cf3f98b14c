"""Parameter files (.irpa), and models whose weights are in two of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from iree import runtime

Array = np.ndarray[Any, Any]


def archive(
    path: Path, parameters: Mapping[str, Array], *, splats: Mapping[str, tuple[bytes, int]] | None = None
) -> Path:
    """Writes arrays by name, and splats: a pattern of bytes by name, and the length in bytes that it is repeated to."""
    index = runtime.ParameterIndex()
    for name, array in parameters.items():
        index.add_buffer(name, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    for name, (pattern, length) in (splats or {}).items():
        index.add_splat(name, pattern, length)
    index.create_archive_file(str(path))
    return path


def read_archive(path: Path) -> dict[str, Any]:
    """Returns the entries of a file by name."""
    index = runtime.ParameterIndex()
    index.load(str(path))
    return dict(index.items())


def two_products(first: str, second: str) -> str:
    """Returns MLIR for the products of x, 6x33, with the weights "w" of two scopes, each 33x64, in f32."""
    return f"""
util.global private @w = #stream.parameter.named<"{first}"::"w"> : tensor<33x64xf32>
util.global private @v = #stream.parameter.named<"{second}"::"w"> : tensor<33x64xf32>
func.func @products(%x: tensor<6x33xf32>) -> (tensor<6x64xf32>, tensor<6x64xf32>) {{
  %w = util.global.load @w : tensor<33x64xf32>
  %v = util.global.load @v : tensor<33x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<6x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x64xf32>) -> tensor<6x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<6x33xf32>, tensor<33x64xf32>)
      outs(%init : tensor<6x64xf32>) -> tensor<6x64xf32>
  %z = linalg.matmul ins(%x, %v : tensor<6x33xf32>, tensor<33x64xf32>)
      outs(%init : tensor<6x64xf32>) -> tensor<6x64xf32>
  return %y, %z : tensor<6x64xf32>, tensor<6x64xf32>
}}
"""
