"""Register blocks of a contraction on a processor that a plan states: each field alone, with right results.

The lit test contraction-blocking.mlir checks the code that is emitted for each field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import tilewright
from micro_kernel_cases import skip_unless_here
from one_graph import one_graph
from onnx import TensorProto, helper

TARGET = "x86-64-avx2"


@dataclass(frozen=True)
class Edited:
    """Values of fields of a blocking, and a product whose register blocks have others."""

    values: dict[str, int]
    rows: int = 36
    terms: int = 96
    columns: int = 64
    k_block: int = 0
    """Elements of K that all rows take before the next ones; 0: all."""

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values.items())


@pytest.mark.parametrize(
    "edited",
    [
        Edited({"vectors": 1}),
        Edited({"unroll": 3}),
        Edited({"panel_k": 32}),
        Edited({"prefetch": 1024}),
        Edited({"k_outermost": True}, k_block=32),
        Edited({"k_outermost": True}, rows=37, terms=101, columns=67, k_block=32),
        Edited({"even_rows": 0}, rows=37),
        Edited({"even_rows": 13}, rows=40),
        Edited({"wider_last": False}, columns=67),
    ],
    ids=str,
)
def test_each_field_is_carried_out(edited: Edited) -> None:
    """Sums of products in f32 differ from those in f64 by at most a rounding for each product."""
    skip_unless_here(TARGET)
    rng = np.random.default_rng(7)
    shapes = (edited.rows, edited.terms), (edited.terms, edited.columns)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    product = helper.make_node("MatMul", ["a", "b"], ["y"])
    model = one_graph([product], {"a": a}, {"b": b}, (TensorProto.FLOAT, (edited.rows, edited.columns)))
    plan = tilewright.compile(model, TARGET, threads=1, tuning=False).plan
    assert plan is not None
    op = next(op for kernel in plan.kernels for op in kernel.groups[0].ops if op.micro_kernel)
    if edited.k_block:
        op.micro_kernel += f"x{edited.k_block}"
    assert op.blocking is not None
    assert all(getattr(op.blocking, field) != value for field, value in edited.values.items())
    op.blocking = replace(op.blocking, **edited.values)
    op.tilings = []  # they follow from the blocking
    program = tilewright.compile(model, TARGET, threads=1, plan=plan)
    assert program.plan is not None
    carried = [
        op.blocking for kernel in program.plan.kernels for op in kernel.groups[0].ops if op.micro_kernel
    ]
    assert carried == [op.blocking]
    expected = a.astype(np.float64) @ b.astype(np.float64)
    bound = edited.terms * np.finfo(np.float32).eps * (np.abs(a).astype(np.float64) @ np.abs(b))
    assert (np.abs(program(a)[0] - expected) <= bound).all()


def test_blocks_of_one_row_are_as_their_plan_states() -> None:
    """Rows of f16 may be any of two dims here, and the blocks of one row have more vectors than those of three."""
    skip_unless_here(TARGET)
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((6, 3, 1), (1, 17)))
    product = helper.make_node("MatMul", ["a", "b"], ["y"])
    model = one_graph([product], {"a": a}, {"b": b}, (TensorProto.FLOAT16, (6, 3, 17)))
    program = tilewright.compile(model, TARGET, threads=1, strict=True)
    expected = a.astype(np.float64) * b.astype(np.float64)
    np.testing.assert_array_equal(program(a)[0], expected.astype(np.float16))
