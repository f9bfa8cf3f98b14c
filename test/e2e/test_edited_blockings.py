"""Register blocks of a contraction on a processor that a plan states: each field alone, with right results.

The lit test contraction-blocking.mlir checks the code that is emitted for each field.
"""

from __future__ import annotations

import numpy as np
import pytest
import tilewright
from micro_kernel_cases import skip_unless_here
from one_graph import one_graph
from onnx import TensorProto, helper

TARGET = "x86-64-avx2"
ROWS, TERMS, COLUMNS = 36, 96, 64


@pytest.mark.parametrize(
    ("field", "value"), [("vectors", 1), ("unroll", 3), ("panel_k", 32), ("prefetch", 1024)]
)
def test_each_field_is_carried_out(field: str, value: int) -> None:
    """Sums of 96 products in f32 differ from those in f64 by at most 96 roundings."""
    skip_unless_here(TARGET)
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((ROWS, TERMS), (TERMS, COLUMNS)))
    product = helper.make_node("MatMul", ["a", "b"], ["y"])
    model = one_graph([product], {"a": a}, {"b": b}, (TensorProto.FLOAT, (ROWS, COLUMNS)))
    plan = tilewright.compile(model, TARGET, threads=1, tuning=False).plan
    assert plan is not None
    op = next(op for kernel in plan.kernels for op in kernel.groups[0].ops if op.micro_kernel)
    assert op.blocking is not None and getattr(op.blocking, field) != value
    setattr(op.blocking, field, value)
    op.tilings = []  # they follow from the blocking
    program = tilewright.compile(model, TARGET, threads=1, plan=plan)
    assert program.plan is not None
    carried = [
        op.blocking for kernel in program.plan.kernels for op in kernel.groups[0].ops if op.micro_kernel
    ]
    assert carried == [op.blocking]
    expected = a.astype(np.float64) @ b.astype(np.float64)
    bound = TERMS * np.finfo(np.float32).eps * (np.abs(a).astype(np.float64) @ np.abs(b))
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
