"""The programs that a dynamic program keeps for shapes: which are compiled, kept and dropped. Nothing is compiled."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from tilewright.errors import CompileError, CompileTimeoutError, ProgramError
from tilewright.records.dims import Dim
from tilewright.runtime import background
from tilewright.runtime.background import Background
from tilewright.runtime.buckets import Rows
from tilewright.runtime.shapes import Shapes
from tilewright.system.deadline import Deadline


class FakeProgram:
    """A program without code; `defect` is why it cannot be loaded."""

    kernels = (1, 2)
    cache_notes = ()

    def __init__(self, defect: str = "") -> None:
        self.defect = defect

    def load(self) -> None:
        if self.defect:
            raise ProgramError(self.defect)


class FakeCompile:
    """Notes what it is asked for, and answers once it may."""

    def __init__(self, answer: Callable[[Mapping[str, int]], Any] = lambda sizes: FakeProgram()) -> None:
        self.asked: list[dict[str, int]] = []
        self.may = threading.Event()
        self.may.set()
        self._answer = answer

    def one(self, sizes: Mapping[str, int], *, background_deadline: Deadline | None = None) -> Any:
        self.asked.append(dict(sizes))
        assert self.may.wait(30)
        return self._answer(sizes)

    def rows(
        self, sizes: Mapping[str, int], larger: Mapping[str, int], *, background_deadline: Deadline
    ) -> Rows | str:
        return "its rows depend on each other"

    def all(self, shapes: Sequence[Mapping[str, int]]) -> Any:
        return [dict(sizes) for sizes in shapes]


@pytest.fixture(autouse=True)
def own_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    own = Background()
    monkeypatch.setattr(background, "background", own)
    yield
    own.release()


def make(
    compile: FakeCompile, *, most: int = 16, dims: Mapping[str, Dim] | None = None, **options: Any
) -> Shapes:
    return Shapes(compile, names=["seq"], dims={"seq": Dim(), **(dims or {})}, most=most, **options)


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def states(shapes: Shapes) -> dict[int, str]:
    return {shape.sizes["seq"]: shape.state for shape in shapes.all()}


def test_a_shape_is_compiled_at_its_first_call_and_runs_then() -> None:
    shapes = make(compile := FakeCompile())
    assert shapes.find({"seq": 3}) is None
    wait_for(lambda: states(shapes) == {3: "ready"})
    assert isinstance(shapes.find({"seq": 3}), FakeProgram)
    assert compile.asked == [{"seq": 3}]


def test_the_least_recently_used_program_goes_first() -> None:
    shapes = make(FakeCompile(), most=2)
    for seq in (1, 2):
        shapes.find({"seq": seq})
    wait_for(lambda: states(shapes) == {1: "ready", 2: "ready"})
    shapes.find({"seq": 1})
    for _ in range(2):
        shapes.find({"seq": 3})
    wait_for(lambda: states(shapes) == {1: "ready", 3: "ready"})


def test_a_shape_that_comes_once_replaces_none() -> None:
    shapes = make(compile := FakeCompile(), most=1)
    shapes.find({"seq": 1})
    wait_for(lambda: states(shapes) == {1: "ready"})
    for seq in range(2, 8):
        shapes.find({"seq": seq})
    assert states(shapes) == {1: "ready", **dict.fromkeys(range(2, 8), "seen")}
    assert compile.asked == [{"seq": 1}]


def test_what_is_remembered_of_shapes_is_bounded() -> None:
    shapes = make(FakeCompile(), most=0)
    for seq in range(1, 1000):
        shapes.find({"seq": seq})
    assert len(shapes.all()) < 100


def test_a_shape_that_was_built_is_kept() -> None:
    shapes = make(FakeCompile(), most=1)
    shapes.build([{"seq": 1}])
    for seq in (2, 3):
        for _ in range(2):
            shapes.find({"seq": seq})
        wait_for(lambda seq=seq: states(shapes).get(seq) == "ready")  # type: ignore[misc]
    assert states(shapes) == {1: "ready", 3: "ready"}


def test_a_failure_is_kept_and_not_tried_again() -> None:
    def fail(sizes: Mapping[str, int]) -> Any:
        raise CompileError("no such luck")

    shapes = make(compile := FakeCompile(fail))
    for _ in range(3):
        assert shapes.find({"seq": 3}) is None
        wait_for(lambda: states(shapes) == {3: "failed"})
    assert len(compile.asked) == 1
    assert shapes.all()[0].error == "no such luck"


def test_a_program_that_does_not_load_is_a_failure() -> None:
    shapes = make(FakeCompile(lambda sizes: FakeProgram("no such device")))
    shapes.build([{"seq": 3}])
    assert shapes.find({"seq": 3}) is None
    assert states(shapes) == {3: "failed"} and shapes.all()[0].error == "no such device"


def test_a_caller_may_build_what_failed() -> None:
    answers = iter([CompileError("at first"), FakeProgram()])

    def answer(sizes: Mapping[str, int]) -> Any:
        if isinstance(given := next(answers), Exception):
            raise given
        return given

    shapes = make(FakeCompile(answer))
    shapes.find({"seq": 3})
    wait_for(lambda: states(shapes) == {3: "failed"})
    shapes.build([{"seq": 3}])
    assert shapes.find({"seq": 3}) is not None


def test_empty_shapes_get_no_program() -> None:
    shapes = make(FakeCompile())
    assert shapes.find({"seq": 0}) is None
    assert states(shapes) == {0: "seen"}


def test_only_listed_sizes_get_a_program() -> None:
    shapes = make(FakeCompile(), dims={"seq": Dim(ahead=(3,))})
    for seq in (3, 4):
        shapes.find({"seq": seq})
    wait_for(lambda: states(shapes) == {3: "ready", 4: "seen"})


def test_shapes_of_the_module_itself_are_not_compiled_and_are_saved() -> None:
    shapes = make(compile := FakeCompile(), ahead=[{"seq": 3}])
    assert shapes.find({"seq": 3}) is None
    assert shapes.save_as_one() is None
    shapes.build([{"seq": 3}, {"seq": 4}])
    assert compile.asked == [{"seq": 4}]
    assert shapes.save_as_one() == [{"seq": 3}, {"seq": 4}]  # type: ignore[comparison-overlap]


def test_many_threads_compile_a_shape_once() -> None:
    shapes = make(compile := FakeCompile())
    compile.may.clear()
    threads = [threading.Thread(target=lambda: shapes.find({"seq": 3})) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    compile.may.set()
    wait_for(lambda: states(shapes) == {3: "ready"})
    assert len(compile.asked) == 1 and shapes.all()[0].calls == 16


def test_what_waits_is_dropped_with_its_program() -> None:
    busy = make(held := FakeCompile())
    held.may.clear()
    busy.find({"seq": 1})
    wait_for(lambda: states(busy) == {1: "compiling"})
    shapes = make(compile := FakeCompile())
    shapes.find({"seq": 2})
    gone = weakref.ref(shapes)
    del shapes
    gc.collect()
    assert gone() is None
    held.may.set()
    busy.find({"seq": 3})
    wait_for(lambda: states(busy) == {1: "ready", 3: "ready"})
    assert not compile.asked


def test_work_is_cancelled_when_the_interpreter_ends() -> None:
    own, begun, cancelled = Background(), threading.Event(), threading.Event()

    def work(deadline: Deadline) -> None:
        with deadline.if_cancelled(cancelled.set):
            begun.set()
            assert cancelled.wait(30)
        with pytest.raises(CompileTimeoutError, match="the compilation was cancelled in: a step"):
            deadline.check("a step")

    own.add(work)
    assert begun.wait(30)
    own.release()
    assert cancelled.is_set()


def test_cancelling_comes_late_but_is_not_missed() -> None:
    deadline, cancelled = Deadline(None), threading.Event()
    deadline.cancel()
    with deadline.if_cancelled(cancelled.set):
        assert cancelled.is_set()
