"""Subprograms that are the same have one key in the tuning database, and others have another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tilewright import Module, Target
from tilewright.pipelines import nested, pass_text, pipeline
from tilewright.tuning.subprograms import Setting
from tuning_cases import TARGET

_LAYERS = """
func.func @layers(%x: tensor<{rows}x53x{type}>, %w: tensor<53x53x{type}>) -> tensor<{rows}x53x{type}> {{
  %zero = arith.constant 0.0 : {type}
  %e = tensor.empty() : tensor<{rows}x53x{type}>
  %f = linalg.fill ins(%zero : {type}) outs(%e : tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}>
  %p = linalg.matmul ins(%x, %w : tensor<{rows}x53x{type}>, tensor<53x53x{type}>)
                     outs(%f : tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}> loc("first")
  %b = "other.barrier"(%p) : (tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}>
  %q = linalg.matmul ins(%b, %w : tensor<{rows}x53x{type}>, tensor<53x53x{type}>)
                     outs(%f : tensor<{rows}x53x{type}>) -> tensor<{rows}x53x{type}> loc("second")
  return %q : tensor<{rows}x53x{type}>
}}
"""


def _keys(folder: Path, *, rows: int = 37, kind: str = "f32", target: Target = TARGET) -> list[str]:
    output, file = folder / "subprograms.json", folder / "target.json"
    target.save(file)
    passes = pipeline(
        nested("func.func", "tile-normalize"),
        pass_text("tile-print-subprograms", {"target": str(file), "output": str(output)}),
    )
    Module.parse(_LAYERS.format(rows=rows, type=kind)).run(passes)
    setting = Setting(target=target, numerics="default")
    return [setting.key(item["form"]) for item in json.loads(output.read_text())["subprograms"]]


# Twelve equal layers are timed once.
def test_repeated_layers_have_one_key(tmp_path: Path) -> None:
    first, second = _keys(tmp_path)
    assert first == second


# A decision holds for exactly what was timed.
@pytest.mark.parametrize(
    "other", [{"rows": 41}, {"kind": "f64"}, {"target": replace(TARGET, block_bytes=1 << 16)}]
)
def test_other_shapes_types_and_targets_have_other_keys(other: dict[str, Any], tmp_path: Path) -> None:
    assert not set(_keys(tmp_path)) & set(_keys(tmp_path, **other))


# A plan for other numerics, or of another version, computes something else.
def test_other_numerics_and_versions_have_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(target=TARGET, numerics="default")
    key = setting.key("form")
    assert replace(setting, numerics="strict").key("form") != key
    monkeypatch.setattr("tilewright.tuning.subprograms.package_version", lambda: "another")
    assert setting.key("form") != key
