"""An installed wheel as a user's type checker sees it; scripts/wheel.sh checks this file with `mypy --strict`."""

from __future__ import annotations

from typing import assert_type

import tilewright
from tilewright import ir, passes
from tilewright.dialects import arith, tile


def use(path: str) -> None:
    program = tilewright.compile(path, target="x86-64-avx2", threads=2)
    assert_type(program, tilewright.Program)
    assert_type(program.kernels[0].predicted_seconds, float)
    assert_type(program.plan, tilewright.Plan | None)
    assert_type(tilewright.Target.lookup("cpu").features, str)
    module = tilewright.Module.parse("module {}")
    # Generated from Passes.td, and typed all the same.
    assert_type(passes.print_plan(module, target="cpu", cores=2, json=True), list[tilewright.Diagnostic])
    group = ir.view(module.operation)
    assert_type(group, ir.OpView)
    if isinstance(group, tile.ExprOp):  # generated from TileOps.td
        assert_type(group.domain, ir.DenseI64ArrayAttr)
        assert_type(group.domain.value, list[int])
    assert_type(arith.addf(module.operation.result, module.operation.result), ir.OpResult)
    passes.print_plan(module, cores="two")  # type: ignore[arg-type]
