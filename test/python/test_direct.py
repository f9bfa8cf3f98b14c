"""Programs that run without IREE: the bits of IREE's runtime, memory of their own, calls from several threads."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright
from click.testing import CliRunner
from onnx import TensorProto
from tilewright.cli.main import cli
from tilewright.errors import InputError, ProgramError
from tilewright.reference.drawing import random_inputs
from tilewright.runtime import direct

from benchmarks.workloads import WORKLOADS, stitch
from benchmarks.workloads.builder import GraphBuilder, layer_norm, linear

Array = np.ndarray[Any, Any]


def _layers(dtype: int = TensorProto.FLOAT) -> Any:
    """Builds two layers, which are several kernels with weights and hand tensors to each other."""
    g = GraphBuilder("layers")
    x = g.input("x", [33, 64], dtype)
    if dtype != TensorProto.FLOAT:
        x = g.op("Cast", x, to=TensorProto.FLOAT)
    y = g.op("Relu", linear(g, x, 64, 200))
    y = g.op("Add", linear(g, y, 200, 64), x)
    total = g.op("ReduceSum", y, g.ints([0]), keepdims=0)  # a whole other order of the elements
    y = g.op("Mul", layer_norm(g, y, 64), total)
    g.output(g.op("Cast", y, to=dtype), [33, 64], dtype)
    g.output(total, [64])
    return g.build()


@pytest.fixture(scope="module", params=[1, 2])
def program(request: pytest.FixtureRequest) -> tilewright.Program:
    return tilewright.compile(_layers(), threads=request.param)


def _input(dtype: Any = np.float32) -> Array:
    drawn: Array = np.random.default_rng().standard_normal((33, 64))
    return drawn.astype(dtype)


def _by_iree(program: tilewright.Program, arrays: Sequence[Array]) -> list[Array]:
    return program.session()(arrays, program.signature)


def _same_bits(left: Sequence[Array], right: Sequence[Array]) -> bool:
    return [array.tobytes() for array in left] == [array.tobytes() for array in right]


def test_the_bits_are_those_of_iree(program: tilewright.Program) -> None:
    x = _input()
    assert program.runtime == "direct"
    assert _same_bits(program(x), _by_iree(program, [x]))


def test_subnormals_are_treated_as_iree_does(program: tilewright.Program) -> None:
    x = _input() * np.float32(1e-39)
    assert _same_bits(program(x), _by_iree(program, [x]))


def test_too_little_memory_for_constants_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise MemoryError("Unable to allocate 8 GiB")

    monkeypatch.setattr(direct, "Constants", refuse)
    with pytest.raises(ProgramError, match="too large for this machine: Unable to allocate 8 GiB; run it on"):
        tilewright.compile(stitch.softmax((3, 7)), threads=1, deploy=False).load()


def test_a_narrow_type_passes_through() -> None:
    program = tilewright.compile(_layers(TensorProto.BFLOAT16), threads=1)
    x = _input(ml_dtypes.bfloat16)
    results = program(x)
    assert results[0].dtype == x.dtype
    assert _same_bits(results, _by_iree(program, [x]))


def test_inputs_may_lie_at_any_address(program: tilewright.Program) -> None:
    x = _input()
    for offset in range(4, 64, 12):
        memory = np.empty(x.nbytes + 128, np.uint8)
        start = -memory.ctypes.data % 64 + offset
        moved = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
        moved[...] = x
        assert _same_bits(program(moved), _by_iree(program, [x]))


def test_inputs_may_have_any_strides(program: tilewright.Program) -> None:
    x = _input()
    assert _same_bits(program(np.asfortranarray(x)), program(x))


def test_elements_may_be_unaligned(program: tilewright.Program) -> None:
    x = _input()
    shifted = np.empty(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    assert _same_bits(program(shifted), program(x))


def test_a_buffer_of_another_library_is_read(program: tilewright.Program) -> None:
    x = _input()
    assert _same_bits(program(x.data), program(x))


def test_results_are_the_callers(program: tilewright.Program) -> None:
    x = _input()
    first = program(x)
    copies = [array.copy() for array in first]
    program(_input())
    assert _same_bits(first, copies)
    first[0][...] = 0  # it can be written


def test_a_bound_call_keeps_its_inputs(program: tilewright.Program) -> None:
    x = _input()
    expected = program(x)
    call = program.bind(x)
    x[...] = 0
    call()
    assert _same_bits(call.outputs(), expected)


def test_calls_from_several_threads_take_turns(program: tilewright.Program) -> None:
    inputs = [_input() for _ in range(4)]
    expected = [program(x) for x in inputs]
    found: dict[int, bool] = {}

    def call(number: int) -> None:
        found[number] = all(_same_bits(program(inputs[number]), expected[number]) for _ in range(50))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), True)


def test_programs_that_are_alive_at_once_have_their_own_code() -> None:
    x = _input()
    programs = [
        tilewright.compile(stitch.softmax((33, 64)), threads=1),
        tilewright.compile(_layers(), threads=1),
    ]
    for program in [*programs, *reversed(programs)]:
        assert _same_bits(program(x), _by_iree(program, [x]))


def test_a_forked_process_has_threads_of_its_own(program: tilewright.Program) -> None:
    x = _input()
    expected = program(x)
    child = os.fork()
    if child == 0:
        os._exit(0 if _same_bits(program(x), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_saved_program_runs_the_same(program: tilewright.Program, tmp_path: Path) -> None:
    x = _input()
    loaded = tilewright.load(program.save(tmp_path / "layers.vmfb"))
    assert loaded.runtime == "direct"
    assert _same_bits(loaded(x), program(x))


def test_large_weights_are_read_where_they_are_mapped(tmp_path: Path) -> None:
    g = GraphBuilder("large")
    g.output(linear(g, g.input("x", [5, 1100]), 1100, 1100), [5, 1100])
    program = tilewright.load(tilewright.compile(g.build(), threads=1).save(tmp_path / "large.vmfb"))
    x = np.random.default_rng().standard_normal((5, 1100)).astype(np.float32)
    assert program.runtime == "direct"
    assert _same_bits(program(x), _by_iree(program, [x]))


def _scaled(*, size: int) -> Any:
    """Builds relu(x · gain / √(variance + 1)), in which the factor of x depends on weights alone."""
    g = GraphBuilder("scaled")
    rng = np.random.default_rng(size)
    gain, variance = (g.constant(rng.random(size, np.float32)) for _ in range(2))
    one = g.constant(np.ones(1, np.float32))
    factor = g.op("Div", gain, g.op("Sqrt", g.op("Add", variance, one)))
    g.output(g.op("Relu", g.op("Mul", g.input("x", [5, size]), factor)), [5, size])
    return g.build()


@pytest.mark.parametrize("size", [7, 5000])
def test_what_depends_on_weights_alone_is_computed_at_load(size: int, tmp_path: Path) -> None:
    """Small weights are constants of the module, large ones are in a file."""
    program = tilewright.compile(_scaled(size=size), threads=1)
    x = np.random.default_rng(1).standard_normal((5, size)).astype(np.float32)
    assert program.runtime == "direct"
    assert program.metadata.launches is not None
    assert len(program.metadata.launches.steps) == len(program.kernels) == 1
    assert _same_bits(program(x), _by_iree(program, [x]))
    loaded = tilewright.load(program.save(tmp_path / "scaled.vmfb"))
    assert _same_bits(loaded(x), program(x))


def test_a_module_alone_has_one_function_that_users_call(tmp_path: Path) -> None:
    """The function that returns what is computed at load is not among them."""
    program = tilewright.compile(_scaled(size=7), threads=1)
    path = program.save(tmp_path / "scaled.vmfb")
    path.with_suffix(".json").unlink()
    x = np.ones((5, 7), np.float32)
    assert _same_bits(tilewright.load(path)(x), program(x))


def test_results_that_no_kernel_makes_are_copied() -> None:
    """An input, a constant, a number without dims, and a result that is given twice."""
    g = GraphBuilder("copies")
    x = g.input("x", [4, 6])
    y = g.op("Relu", g.op("Add", x, x))
    for tensor in (y, x, g.constant(np.arange(24, dtype=np.float32).reshape(4, 6)), y):
        g.output(g.op("Identity", tensor), [4, 6])
    g.output(g.op("Identity", g.scalar(2.5)), [])
    program = tilewright.compile(g.build(), threads=1)
    given = np.random.default_rng(2).standard_normal((4, 6)).astype(np.float32)
    assert program.runtime == "direct"
    results = program(given)
    assert _same_bits(results, _by_iree(program, [given]))
    results[1][...] = results[3][...] = 0  # they are no memory of the caller's input or of another result
    assert given.any() and results[0].any()


def test_types_that_iree_lacks_are_read_as_bytes() -> None:
    g = GraphBuilder("narrow", opset=21)
    x = g.input("x", [8, 16], TensorProto.FLOAT8E4M3FN)
    g.output(g.op("Relu", g.op("Cast", x, to=TensorProto.FLOAT)), [8, 16])
    program = tilewright.compile(g.build(), threads=1)
    given = np.random.default_rng(3).standard_normal((8, 16)).astype(ml_dtypes.float8_e4m3fn)
    assert program.runtime == "direct"
    np.testing.assert_array_equal(program(given)[0], np.maximum(given.astype(np.float32), 0))


def test_what_iree_computes_in_part_runs_in_iree() -> None:
    g = GraphBuilder("running_sums")
    g.output(g.op("CumSum", g.op("Relu", g.input("x", [4, 157])), g.ints([1])), [4, 157])
    assert tilewright.compile(g.build(), threads=1).runtime == "iree"


def test_a_wrong_array_is_refused(program: tilewright.Program) -> None:
    with pytest.raises(InputError, match="float32 is needed"):
        program(_input(np.float64))
    with pytest.raises(InputError, match=r"\(33, 64\)"):
        program(np.zeros((33, 65), np.float32))


def test_kernels_choose_their_variant_by_the_processor() -> None:
    program = tilewright.compile(_layers(), target="x86-64-avx2,x86-64-v2", threads=1)
    x = _input()
    assert program.runtime == "direct"
    assert _same_bits(program(x), _by_iree(program, [x]))


def test_a_kernel_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor without the features of any variant, kernels with variants return an error."""
    monkeypatch.setattr(direct, "_features", lambda bits: 0)
    program = tilewright.compile(stitch.softmax((33, 64)), target="x86-64-avx2,x86-64-v2", threads=1)
    with pytest.raises(ProgramError, match=r"failed while running: kernel \w+ failed"):
        program(_input())


