"""The boundary to IREE: the worker process, diagnostics, flags, and reading types and modules."""

from __future__ import annotations

import io
import os
import signal
from collections import UserDict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.compare.comparison import count_dispatches
from tilewright.errors import InputError, IreeError, ModelError
from tilewright.iree.compiler import IreeCompiler
from tilewright.iree.flags import merge_flags
from tilewright.iree.text import from_iree, to_iree
from tilewright.records.signature import (
    Signature,
    TensorSpec,
    signature_from_declaration,
    signature_from_types,
)
from tilewright.runtime.inputs import random_inputs
from tilewright.tuning.paired import paired_ratio
from tilewright.worker import process
from tilewright.worker.process import Worker, WorkerDied, lend_worker
from tilewright.worker.wire import read_message, write_message

CPU = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
TWICE = b"""
func.func @twice(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = arith.addf %x, %x : tensor<64xf32>
  return %y : tensor<64xf32>
}"""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with Worker(tmp_path) as started:
        yield started


@pytest.fixture
def iree(worker: Worker) -> IreeCompiler:
    return IreeCompiler(worker)


def test_messages_survive_the_pipe() -> None:
    stream = io.BytesIO()
    write_message(stream, {"a": 1}, b"\0blob")
    write_message(stream, {})
    stream.seek(0)
    assert read_message(stream) == ({"a": 1}, b"\0blob")
    assert read_message(stream) == ({}, b"")
    assert read_message(stream) is None


def test_a_message_cut_short_is_the_end() -> None:
    stream = io.BytesIO()
    write_message(stream, {"a": 1}, b"blob")
    assert read_message(io.BytesIO(stream.getvalue()[:-1])) is None


@pytest.fixture
def _answers_where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Makes workers answer with the folder that they run in."""
    (tmp_path / "where_worker.py").write_text(
        "import os, tempfile\n"
        "from tilewright.worker.serving import main\n"
        "def where(*_):\n"
        "    return {'process': os.getpid(), 'folder': tempfile.gettempdir(),\n"
        "        'directory': os.getcwd(), 'variable': os.environ.get('TILEWRIGHT_ANYTHING')}, b''\n"
        "if __name__ == '__main__':\n"
        "    main('where_worker')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(process, "Worker", partial(Worker, module="where_worker"))


def _where(folder: Path) -> dict[str, Any]:
    """Returns the answer of a worker that is lent for the folder."""
    folder.mkdir()
    with lend_worker(folder) as worker:
        return worker.ask({"request": "where_worker:where"})[0]


@pytest.mark.usefixtures("_answers_where")
def test_kept_compilers_go_on_as_if_they_were_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tilewright.keep_compilers():
        first = _where(tmp_path / "a")
        monkeypatch.setenv("TILEWRIGHT_ANYTHING", "else")
        monkeypatch.chdir(tmp_path)
        second = _where(tmp_path / "b")
    assert first["folder"] == str(tmp_path / "a")
    assert first["variable"] is None
    assert second == {
        "process": first["process"],
        "folder": str(tmp_path / "b"),
        "directory": str(tmp_path),
        "variable": "else",
    }


@pytest.mark.usefixtures("_answers_where")
def test_a_refused_compilation_leaves_its_process_to_the_next(tmp_path: Path) -> None:
    with tilewright.keep_compilers():
        first = _where(tmp_path / "a")
        with pytest.raises(ModelError), lend_worker(tmp_path):
            raise ModelError("refused")
        second = _where(tmp_path / "b")
    assert second["process"] == first["process"]


@pytest.mark.usefixtures("_answers_where")
def test_compilers_are_started_anew_where_it_makes_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tilewright.keep_compilers():
        first = _where(tmp_path / "a")
        with pytest.raises(ZeroDivisionError), lend_worker(tmp_path):  # the worker may have stopped halfway
            raise ZeroDivisionError
        second = _where(tmp_path / "b")
        monkeypatch.setenv("PYTHONHASHSEED", "1")
        third = _where(tmp_path / "c")
    assert len({answer["process"] for answer in (first, second, third)}) == 3


def test_a_dead_worker_is_replaced(worker: Worker, iree: IreeCompiler) -> None:
    iree.compile(TWICE, flags=CPU)
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    with pytest.raises(IreeError, match="SIGKILL"):
        iree.compile(TWICE, flags=CPU)
    assert iree.compile(TWICE, flags=CPU)


@pytest.mark.parametrize("request_", ["dance", "os:getcwd", "tilewright.errors", "tilewright.errors:dance"])
def test_an_unknown_request_is_an_answer(worker: Worker, request_: str) -> None:
    answer, _, _ = worker.ask({"request": request_})
    assert not answer["ok"]


def test_death_says_how(worker: Worker) -> None:
    worker.ask({"request": "dance"})
    assert worker._process is not None
    worker._process.terminate()
    worker._process.wait()
    with pytest.raises(WorkerDied, match="SIGTERM"):
        worker.ask({"request": "dance"})


def test_variables_may_vanish_while_a_process_starts(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may delete an environment variable, as pytest does between tests."""

    class Vanishing(UserDict[str, str]):
        def __iter__(self) -> Iterator[str]:
            names = list(self.data)
            self.data.pop("GONE", None)
            return iter(names)

    monkeypatch.setattr(os, "environ", Vanishing(os.environ, GONE="soon"))
    answer, _, _ = worker.ask({"request": "dance"})
    assert not answer["ok"]


def test_modules_stop_and_resume_between_phases(iree: IreeCompiler) -> None:
    text = iree.compile_to(TWICE, "preprocessing", flags=CPU)
    assert '"util.func"' in text
    assert iree.resume(text.encode(), "preprocessing", flags=CPU)


