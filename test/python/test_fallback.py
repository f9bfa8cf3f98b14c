"""A pass that fails or crashes on a kernel does not fail the compilation.

The kernel's ops are compiled unfused, or by IREE, with a note, and the results are right. `tile-inject-failure` injects
the failures.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, softmax, value
from onnx import helper
from tilewright.api import stitch
from tilewright.api.fallback import (
    MOST_NAMED_FAILURES,
    PlannedPart,
    Restrictions,
    next_attempt,
    planned_parts,
    suspects,
)
from tilewright.errors import PassError
from tilewright.pipelines import pass_text
from tilewright.simulator.programs import simulate_program

Array = np.ndarray[Any, Any]
Injection = Callable[..., None]

STAGES = ["planned", "program", "code"]
# These parts of the model are never kernels of one launch, because packing them would read too much.
SHAPES = ([301, 1003], [307, 1009])


@pytest.fixture
def inject(monkeypatch: pytest.MonkeyPatch, may_fall_back: None, tmp_path: Path) -> Injection:
    """Makes our pipelines fail on kernels that contain ops with all of these names."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # reproducers of failures stay

    def inject(*names: str, stage: str, crash: bool = False) -> None:
        failure = {"fail-at": stage, "fail-on": list(names), "fail-by-crash": crash or None}
        monkeypatch.setattr(
            stitch, "pass_text", lambda name, options: pass_text(name, {**options, **failure})
        )

    return inject


@pytest.fixture(scope="module")
def two_kernels() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Tanh", ["x"], ["u"], name="first_tanh"),
        helper.make_node("Softmax", ["u"], ["p"], name="first_softmax", axis=-1),
        helper.make_node("Tanh", ["y"], ["v"], name="second_tanh"),
        helper.make_node("Softmax", ["v"], ["q"], name="second_softmax", axis=-1),
    ]
    names = zip("xypq", [*SHAPES, *SHAPES], strict=True)
    x, y, p, q = (value(name, shape) for name, shape in names)
    return make_model(nodes, [x, y], [p, q])