@pytest.mark.lands(one_in=3)
@pytest.mark.parametrize("name", ["bert-small", "nerf", "cnn-64"])
def test_a_whole_model_is_direct(name: str) -> None:
    """Among their constants are biases that are concatenated for a kernel, a weight that is transposed, and the factors
    of batch normalizations, which arithmetic makes of others."""
    model = WORKLOADS[name].build()
    program = tilewright.compile(model, threads=1)
    arrays = random_inputs(model, 3)
    assert program.runtime == "direct"
    assert _same_bits(program(*arrays), _by_iree(program, arrays))


def test_a_trace_has_each_kernel_on_each_thread(program: tilewright.Program) -> None:
    spans = program.trace(_input(), calls=2)
    calls = [span for span in spans if span.name.startswith("call")]
    kernels = [span for span in spans if span not in calls]
    assert len(calls) == 2
    assert len(kernels) == 2 * len(program.kernels) * program.metadata.threads
    assert {span.name for span in kernels} == {kernel.name for kernel in program.kernels}
    assert all(any(call.start <= span.start <= span.end <= call.end for call in calls) for span in kernels)


def test_a_trace_is_written_for_perfetto(model_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    result = CliRunner().invoke(cli, ["run", str(model_path), "--trace", str(path)])
    assert result.exit_code == 0
    events = json.loads(path.read_text())["traceEvents"]
    assert min(event["ts"] for event in events) == 0
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
