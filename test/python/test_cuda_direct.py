"""Programs for GPUs without IREE, on a stand-in for the driver: results, streams, graphs, and calls of the driver."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tilewright
from cuda_direct_cases import Interface, Placed, Tensor, content, place, two_softmaxes
from tilewright.errors import InputError, ProgramError


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Placed:
    return place(two_softmaxes(), tmp_path, monkeypatch, grid_sync=False)


def launches(counts: Counter[str]) -> int:
    return counts["cuLaunchKernel"] + counts["cuLaunchCooperativeKernel"]


def test_arrays_go_to_the_gpu_and_results_come_back(two: Placed) -> None:
    assert two.program.runtime == "direct"
    assert "calls run without IREE" in two.program.explain()
    two.check(two.program(*two.inputs))
    two.check(two.program(*(np.ascontiguousarray(x.T).T for x in two.inputs)))


def test_a_loaded_program_runs_as_the_compiled_one(two: Placed, tmp_path: Path) -> None:
    loaded = tilewright.load(two.program.save(tmp_path / "saved.vmfb"))
    np.testing.assert_array_equal(loaded(*two.inputs)[0], two.program(*two.inputs)[0])


def test_a_call_makes_its_launches_and_nothing_else(two: Placed) -> None:
    session = two.session
    x, y = Tensor(two.inputs[0]), Tensor(np.zeros_like(two.expected[0], np.float32))
    session.enqueue([x.array.ctypes.data], [y.array.ctypes.data], 0)
    two.driver.take_counts()
    session.enqueue([x.array.ctypes.data], [y.array.ctypes.data], 0)
    counts = two.driver.take_counts()
    two.check([y.array])
    assert counts == {
        "cuCtxSetCurrent": 1,
        "cuStreamIsCapturing": 1,
        "cuStreamWaitEvent": 1,
        "cuLaunchKernel": 2,
        "cuEventRecord": 1,
    }


def test_a_call_with_arrays_copies_each_once_and_waits_once(two: Placed) -> None:
    two.program(*two.inputs)
    two.driver.take_counts()
    two.program(*two.inputs)
    counts = two.driver.take_counts()
    copies = counts["cuMemcpyHtoDAsync_v2"], counts["cuMemcpyDtoHAsync_v2"], counts["cuStreamSynchronize"]
    assert copies == (1, 1, 1) and launches(counts) == 2 and counts["cuMemAlloc_v2"] == 0


def test_tensors_are_used_where_they_lie(two: Placed) -> None:
    x = Tensor(two.inputs[0])
    (result,) = two.program(x)
    two.check([result.numpy()])
    two.check([content(result)])
    assert x.stream > 0 and two.driver.counts["cuMemcpyHtoDAsync_v2"] == 0
    (again,) = two.program(Interface(two.inputs[0]))
    np.testing.assert_array_equal(content(again), content(result))


def test_results_are_tensors_for_other_programs(two: Placed) -> None:
    (result,) = two.program(Tensor(two.inputs[0]))
    (after,) = two.program(result)
    (expected,) = two.program(result.numpy())
    np.testing.assert_array_equal(after.numpy(), expected)


@pytest.mark.parametrize(
    ("tensor", "complaint"),
    [
        (lambda x: Tensor(x, device=1), r"input 'x': it is on GPU 1, and the program on GPU 0"),
        (lambda x: Tensor(x.astype(np.float16)), "input 'x': dtype float16 was given but float32 is needed"),
        (lambda x: Tensor(x[:8]), r"input 'x': shape \(8, 192\) was given but \(256, 192\) is needed"),
        (lambda x: Interface(x, strides=(4, 1024)), r"input 'x': its strides \(1, 256\) are not contiguous"),
        (lambda x: Interface(x, data=(4, False)), "input 'x': its address is no multiple of 16"),
    ],
)
def test_tensors_that_do_not_fit_are_one_line(two: Placed, tensor: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as raised:
        two.program(tensor(two.inputs[0]))  # type: ignore[operator]
    assert "\n" not in str(raised.value)


def test_a_bound_call_keeps_its_inputs(two: Placed) -> None:
    call = two.program.bind(*two.inputs)
    two.program(*(np.zeros_like(x) for x in two.inputs))
    call()
    two.check(call.outputs())
    call = two.program.bind(Tensor(two.inputs[0]))
    call()
    two.check([content(result) for result in call.outputs()])


def test_a_graph_is_captured_once_and_launched_at_once(two: Placed) -> None:
    call = two.program.bind(*two.inputs, graph=True)
    two.driver.take_counts()
    call()
    counts = two.driver.take_counts()
    assert counts["cuGraphLaunch"] == 1 and launches(counts) == 0
    two.check(call.outputs())


def test_a_caller_may_capture_a_call(two: Placed) -> None:
    """The stand-in refuses, like the driver, what allocates or waits during a capture."""
    session = two.session
    x, y = Tensor(two.inputs[0]), Tensor(np.zeros_like(two.expected[0], np.float32))
    stream = session._cuda.stream()
    graph = stream.capture(
        lambda: session.enqueue([x.array.ctypes.data], [y.array.ctypes.data], stream.handle)
    )
    assert not y.array.any()
    two.driver._cuGraphLaunch(graph.handle, stream.handle)
    two.check([y.array])


def test_threads_take_turns(two: Placed) -> None:
    others = [np.roll(two.inputs[0], shift, axis=0) for shift in range(4)]
    expected = [two.program(x)[0] for x in others]
    results: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda n=n: results.update({n: two.program(others[n])[0]})) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in enumerate(expected):
        np.testing.assert_array_equal(results[number], result)


def test_a_kernel_that_cannot_be_launched_is_named_with_its_op(two: Placed) -> None:
    last = two.program.kernels[-1]
    two.driver.failing = last.name
    op = next(op.location for op in last.ops if op.location)
    with pytest.raises(
        ProgramError, match=rf"kernel {last.name} \(.*{op}.*\) cannot be launched: CUDA_ERROR"
    ):
        two.program(*two.inputs)
    two.driver.failing = ""
    two.check(two.program(*two.inputs))


def test_a_trace_has_the_time_of_each_kernel(two: Placed) -> None:
    spans = two.program.trace(*two.inputs, calls=1)
    names = [kernel.name for kernel in two.program.kernels]
    on_gpu = [span for span in spans if span.thread == 1]
    assert [span.name for span in on_gpu] == names
    assert all(span.end - span.start == pytest.approx(10e-6, rel=1e-3) for span in on_gpu)
    on_host = [span for span in spans if span.thread == 0]
    assert [span.name for span in on_host] == [*(f"launch {name}" for name in names), "call 0"]
    assert all(on_host[-1].start <= span.start <= span.end <= on_host[-1].end for span in on_host)


def test_blocks_that_wait_for_each_other_are_launched_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = place(two_softmaxes(), tmp_path, monkeypatch)
    placed.check(placed.program(*placed.inputs))
    assert placed.driver.counts["cuLaunchCooperativeKernel"] == 1


def test_on_a_part_of_a_gpu_a_file_without_barriers_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = place(two_softmaxes(), tmp_path / "with", monkeypatch, multiprocessors=3)
    saved = placed.program.save(tmp_path / "saved.vmfb")
    with pytest.raises(ProgramError, match=r"--no-grid-sync, .* beside it as saved\.without-barriers\.vmfb"):
        tilewright.load(saved)
    other = place(two_softmaxes(), tmp_path / "without", monkeypatch, multiprocessors=3, grid_sync=False)
    other.program.save(tmp_path / "saved.without-barriers.vmfb")
    loaded = tilewright.load(saved)
    assert "taken instead of saved.vmfb, because the " in loaded.explain()
    other.check(loaded(*other.inputs))


def test_on_a_part_of_a_gpu_it_is_compiled_without_barriers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = place(two_softmaxes(), tmp_path / "with", monkeypatch, multiprocessors=3)
    assert placed.program.kernels[0].has_grid_barrier
    saved = placed.program.save(tmp_path / "saved.vmfb")
    with pytest.raises(
        ProgramError, match=r"blocks of kernel .* wait for each other, but this GPU runs 3 at"
    ):
        tilewright.load(saved)
    placed.program.load()
    assert not any(kernel.has_grid_barrier for kernel in placed.program.kernels)
    assert "without grid barriers" in placed.program.explain()
    tilewright.compile(
        two_softmaxes(),
        "cuda:h200",
        grid_sync=False,
        dump_dir=tmp_path / "without",
        cache=False,
        tuning=False,
    )
    placed.driver.learn(tmp_path / "without")
    placed.check(placed.program(*placed.inputs))
    assert placed.driver.counts["cuLaunchCooperativeKernel"] == 0


def test_what_lives_until_the_process_ends_says_nothing() -> None:
    code = """
from stand_in_cuda import StandInCuda
from tilewright.runtime.cuda import Cuda
cuda = Cuda(StandInCuda())
kept = [cuda.allocate(8), cuda.stream(), cuda.event()]
"""
    folder = str(Path(__file__).parent)
    search = os.pathsep.join([folder, *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_for_processors_take_no_tensors_on_a_gpu(program: tilewright.Program, x: np.ndarray) -> None:
    with pytest.raises(
        InputError, match=r"input 'x': it is on a GPU, and this .*; copy it there, as x\.cpu\(\) does"
    ):
        program(Tensor(x))


def test_a_graph_needs_a_gpu(program: tilewright.Program, x: np.ndarray) -> None:
    with pytest.raises(ProgramError, match="it cannot be captured into a CUDA graph: it runs on processors"):
        program.bind(x, graph=True)
