"""`load` reads what `save` writes; damaged files are refused; a failed save leaves nothing behind."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.runtime.description import signed

Array = np.ndarray[Any, Any]


@pytest.fixture
def saved(program: tilewright.Program, tmp_path: Path) -> Path:
    return program.save(tmp_path / "attention.vmfb")


def test_a_loaded_program_computes_the_same(program: tilewright.Program, saved: Path, x: Array) -> None:
    loaded = tilewright.load(saved)
    for a, b in zip(program(x), loaded(x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_everything_known_survives(program: tilewright.Program, saved: Path) -> None:
    loaded = tilewright.load(saved)
    assert loaded.explain("json") == program.explain("json")
    assert loaded.kernels == program.kernels
    assert repr(loaded) == repr(program)


def test_the_files_are_the_three_that_are_promised(saved: Path) -> None:
    assert sorted(path.name for path in saved.parent.iterdir()) == [
        "attention.irpa",
        "attention.json",
        "attention.vmfb",
    ]


def test_the_suffix_is_added(program: tilewright.Program, tmp_path: Path) -> None:
    assert program.save(tmp_path / "attention").name == "attention.vmfb"


def test_threads_can_be_chosen_at_load(saved: Path, x: Array, expected: list[Array]) -> None:
    loaded = tilewright.load(saved, threads=np.int64(1))  # type: ignore[arg-type]
    assert loaded.metadata.threads == 1
    np.testing.assert_allclose(loaded(x)[0], expected[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threads", [0, -1, 65, "two"])
def test_threads_that_cannot_be_are_refused(saved: Path, threads: Any) -> None:
    with pytest.raises(tilewright.ProgramError, match="is not possible; IREE's CPU runtime takes 1 to 64"):
        tilewright.load(saved, threads=threads)


def test_the_caller_keeps_its_place_with_the_scheduler(saved: Path, x: Array) -> None:
    before = os.sched_getscheduler(0)
    program = tilewright.load(saved, threads=2)
    program(x)
    assert os.sched_getscheduler(0) == before
    with pytest.raises(tilewright.InputError):
        program(x[:1])
    assert os.sched_getscheduler(0) == before


def test_workers_that_fill_the_machine_have_a_core_each() -> None:
    code = """
import os, time
from pathlib import Path
from tilewright.system.cores import available_cores, fills_machine
from tilewright.runtime.devices import device_for

def eventually(holds):  # a worker names and places itself after its start
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)

def workers():
    tasks = [Path("/proc/self/task", task) for task in os.listdir("/proc/self/task")]
    named = (t for t in tasks if (t / "comm").read_text().startswith("iree-worker"))
    return {t.name: os.sched_getaffinity(int(t.name)) for t in named}

cores = max(2, available_cores())
device_for(cores)
eventually(lambda: len(workers()) == cores)
if fills_machine(cores):
    eventually(lambda: len(set(map(frozenset, workers().values()))) == cores)
placed = set(workers())
device_for(cores + 1)
eventually(lambda: len(workers()) == 2 * cores + 1)
allowed = os.sched_getaffinity(0)
assert all(cpus == allowed for task, cpus in workers().items() if task not in placed)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_loaded_program_saves_again(saved: Path, tmp_path: Path, x: Array) -> None:
    copy = tilewright.load(saved).save(tmp_path / "copy.vmfb")
    assert (tmp_path / "copy.irpa").stat().st_ino != saved.with_suffix(".irpa").stat().st_ino
    np.testing.assert_array_equal(tilewright.load(copy)(x)[0], tilewright.load(saved)(x)[0])


def test_saving_over_itself_works(saved: Path, x: Array) -> None:
    loaded = tilewright.load(saved)
    before = loaded(x)[0]
    loaded.save(saved)
    np.testing.assert_array_equal(tilewright.load(saved)(x)[0], before)