def test_errors_have_the_position_and_one_line(iree: IreeCompiler) -> None:
    with pytest.raises(IreeError) as error:
        iree.compile(b"func.func @f() -> f32 {\n  return %nothing : f32\n}", flags=CPU, name="mine.mlir")
    assert error.value.location == "mine.mlir:2:10"
    assert "\n" not in str(error.value)


MISSING_OBJECT = b"""
#cpu = #hal.executable.target<"llvm-cpu", "embedded-elf-x86_64">
#layout = #hal.pipeline.layout<constants = 0, bindings = [
  #hal.pipeline.binding<storage_buffer, ReadOnly>, #hal.pipeline.binding<storage_buffer>]>
hal.executable.source private @kernels
    <objects = #hal.executable.objects<{#cpu = [#hal.executable.object<{path = "nowhere.o"}>]}>> {
  hal.executable.export public @k ordinal(0) layout(#layout) count(%d: !hal.device) -> (index, index, index) {
    %c1 = arith.constant 1 : index
    hal.return %c1, %c1, %c1 : index, index, index
  }
  builtin.module {
    llvm.func @k(%0: !llvm.ptr, %1: !llvm.ptr, %2: !llvm.ptr) -> i32 {
      %r = llvm.mlir.constant(0 : i32) : i32
      llvm.return %r : i32
    }
  }
}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = flow.dispatch @kernels::@k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}"""


def test_reasons_that_iree_only_prints_are_in_the_message(iree: IreeCompiler) -> None:
    with pytest.raises(IreeError, match=r"nowhere\.o") as error:
        iree.compile(MISSING_OBJECT, flags=CPU)
    assert "\n" not in str(error.value)


def test_dispatches_of_a_call_are_counted(iree: IreeCompiler) -> None:
    assert count_dispatches(iree.compile_to(TWICE, "stream", flags=CPU)) == 1


def test_later_flags_win() -> None:
    assert merge_flags(["--a=1", "--b"], ["--a=2", "--c"]) == ["--a=2", "--b", "--c"]


def test_large_boolean_constants_are_respelt() -> None:
    bits = np.random.default_rng(0).random(100) < 0.5
    theirs = f'dense<"0x{bits.astype(np.uint8).tobytes().hex().upper()}"> : tensor<100xi1>'
    ours = from_iree(theirs)
    assert len(ours) < len(theirs)
    assert to_iree(ours) == theirs
    assert from_iree("dense<true> : tensor<100xi1>") == "dense<true> : tensor<100xi1>"


# Signatures


@pytest.mark.parametrize(
    ("declaration", "expected"),
    [
        (
            "sync func @f(%input0: tensor<4x?xf32>, %input1: i32) -> (%output0: tensor<bf16>)",
            "(input0: float32[4x?], input1: int32[]) -> (output0: bfloat16[])",
        ),
        ("sync func @f()", "() -> ()"),
        ("sync func @f(%input0: tensor<2xi1> {iree.x = [1, 2]})", "(input0: bool[2]) -> ()"),
        ("sync func @f(%input0: tensor<2xcomplex<f32>>)", "(input0: complex64[2]) -> ()"),
        (
            "sync func @f(%input0: tensor<2x3xf32, #enc<a, b>>, %input1: f64)",
            "(input0: float32[2x3], input1: float64[]) -> ()",
        ),
    ],
)
def test_declarations_of_iree_are_read(declaration: str, expected: str) -> None:
    assert str(signature_from_declaration(declaration)) == expected


def test_types_of_torch_are_read() -> None:
    signature = signature_from_types(["!torch.vtensor<[2,?],si64>", "!torch.vtensor<[],ui8>"], ["tensor<i1>"])
    assert str(signature) == "(input0: int64[2x?], input1: uint8[]) -> (output0: bool[])"
    assert not signature.inputs[1].is_scalar


def test_signatures_survive_json() -> None:
    signature = Signature((TensorSpec("x", "float32", (2, "n", None)),), ())
    assert Signature.from_json(signature.to_json()) == signature


def test_random_inputs_are_the_same_for_a_seed() -> None:
    specs = (
        TensorSpec("x", "float32", ("n", 3)),
        TensorSpec("mask", "int64", (4, 5)),
        TensorSpec("b", "bool", (2,)),
    )
    signature = Signature(specs, ())
    first, second = (random_inputs(signature, seed=7, dims={"n": 2}) for _ in range(2))
    assert [a.shape for a in first] == [(2, 3), (4, 5), (2,)]
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert set(np.unique(first[1])) <= {0, 1}
    assert (first[1][:, 0] == 1).all()
    assert [a.dtype for a in first] == [np.float32, np.int64, np.bool_]


# Statistics


def test_the_interval_holds_the_ratio() -> None:
    rng = np.random.default_rng(0)
    ours = 1 + 0.1 * rng.random(200)
    theirs: Any = 1.5 * ours * (1 + 0.02 * rng.standard_normal(200))
    ratio = paired_ratio(list(theirs), list(ours))
    assert ratio.low <= ratio.value <= ratio.high
    assert abs(ratio.value - 1.5) < 0.02
    assert ratio.high - ratio.low < 0.05


def test_a_drift_of_both_sides_does_not_matter() -> None:
    drift = np.linspace(1, 10, 100)
    ratio = paired_ratio(list(2 * drift), list(drift))
    assert (ratio.value, ratio.low, ratio.high) == (2, 2, 2)


def test_unpaired_times_are_refused() -> None:
    with pytest.raises(InputError):
        paired_ratio([1.0], [1.0, 2.0])
