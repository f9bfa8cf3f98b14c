"""The number of threads follows from the predicted time, and the target's rates from the number of threads."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import numpy as np
import pytest
import tilewright
from tilewright.records.report import LeftOp, LoopReport, Report
from tilewright.records.targets import Target
from tilewright.records.threads import checked_threads, choose_threads, predicted_seconds, threads_in_iree

from benchmarks.workloads import WORKLOADS, stitch


def test_small_programs_run_on_the_calling_thread() -> None:
    program = tilewright.compile(stitch.softmax((7, 129)))
    assert program.metadata.threads == 1
    (y,) = program(np.zeros((7, 129), np.float32))
    np.testing.assert_allclose(y, 1 / 129, rtol=1e-6)


@pytest.mark.parametrize("targets", [["x86-64-v2"], ["x86-64-avx2", "x86-64-v2"]], ids=str)
def test_fewer_threads_are_no_variants(targets: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is planned twice, and the target of the first plan is no variant of the second."""
    monkeypatch.setattr(tilewright.api.compilation, "available_cores", lambda: 2)
    program = tilewright.compile(stitch.softmax((7, 129)), targets)
    assert program.metadata.threads == 1
    assert list(program.metadata.variants) == targets[:-1]


def test_as_many_threads_as_the_user_allows_are_a_choice() -> None:
    assert tilewright.compile(stitch.softmax((7, 129)), threads=2).metadata.threads == 1
    assert tilewright.compile(stitch.softmax((4096, 1024)), threads=2).metadata.threads == 2


def test_numbers_of_threads_may_be_numpys() -> None:
    assert checked_threads(np.int64(2)) == 2
    assert checked_threads(np.array([1, 3])) == (1, 3)


@pytest.mark.parametrize("threads", ["2", 2.0, [1.5], None], ids=repr)
def test_what_is_no_number_of_threads_is_refused(threads: object) -> None:
    with pytest.raises(tilewright.CompileError, match="give the most threads, or a list of numbers"):
        checked_threads(threads)


def test_what_the_user_says_wins() -> None:
    assert tilewright.compile(stitch.softmax((7, 129)), threads=[2]).metadata.threads == 2


@pytest.mark.parametrize("threads", [0, 65, [], [2, 0]])
def test_threads_that_cannot_be_are_refused(threads: int | list[int]) -> None:
    with pytest.raises(tilewright.CompileError, match="threads"):
        tilewright.compile(stitch.softmax((7, 129)), threads=threads)


def test_much_work_pays_for_workers() -> None:
    target = Target.lookup("x86-64-avx512").with_cores(8)
    report = tilewright.compile(stitch.softmax((4096, 1024)), target=target, threads=[8]).metadata.report
    assert choose_threads(report, target, (1, 8)) == 8
    one, eight = (predicted_seconds(report, target, threads=n) for n in (1, 8))
    assert one / 8 < eight < one


def test_ops_left_to_iree_count_by_their_operations() -> None:
    def matmul(size: int) -> Report:
        left = {"op": "linalg.matmul", "loc": "", "reason": "a contraction", "bytes": 12 * size * size}
        return Report.from_json({"left_to_iree": [{**left, "operations": size**3, "dispatch": True}]})

    target = Target.lookup("x86-64-avx512").with_cores(4)
    assert choose_threads(matmul(32), target, (1, 4)) == 1
    assert choose_threads(matmul(1024), target, (1, 4)) == 4


def test_nothing_known_means_all_cores() -> None:
    assert choose_threads(Report(), Target.lookup("x86-64-avx2").with_cores(3), (1, 3)) == 3


def test_rates_scale_with_the_cores() -> None:
    target = Target.lookup("x86-64-avx512")
    half = target.with_cores(target.cores).with_cores(1)
    assert half.cores == 1
    assert half.flops_per_second == pytest.approx(target.flops_per_second / target.cores)
    assert half.levels[0].bandwidth == pytest.approx(target.levels[0].bandwidth / target.cores)


# These sizes are within IREE's pools, and beyond them.
_LARGE, _LARGER = (10_000, 1024), (16_500, 1024)


@pytest.mark.parametrize("shape", [_LARGE, _LARGER])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_results_go_where_the_last_ones_were(shape: tuple[int, int], threads: int) -> None:
    """Fresh pages cost several times what a kernel takes to fill them."""
    program = tilewright.compile(stitch.scaled_copy(shape), threads=[threads])
    call = program.bind(np.ones(shape, np.float32))
    for _ in range(3):
        call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1000


@pytest.mark.parametrize("threads", [1, 2])
def test_a_result_that_is_held_is_not_overwritten(threads: int) -> None:
    program = tilewright.compile(stitch.scaled_copy(_LARGER), threads=[threads])
    assert program.signature is not None
    session, spec = program.session(), program.signature.outputs[0]
    first = session.step([np.full(_LARGER, 2, np.float32)], 1).buffer(0)
    session.step([np.full(_LARGER, 4, np.float32)], 1)
    np.testing.assert_array_equal(session.read(first, spec), np.float32(3))


@pytest.mark.parametrize("threads", [1, 2])
def test_what_calls_reused_is_given_back_with_the_program(threads: int) -> None:
    program = tilewright.compile(stitch.scaled_copy(_LARGER), threads=[threads])
    call = program.bind(np.ones(_LARGER, np.float32))
    call()
    call()
    before = _resident_bytes()
    del call, program
    gc.collect()
    assert before - _resident_bytes() > 100e6  # the program's input and its result are freed


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.parametrize(("op", "threads"), [("scf.while", 1), ("scf.if", 1), ("linalg.generic", 4)])
def test_iree_repeats_and_chooses_ops_on_one_thread(op: str, threads: int) -> None:
    left = LeftOp(op=op, location="loop", reason="its condition is computed")
    assert threads_in_iree(Report(left_to_iree=(left,)), 4) == threads


def test_programs_with_loops_in_iree_are_planned_for_one_thread() -> None:
    """More threads would be faster by their work alone."""
    work = LeftOp(op="linalg.generic", location="work", reason="an operand is missing", operations=1e12)
    loop = LeftOp(op="scf.while", location="loop", reason="its condition is computed")
    target = Target.lookup("x86-64-avx2").with_cores(4)
    without, with_loop = (Report(left_to_iree=ops, raw={"kernels": []}) for ops in ((work,), (work, loop)))
    assert choose_threads(without, target, (1, 4)) == 4
    assert choose_threads(with_loop, target, (1, 4)) == 1
    assert choose_threads(with_loop, target, (4,)) == 4


def test_programs_whose_loops_are_our_kernels_may_take_more_threads() -> None:
    """The loop is in the list of what is left to IREE, but the program runs without it."""
    program = tilewright.compile(WORKLOADS["lstm-layer"].build(), "x86-64-avx2", threads=2, deploy=False)
    assert "scf.for" in [op.op for op in program.metadata.report.left_to_iree]
    assert program.metadata.threads == 2


@pytest.mark.parametrize(("kernel", "threads"), [("", 1), ("all_steps", 4)])
def test_iree_launches_the_steps_of_a_loop_on_one_thread(kernel: str, threads: int) -> None:
    loop = LoopReport(op="scf.for", location="loop", steps=4, kernels=("step",), kernel=kernel, reason="")
    assert threads_in_iree(Report(loops=(loop,)), 4) == threads