@pytest.fixture(scope="module")
def arrays() -> list[Array]:
    generator = np.random.default_rng(5)
    return [generator.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def _check(outputs: list[Array], arrays: list[Array]) -> None:
    """Compares f32 sums of a thousand terms with float64, as tightly as any order of summation allows."""
    for output, array in zip(outputs, arrays, strict=True):
        np.testing.assert_allclose(output, softmax(np.tanh(array.astype(np.float64))), rtol=2e-5, atol=0)


def _places(program: tilewright.Program) -> list[set[str]]:
    return [{op.location for op in kernel.ops} for kernel in program.kernels]


@pytest.mark.parametrize("stage", STAGES)
def test_a_kernel_that_fails_is_not_fused_and_others_are(
    inject: Injection, two_kernels: onnx.ModelProto, arrays: list[Array], stage: str
) -> None:
    inject("first_tanh", "first_softmax", stage=stage)
    program = tilewright.compile(two_kernels, threads=1)
    assert {"second_tanh", "second_softmax"} in _places(program)
    assert not any({"first_tanh", "first_softmax"} <= places for places in _places(program))
    _check(program(*arrays), arrays)
    text = program.explain()
    assert "not fused, because a pass of ours failed on kernel" in text and "fails on purpose" in text
    assert "please report it with this reproducer: " in text and "--pass-pipeline=" in text
    assert len(program.metadata.report.fallbacks) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_what_fails_alone_as_well_is_left_to_iree(
    inject: Injection, two_kernels: onnx.ModelProto, arrays: list[Array], stage: str
) -> None:
    inject("first_softmax", stage=stage)
    program = tilewright.compile(two_kernels, threads=1)
    assert not any("first_softmax" in places for places in _places(program))
    assert {"second_tanh", "second_softmax"} in _places(program)
    _check(program(*arrays), arrays)
    assert "left to IREE, because a pass of ours failed" in program.explain()
    reasons = {op.reason for op in program.metadata.report.left_to_iree if op.location == "first_softmax"}
    assert "a pass failed on the kernel that held it" in reasons


@pytest.mark.lands(one_in=2)
@pytest.mark.parametrize("stage", STAGES)
def test_a_process_that_dies_does_not_end_the_compilation(
    inject: Injection, two_kernels: onnx.ModelProto, arrays: list[Array], stage: str
) -> None:
    """Nothing names the kernel, so no ops share one in the next attempt."""
    inject("first_tanh", "first_softmax", stage=stage, crash=True)
    program = tilewright.compile(two_kernels, threads=1)
    _check(program(*arrays), arrays)
    assert "died by SIGABRT: LLVM ERROR: a failure on purpose" in program.explain()
    assert program.metadata.report.fallbacks


def test_a_process_that_always_dies_leaves_all_to_iree(
    inject: Injection, two_kernels: onnx.ModelProto, arrays: list[Array]
) -> None:
    inject("first_softmax", stage="program", crash=True)
    program = tilewright.compile(two_kernels, threads=1)
    assert program.kernels == () and program.plan is None
    _check(program(*arrays), arrays)
    assert "all of the model is left to IREE, because a pass of ours failed" in program.explain()


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("stage", STAGES)
def test_strict_makes_it_an_error(
    inject: Injection, two_kernels: onnx.ModelProto, stage: str, *, crash: bool
) -> None:
    inject("first_tanh", "first_softmax", stage=stage, crash=crash)
    with pytest.raises(tilewright.PassError, match="on purpose") as error:
        tilewright.compile(two_kernels, threads=1, strict=True)
    assert error.value.reproducer and f"fail-at={stage}" in error.value.reproducer


def test_a_plan_that_is_given_does_not_fall_back(inject: Injection, two_kernels: onnx.ModelProto) -> None:
    plan = tilewright.compile(two_kernels, threads=1).plan
    inject("first_tanh", "first_softmax", stage="program")
    with pytest.raises(tilewright.PassError, match="on purpose"):
        tilewright.compile(two_kernels, threads=1, plan=plan)


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("names", [("first_tanh", "first_softmax"), ("first_softmax",)])
def test_kernels_for_gpus_fall_back(
    inject: Injection, stage: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    nodes = [
        helper.make_node("Tanh", ["x"], ["u"], name="first_tanh"),
        helper.make_node("Softmax", ["u"], ["p"], name="first_softmax", axis=-1),
    ]
    model = make_model(nodes, [value("x", [13, 37])], [value("p", [13, 37])])
    inject(*names, stage=stage)
    program = tilewright.compile(model, "cuda:h200", dump_dir=tmp_path)
    assert not any(set(names) <= places for places in _places(program))
    assert program.metadata.report.fallbacks
    x = np.random.default_rng(6).standard_normal((13, 37)).astype(np.float32)
    outputs = simulate_program(program, tmp_path, [x]).outputs
    if outputs is not None:  # some kernel is ours, and this machine's processor runs the rest
        np.testing.assert_allclose(outputs[0], softmax(np.tanh(x.astype(np.float64))), rtol=2e-5)


def test_a_failure_before_there_is_a_plan_leaves_all_to_iree(
    monkeypatch: pytest.MonkeyPatch, may_fall_back: None, two_kernels: onnx.ModelProto, arrays: list[Array]
) -> None:
    def fail(*_: Any, **__: Any) -> str:
        raise PassError("'linalg.generic' op is not understood", location="first_tanh")

    monkeypatch.setattr(stitch, "_run", fail)
    program = tilewright.compile(two_kernels, threads=1)
    assert program.kernels == ()
    _check(program(*arrays), arrays)
    assert "no ops are fused" in program.explain() and "all of the model is left" in program.explain()


# The decision

PARTS = (
    PlannedPart("reduce_addf_0", frozenset({1, 2}), frozenset({"a", "b"})),
    PlannedPart("reduce_addf_1", frozenset({4}), frozenset({"b"}), is_alone=True),
    PlannedPart("move_0", frozenset({5, 6}), frozenset()),
    PlannedPart("two_parts_0", frozenset({7, 8}), frozenset({"d"})),
    PlannedPart("two_parts_0", frozenset({9}), frozenset({"e"})),
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PassError("no", location="a"), ["reduce_addf_0"]),
        (PassError("no", location="b"), ["reduce_addf_0", "reduce_addf_1"]),
        (PassError("no", location="c"), []),
        (PassError("no"), []),
        (PassError("illegal plan: kernel 'move_0' group 0: no", location="a"), ["move_0"]),
        (PassError("kernel 'two_parts_0' does not fit", location="d"), ["two_parts_0"]),
        (PassError("kernel 'two_parts_0' does not fit"), ["two_parts_0", "two_parts_0"]),
        (PassError("kernel 'reduce_addf_10' is none of ours"), []),
        (
            PassError(
                "the compiler's process died by SIGABRT",
                details="reduce_addf_0 is fine\n"
                "Stack dump:\n0.\tRunning pass 'tile-emit-object' on 'builtin.module'\n"
                "1.\tRunning pass 'X86 DAG->DAG Instruction Selection' on function '@reduce_addf_1'\n",
            ),
            ["reduce_addf_1"],
        ),
    ],
)
def test_suspects_are_named_by_the_failure_or_stand_where_it_is(
    error: PassError, expected: list[str]
) -> None:
    assert [part.kernel for part in suspects(error, PARTS)] == expected


def test_each_attempt_does_without_more() -> None:
    """Ops are fused, then alone, then left to IREE; whatever fails, the attempts end."""
    restrictions: Restrictions | None = Restrictions()
    seen = []
    for failures in range(1, 100):
        assert restrictions is not None
        error = PassError("no", location="b" if failures <= 2 else "nowhere")
        restrictions = next_attempt(error, PARTS, restrictions, failures=failures).restrictions
        seen.append(restrictions)
        if restrictions is None:
            break
    assert seen == [
        Restrictions(unfused=frozenset({1, 2})),
        # The kernels of an attempt are those of its own plan, which has not changed here.
        Restrictions(unfused=frozenset({1, 2}), left=frozenset({1, 2, 4})),
        Restrictions(fuse=False, unfused=frozenset({1, 2}), left=frozenset({1, 2, 4})),
        None,
    ]


def test_attempts_are_bounded() -> None:
    error = PassError("no", location="a")
    late = next_attempt(error, PARTS, Restrictions(), failures=MOST_NAMED_FAILURES + 1)
    assert late.restrictions == Restrictions(fuse=False)


def test_parts_are_read_from_plan_and_report() -> None:
    plan = {
        "kernels": [
            {"name": "k", "groups": [{"ops": [{"id": 3}]}, {"ops": [{"id": 5}]}]},
            {"name": "l", "groups": [{"ops": [{"id": 7}]}]},
        ]
    }
    report = {"kernels": [{"ops": [{"id": 3, "loc": 'loc(fused["a", callsite("b" at "f.mlir":3:4)])'}]}]}
    assert planned_parts(plan, report) == (
        PlannedPart("k", frozenset({3}), frozenset({"a", "b", "f.mlir:3:4"})),
        PlannedPart("k", frozenset({5})),
        PlannedPart("l", frozenset({7}), is_alone=True),
    )
    assert planned_parts(plan, {})[0].locations == frozenset()
    assert planned_parts({}, {}) == ()