def test_iree_run_module_runs_the_same_files(saved: Path, x: Array, expected: list[Array]) -> None:
    np.save(saved.parent / "x.npy", x)
    command = [
        str(Path(sys.executable).parent / "iree-run-module"),
        "--device=local-task",
        f"--module={saved}",
        f"--parameters=model={saved.with_suffix('.irpa')}",
        "--function=attention",
        f"--input=@{saved.parent / 'x.npy'}",
        f"--output=@{saved.parent / 'y.npy'}",
        f"--output=@{saved.parent / 'scores.npy'}",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    np.testing.assert_allclose(np.load(saved.parent / "y.npy"), expected[0], rtol=1e-5, atol=1e-6)


# Damaged files


def test_a_missing_module_is_named(tmp_path: Path) -> None:
    with pytest.raises(tilewright.ProgramError, match=r"nothing\.vmfb: no such file"):
        tilewright.load(tmp_path / "nothing.vmfb")


def test_missing_weights_are_named(saved: Path) -> None:
    saved.with_suffix(".irpa").unlink()
    with pytest.raises(tilewright.ProgramError, match=r"attention\.irpa: the program's weights are missing"):
        tilewright.load(saved)


@pytest.mark.parametrize("suffix", [".vmfb", ".irpa", ".json"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.99])
def test_truncated_files_are_refused(saved: Path, suffix: str, kept: float) -> None:
    path = saved.with_suffix(suffix)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(tilewright.ProgramError) as error:
        tilewright.load(saved)
    assert path.stem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_changed_module_is_refused_before_it_is_loaded(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[len(data) // 2] ^= 1
    saved.write_bytes(data)
    with pytest.raises(tilewright.ProgramError, match="truncated, changed or replaced"):
        tilewright.load(saved)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_a_truncated_module_without_description_is_refused(saved: Path, kept: float) -> None:
    saved.with_suffix(".json").unlink()
    data = saved.read_bytes()
    saved.write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(tilewright.ProgramError, match="not a compiled module"):
        tilewright.load(saved)


@pytest.mark.parametrize(
    ("member", "new"),
    [
        ("format", 99),
        ("parameters", 3),
        ("inputs", None),
        ("module", {"bytes": 1}),
        ("module", {"bytes": "1", "sha256": ""}),
        ("parameters", {"model": {"bytes": 1, "sha256": None}}),
        ("report", {"kernels": [1]}),
        ("threads", 10**9),
        ("threads", [2]),
        ("device", "hello"),
        ("capability", 80),
        ("variants", {"x86-64-avx2": 1}),
    ],
)
def test_a_wrong_description_is_refused(saved: Path, member: str, new: Any) -> None:
    path = saved.with_suffix(".json")
    path.write_text(json.dumps(signed({**json.loads(path.read_text()), member: new})))
    with pytest.raises(tilewright.ProgramError):
        tilewright.load(saved)


def _members(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of all members; of a list only the first item, since all items are alike."""
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for name, value in items:
        yield from _members(value, (*path, name))


def test_a_member_of_another_kind_is_refused_or_does_not_matter(
    saved: Path, pytestconfig: pytest.Config
) -> None:
    path = saved.with_suffix(".json")
    text = path.read_text()
    refused = 0
    kinds: list[Any] = [None, -1, 1.5, True, "?", [], {}, [None], {"?": None}]
    turns = 1 if pytestconfig.getoption("--all") else 3
    for number, (*outer, last) in enumerate(_members(json.loads(text))):
        for wrong in kinds[number % turns :: turns]:
            data = inner = json.loads(text)
            for name in outer:
                inner = inner[name]
            inner[last] = wrong
            path.write_text(json.dumps(signed(data)))
            try:
                assert tilewright.load(saved).explain()
            except tilewright.TilewrightError:
                refused += 1
    assert refused > 100 // turns


def test_a_description_that_nests_without_end_is_refused(saved: Path) -> None:
    saved.with_suffix(".json").write_text("[" * 100_000)
    with pytest.raises(tilewright.ProgramError, match="malformed description"):
        tilewright.load(saved)


def test_a_description_cannot_name_files_elsewhere(saved: Path) -> None:
    path = saved.with_suffix(".json")
    data = json.loads(path.read_text())
    data["parameters"] = {"../../etc/attention": data["parameters"]["model"]}
    path.write_text(json.dumps(signed(data)))
    with pytest.raises(
        tilewright.ProgramError, match=r"/attention\.\.\.%2F\.\.%2Fetc%2Fattention\.irpa: .* missing"
    ):
        tilewright.load(saved)


def test_a_module_without_description_runs_but_knows_nothing(
    saved: Path, x: Array, expected: list[Array]
) -> None:
    saved.with_suffix(".json").unlink()
    loaded = tilewright.load(saved, verify=False)
    assert loaded.kernels == ()
    assert "attention.json is missing" in loaded.explain()
    np.testing.assert_allclose(loaded(x)[0], expected[0], rtol=1e-5, atol=1e-6)


# Output that cannot be written


def test_an_unwritable_folder_is_an_error(program: tilewright.Program, tmp_path: Path) -> None:
    with pytest.raises(tilewright.OutputError, match=r"missing/a\.vmfb"):
        program.save(tmp_path / "missing" / "a.vmfb")
    blocker = tmp_path / "file"
    blocker.touch()
    with pytest.raises(tilewright.OutputError):
        program.save(blocker / "a.vmfb")


def test_folders_and_devices_are_no_files(program: tilewright.Program, tmp_path: Path) -> None:
    for folder in (tmp_path, ".", "new/"):
        with pytest.raises(tilewright.OutputError, match="is a folder; give the name of a file in it"):
            program.save(folder)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(tilewright.OutputError, match="is a device or a pipe"):
        program.save(tmp_path / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_full_disk_leaves_what_was_there(
    saved: Path, assert_no_leftovers: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A limit on file sizes acts like a full disk. Links need no space, so copies are made. Python would leave the first
    # 2 KiB of compiled modules for all later processes.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "a.json").write_text("previous")
    loaded = tilewright.load(saved)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    try:
        with pytest.raises(tilewright.OutputError, match="MB") as error:
            loaded.save(folder / "a.vmfb")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(error.value)
    assert_no_leftovers(folder)
    assert [path.name for path in folder.iterdir()] == ["a.json"]
    assert (folder / "a.json").read_text() == "previous"
