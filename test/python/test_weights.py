"""A program runs with its own weights or not at all, wherever its files are and however they change."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from conftest import make_model, value
from onnx import helper
from parameter_files import archive, two_products
from tilewright.runtime import held
from tilewright.runtime.held import PIECE_BYTES, TICK_NS, HeldFile

Array = np.ndarray[Any, Any]

ROWS, DEPTH, WIDTH = 3, 1031, 1201
"""Sizes of a product whose 4.95 MB of weights are more than one piece, so that they are mapped."""

SMALL = (5, 33, 17)
"""Sizes of a product whose weights are copied into memory."""


def product(rows: int, depth: int, width: int) -> tuple[onnx.ModelProto, Array]:
    w = np.random.default_rng().standard_normal((depth, width)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return make_model([node], [value("x", [rows, depth])], [value("y", [rows, width])], {"w": w}), w


class Case:
    """A compiled product, with its expected result."""

    def __init__(self, rows: int, depth: int, width: int) -> None:
        model, self.w = product(rows, depth, width)
        self.program = tilewright.compile(model, threads=1)
        self.x = np.random.default_rng().standard_normal((rows, depth)).astype(np.float32)

    def check(self, program: tilewright.Program) -> None:
        """Checks the result: an f32 sum of n normal products is off by a few sqrt(n) roundings of its terms."""
        exact = self.x.astype(np.float64) @ self.w.astype(np.float64)
        tolerance = 4 * np.sqrt(self.w.shape[0]) * np.finfo(np.float32).eps * np.abs(exact).max()
        np.testing.assert_allclose(program(self.x)[0], exact, rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def large() -> Case:
    return Case(ROWS, DEPTH, WIDTH)


@pytest.fixture(scope="module")
def other_large() -> Case:
    return Case(ROWS, DEPTH, WIDTH)


@pytest.fixture(scope="module")
def small() -> Case:
    return Case(*SMALL)


@pytest.fixture(scope="module")
def other_small() -> Case:
    return Case(*SMALL)


@pytest.fixture(params=["small", "large"])
def case(request: pytest.FixtureRequest) -> Case:
    made: Case = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def other(request: pytest.FixtureRequest, case: Case) -> Case:
    """A program of the same model with other weights, whose files have the same sizes."""
    made: Case = request.getfixturevalue("other_large" if case.w.shape[0] == DEPTH else "other_small")
    return made


@pytest.fixture
def saved(case: Case, tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    return case.program.save(folder / "product.vmfb")


def files_of(module: Path) -> list[Path]:
    return [module.with_suffix(suffix) for suffix in (".vmfb", ".irpa", ".json")]


def copy_to(module: Path, folder: Path, stem: str | None = None) -> Path:
    """Copies a program's three files, under another name if one is given."""
    folder.mkdir(exist_ok=True)
    for path in files_of(module):
        shutil.copy(path, folder / f"{stem or module.stem}{path.suffix}")
    return folder / f"{stem or module.stem}.vmfb"


def flip(path: Path, offset: int) -> None:
    """Changes one byte in place."""
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def content_hash(path: Path) -> str:
    return HeldFile(path, may_map=True).digest()


# Files that do not belong together


def test_weights_of_another_program_are_refused(saved: Path, other: Case, tmp_path: Path) -> None:
    theirs = other.program.save(tmp_path / "theirs.vmfb")
    weights = saved.with_suffix(".irpa")
    expected, found = content_hash(weights), content_hash(theirs.with_suffix(".irpa"))
    assert theirs.with_suffix(".irpa").stat().st_size == weights.stat().st_size
    shutil.copy(theirs.with_suffix(".irpa"), weights)
    message = (
        rf"product\.irpa: it does not contain the weights of product\.vmfb: truncated, changed or replaced "
        rf"\(content hash {found[:12]}\.\.\. instead of {expected[:12]}\.\.\.\); put back the files that were saved"
    )
    with pytest.raises(tilewright.ProgramError, match=message):
        tilewright.load(saved)


def test_a_module_of_another_program_is_refused(small: Case, large: Case, tmp_path: Path) -> None:
    mine, theirs = small.program.save(tmp_path / "mine.vmfb"), large.program.save(tmp_path / "theirs.vmfb")
    shutil.copy(theirs, mine)
    with pytest.raises(
        tilewright.ProgramError, match=r"mine\.vmfb: it is not the module that mine\.json describes"
    ):
        tilewright.load(mine)


def test_a_description_of_another_program_is_refused(small: Case, large: Case, tmp_path: Path) -> None:
    mine, theirs = small.program.save(tmp_path / "mine.vmfb"), large.program.save(tmp_path / "theirs.vmfb")
    shutil.copy(theirs.with_suffix(".json"), mine.with_suffix(".json"))
    with pytest.raises(
        tilewright.ProgramError, match=r"mine\.vmfb: it is not the module that mine\.json describes"
    ):
        tilewright.load(mine)


def test_a_description_of_the_same_module_with_other_weights_is_refused(
    saved: Path, other: Case, tmp_path: Path
) -> None:
    theirs = other.program.save(tmp_path / "theirs.vmfb")
    shutil.copy(theirs, saved)
    shutil.copy(theirs.with_suffix(".json"), saved.with_suffix(".json"))
    with pytest.raises(
        tilewright.ProgramError, match=r"product\.irpa: it does not contain the weights of product\.vmfb"
    ):
        tilewright.load(saved)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_one_flipped_byte_of_the_weights_is_found(saved: Path, share: float) -> None:
    weights = saved.with_suffix(".irpa")
    flip(weights, int(share * (weights.stat().st_size - 1)))
    with pytest.raises(tilewright.ProgramError, match=r"product\.irpa: .* \(content hash"):
        tilewright.load(saved)


def test_a_changed_description_is_refused(saved: Path) -> None:
    path = saved.with_suffix(".json")
    path.write_text(path.read_text().replace('"threads": 1', '"threads": 2'))
    with pytest.raises(tilewright.ProgramError, match=r"product\.json: it was changed after it was saved"):
        tilewright.load(saved)


def test_a_description_without_hashes_is_refused(saved: Path) -> None:
    path = saved.with_suffix(".json")
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "format": 1, "module_sha256": data.pop("module")["sha256"]}))
    with pytest.raises(
        tilewright.ProgramError, match=r"format 1, this one reads 2.*; compile the model again"
    ):
        tilewright.load(saved)


def test_weights_without_a_description_are_not_taken_unseen(saved: Path, case: Case) -> None:
    saved.with_suffix(".json").unlink()
    missing = r"product\.json: it is missing, so nothing says whether product\.irpa holds the weights of product\.vmfb"
    with pytest.raises(tilewright.ProgramError, match=missing):
        tilewright.load(saved)
    case.check(tilewright.load(saved, verify=False))


def test_who_wants_no_hashing_still_gets_the_size_checked(saved: Path) -> None:
    weights = saved.with_suffix(".irpa")
    flip(weights, weights.stat().st_size - 1)
    tilewright.load(saved, verify=False)
    with weights.open("ab") as file:
        file.write(b"?")
    with pytest.raises(tilewright.ProgramError, match=r"product\.irpa: .* bytes instead of"):
        tilewright.load(saved, verify=False)


def test_the_content_hash_is_that_of_the_hashes_of_the_pieces(tmp_path: Path) -> None:
    data = np.random.default_rng().bytes(2 * PIECE_BYTES + 12345)
    for size in (0, 1, PIECE_BYTES, PIECE_BYTES + 1, len(data)):
        (tmp_path / "file").write_bytes(data[:size])
        pieces = [
            data[start : min(start + PIECE_BYTES, size)] for start in range(0, max(size, 1), PIECE_BYTES)
        ]
        hashes = [hashlib.sha256(piece).digest() for piece in pieces]
        expected = hashes[0] if len(hashes) == 1 else hashlib.sha256(b"".join(hashes)).digest()
        assert content_hash(tmp_path / "file") == expected.hex()


# Moved files


def test_a_copy_under_another_name_reads_its_own_weights(saved: Path, case: Case, other: Case) -> None:
    copy = copy_to(saved, saved.parent, "copy")
    other.program.save(saved)
    loaded = tilewright.load(copy)
    case.check(loaded)
    assert loaded.parameter_paths["model"] == copy.with_suffix(".irpa")
    other.check(tilewright.load(saved))


def test_a_copy_without_weights_does_not_take_those_of_the_original(saved: Path) -> None:
    copy = copy_to(saved, saved.parent, "copy")
    copy.with_suffix(".irpa").unlink()
    with pytest.raises(tilewright.ProgramError, match=r"copy\.irpa: the program's weights are missing"):
        tilewright.load(copy)


def test_renamed_files_load(saved: Path, case: Case) -> None:
    for path in files_of(saved):
        path.rename(path.with_stem("renamed.v2"))
    case.check(tilewright.load(saved.with_stem("renamed.v2")))


def test_a_moved_folder_loads(saved: Path, case: Case, tmp_path: Path) -> None:
    saved.parent.rename(tmp_path / "elsewhere")
    case.check(tilewright.load(tmp_path / "elsewhere" / saved.name))


def test_a_relative_path_holds_when_the_folder_changes(
    saved: Path, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    loaded = tilewright.load(saved.name)
    monkeypatch.chdir(tmp_path)
    case.check(loaded)
    assert loaded.module_path == saved and loaded.parameter_paths == {"model": saved.with_suffix(".irpa")}
    case.check(tilewright.load(loaded.save("again.vmfb")))


def test_a_link_to_a_module_finds_what_lies_beside_the_module(
    saved: Path, case: Case, tmp_path: Path
) -> None:
    link = tmp_path / "current.vmfb"
    link.symlink_to(saved.relative_to(tmp_path))
    case.check(tilewright.load(link))


def test_what_lies_beside_a_link_comes_first(saved: Path, case: Case, other: Case, tmp_path: Path) -> None:
    """The module is a link into a store that names files by their content."""
    store, names = tmp_path / "store", tmp_path / "names"
    names.mkdir()
    for program, stem in ((case.program, "mine"), (other.program, "theirs")):
        for path in files_of(program.save(saved)):
            store.mkdir(exist_ok=True)
            blob = store / hashlib.sha256(path.read_bytes()).hexdigest()
            shutil.copy(path, blob)
            (names / f"{stem}{path.suffix}").symlink_to(blob)
    case.check(tilewright.load(names / "mine.vmfb"))
    other.check(tilewright.load(names / "theirs.vmfb"))


def test_loading_writes_nothing(saved: Path, case: Case) -> None:
    before = [(path, path.stat().st_mtime_ns) for path in sorted(saved.parent.iterdir())]
    saved.parent.chmod(0o555)
    try:
        case.check(tilewright.load(saved))
    finally:
        saved.parent.chmod(0o755)
    assert [(path, path.stat().st_mtime_ns) for path in sorted(saved.parent.iterdir())] == before


def run_stock(
    module: Path, parameters: dict[str, Path], x: Array, folder: Path, *, outputs: int
) -> list[Array]:
    """Returns the results of IREE's own tool."""
    np.save(folder / "x.npy", x)
    results = [folder / f"{number}.npy" for number in range(outputs)]
    command = [
        str(Path(sys.executable).parent / "iree-run-module"),
        "--device=local-sync",
        f"--module={module}",
        *(f"--parameters={scope}={path}" for scope, path in parameters.items()),
        f"--function={tilewright.load(module).metadata.entry}",
        f"--input=@{folder / 'x.npy'}",
        *(f"--output=@{path}" for path in results),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [np.load(path) for path in results]


def test_iree_run_module_runs_a_copy_under_another_name(saved: Path, case: Case, tmp_path: Path) -> None:
    copy = copy_to(saved, tmp_path / "copies", "copy")
    shutil.rmtree(saved.parent)
    weights = {"model": copy.with_suffix(".irpa")}
    (y,) = run_stock(copy, weights, case.x, tmp_path, outputs=1)
    np.testing.assert_array_equal(y, tilewright.load(copy)(case.x)[0])


# Several scopes

SCOPES = ("a/../left", "right")
TWO_SCOPES = two_products(*SCOPES)
WEIGHTS_THEMSELVES = """
util.global private @w = #stream.parameter.named<"a/../left"::"w"> : tensor<33x64xf32>
util.global private @v = #stream.parameter.named<"right"::"w"> : tensor<33x64xf32>
func.func @weights() -> (tensor<33x64xf32>, tensor<33x64xf32>) {
  %w = util.global.load @w : tensor<33x64xf32>
  %v = util.global.load @v : tensor<33x64xf32>
  return %w, %v : tensor<33x64xf32>, tensor<33x64xf32>
}
"""


class Scopes:
    """A program with weights in two files."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng()
        self.weights = {scope: random.standard_normal((33, 64)).astype(np.float32) for scope in SCOPES}
        self.x = random.standard_normal((6, 33)).astype(np.float32)
        self.given = {
            scope: archive(folder / f"given-{number}.irpa", {"w": self.weights[scope]})
            for number, scope in enumerate(SCOPES)
        }
        self.program = tilewright.compile(TWO_SCOPES, threads=1, parameters=self.given)

    def check(self, results: list[Array]) -> None:
        for result, scope in zip(results, SCOPES, strict=True):
            exact = self.x.astype(np.float64) @ self.weights[scope].astype(np.float64)
            # Tolerance of f32 sums of 33 terms
            np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-4)


@pytest.fixture
def scopes(tmp_path: Path) -> Iterator[Scopes]:
    folder = tmp_path / "given"
    folder.mkdir()
    yield Scopes(folder)


def test_every_scope_has_a_file_under_the_name_of_the_module(scopes: Scopes, tmp_path: Path) -> None:
    saved = scopes.program.save(tmp_path / "products.vmfb")
    names = ["products.a%2F..%2Fleft.irpa", "products.json", "products.right.irpa", "products.vmfb"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == names
    for path in [tmp_path / name for name in names]:
        path.rename(tmp_path / path.name.replace("products", "moved", 1))
    for path in scopes.given.values():
        path.unlink()
    moved = tilewright.load(saved.with_stem("moved"))
    scopes.check(moved(scopes.x))
    scopes.check(run_stock(moved.module_path, dict(moved.parameter_paths), scopes.x, tmp_path, outputs=2))


def test_weights_of_another_scope_are_refused(scopes: Scopes, tmp_path: Path) -> None:
    saved = scopes.program.save(tmp_path / "products.vmfb")
    left, right = tilewright.load(saved).parameter_paths.values()
    right.write_bytes(left.read_bytes())
    with pytest.raises(
        tilewright.ProgramError, match=r"right\.irpa: it does not contain the weights of products\.vmfb"
    ):
        tilewright.load(saved)


def test_weights_in_another_format_are_saved_as_irpa(scopes: Scopes, tmp_path: Path) -> None:
    given = {
        scope: safetensors(tmp_path / f"{n}.safetensors", scopes.weights[scope])
        for n, scope in enumerate(SCOPES)
    }
    program = tilewright.compile(WEIGHTS_THEMSELVES, threads=1, parameters=given)
    for again in (program, tilewright.load(program.save(tmp_path / "weights.vmfb"))):
        for result, scope in zip(again(), SCOPES, strict=True):
            np.testing.assert_array_equal(result, scopes.weights[scope])


def safetensors(path: Path, array: Array) -> Path:
    entry = {"dtype": "F32", "shape": array.shape, "data_offsets": [0, array.nbytes]}
    header = json.dumps({"w": entry}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes())
    return path


def test_no_save_replaces_the_weights_of_another_program(scopes: Scopes, small: Case, tmp_path: Path) -> None:
    small.program.save(tmp_path / "products.right.vmfb")
    with pytest.raises(
        tilewright.OutputError,
        match=r"products\.right\.irpa: its weights would replace those of products\.right",
    ):
        scopes.program.save(tmp_path / "products.vmfb")
    small.check(tilewright.load(tmp_path / "products.right.vmfb"))
    saved = scopes.program.save(tmp_path / "other.vmfb")
    with pytest.raises(
        tilewright.OutputError, match=r"other\.right\.irpa: its weights would replace those of other\.vmfb"
    ):
        small.program.save(tmp_path / "other.right.vmfb")
    scopes.check(tilewright.load(saved)(scopes.x))


def test_no_save_replaces_the_weights_that_the_program_was_compiled_from(
    scopes: Scopes, tmp_path: Path
) -> None:
    given = {scope: path.rename(tmp_path / path.name) for scope, path in scopes.given.items()}
    given["right"] = given["right"].rename(tmp_path / "products.right.irpa")
    program = tilewright.compile(TWO_SCOPES, threads=1, parameters=given)
    assert program.parameter_paths["right"] == given["right"], "nothing of it is stored in another way"
    scopes.check(tilewright.load(program.save(tmp_path / "products.vmfb"))(scopes.x))
    given["a/../left"] = given["a/../left"].rename(tmp_path / "other.a%2F..%2Fleft.irpa")
    program = tilewright.compile(TWO_SCOPES, threads=1, parameters=given)
    with pytest.raises(tilewright.OutputError, match=r"left\.irpa: the program was compiled from this file"):
        program.save(tmp_path / "other.vmfb")
    scopes.check(tilewright.compile(TWO_SCOPES, threads=1, parameters=given)(scopes.x))


# Files that change while a program uses them


def test_weights_that_shrink_are_an_error_and_not_the_end(large: Case, tmp_path: Path) -> None:
    saved = large.program.save(tmp_path / "product.vmfb")
    code = """
import os, sys, numpy as np, tilewright
program = tilewright.load(sys.argv[1])
x = np.ones(program.signature.inputs[0].shape, np.float32)
before = program(x)[0]
for size in (100_000, 0):
    os.truncate(sys.argv[1].replace("vmfb", "irpa"), size)
    try:
        program(x)
    except tilewright.ProgramError as error:
        print(error)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    for line, size in zip(ran.stdout.splitlines(), (100_000, 0), strict=True):
        assert (
            f"product.irpa: it was changed while a program was using it: it has {size} bytes instead of"
            in line
        )
        assert "; load the program again, and replace its files by renaming" in line


def test_small_files_may_change_as_they_like(small: Case, tmp_path: Path) -> None:
    saved = small.program.save(tmp_path / "product.vmfb")
    loaded = tilewright.load(saved)
    for path in files_of(saved):
        path.write_bytes(b"")
    small.check(loaded)
    small.check(tilewright.load(loaded.save(tmp_path / "again.vmfb")))


def test_mapped_weights_that_are_written_into_are_not_computed_with(
    large: Case, other_large: Case, tmp_path: Path
) -> None:
    saved, theirs = (
        large.program.save(tmp_path / "mine.vmfb"),
        other_large.program.save(tmp_path / "theirs.vmfb"),
    )
    loaded = tilewright.load(saved)
    large.check(loaded)
    before = saved.with_suffix(".irpa").stat()
    shutil.copyfile(theirs.with_suffix(".irpa"), saved.with_suffix(".irpa"))
    # Some copies preserve times, so the modification time does not show the change.
    os.utime(saved.with_suffix(".irpa"), ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = r"mine\.irpa: it was changed while a program was using it: its content hash is \w{12}\.\.\. instead of"
    with pytest.raises(tilewright.ProgramError, match=changed):
        loaded(large.x)
    with pytest.raises(tilewright.ProgramError, match=changed):
        loaded.save(tmp_path / "again.vmfb")
    assert not list(tmp_path.glob("*again*"))


def test_a_file_is_older_than_a_tick_of_its_clock_when_its_state_is_taken(tmp_path: Path) -> None:
    """Otherwise, a change right afterwards might leave its times unchanged."""
    path = tmp_path / "weights.irpa"
    path.write_bytes(bytes(PIECE_BYTES + 1))
    file = HeldFile(path, may_map=True)
    assert time.time_ns() >= path.stat().st_ctime_ns + TICK_NS
    file.check()
    flip(path, PIECE_BYTES // 2)
    with pytest.raises(tilewright.ProgramError, match=r"weights\.irpa: it was changed"):
        file.check()


def test_what_changes_during_a_call_does_not_become_a_result(
    large: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = large.program.save(tmp_path / "product.vmfb")
    call = tilewright.load(saved).bind(large.x)
    check = HeldFile.check

    def check_and_change(file: HeldFile) -> None:
        check(file)
        flip(file.path, file.size - 1)

    monkeypatch.setattr(HeldFile, "check", check_and_change)
    with pytest.raises(tilewright.ProgramError, match="was changed while a program was using it"):
        call()


def test_a_file_whose_content_stays_may_be_touched_renamed_and_deleted(large: Case, tmp_path: Path) -> None:
    weights = large.program.save(tmp_path / "product.vmfb").with_suffix(".irpa")
    loaded = tilewright.load(tmp_path / "product.vmfb")
    for change in (
        lambda: os.utime(weights),
        lambda: weights.write_bytes(weights.read_bytes()),
        lambda: weights.chmod(0o400),
        lambda: weights.rename(tmp_path / "gone"),
        lambda: (tmp_path / "gone").unlink(),
    ):
        change()
        large.check(loaded)


def test_a_save_over_a_loaded_program_leaves_it_its_weights(saved: Path, case: Case, other: Case) -> None:
    loaded = tilewright.load(saved)
    other.program.save(saved)
    case.check(loaded)
    other.check(tilewright.load(saved))


def test_a_program_whose_files_were_replaced_saves_its_own(
    saved: Path, case: Case, other: Case, tmp_path: Path
) -> None:
    loaded = tilewright.load(saved)
    other.program.save(saved)
    case.check(tilewright.load(loaded.save(tmp_path / "again.vmfb")))


def test_a_large_module_may_change_as_it_likes(
    small: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IREE also reads a module while unloading it, so modules are never mapped."""
    monkeypatch.setattr(held, "PIECE_BYTES", 1000)
    saved = small.program.save(tmp_path / "product.vmfb")
    loaded = tilewright.load(saved)
    os.truncate(saved, 0)
    small.check(loaded)


def test_a_parameter_file_of_the_user_that_changes_is_an_error(
    scopes: Scopes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its expected content is unknown, so a modified time stamp is an error."""
    monkeypatch.setattr(held, "PIECE_BYTES", 1000)
    program = tilewright.compile(WEIGHTS_THEMSELVES, threads=1, parameters=scopes.given)
    assert program.parameter_paths == scopes.given
    for result, scope in zip(program(), SCOPES, strict=True):
        np.testing.assert_array_equal(result, scopes.weights[scope])
    left, _ = scopes.given.values()
    flip(left, left.stat().st_size - 1)
    with pytest.raises(
        tilewright.ProgramError, match=r"given-0\.irpa: it was changed while a program was using it;"
    ):
        program()


# Saves that do not finish


@pytest.mark.parametrize("renames", [0, 1, 2, 3])
def test_a_save_that_is_killed_leaves_the_old_the_new_or_an_error(
    saved: Path, case: Case, other: Case, tmp_path: Path, renames: int
) -> None:
    source = other.program.save(tmp_path / "new.vmfb")
    code = """
import os, signal, sys, tilewright
from pathlib import Path
left, replace = int(sys.argv[3]), Path.replace
def counted(path, target):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return replace(path, target)
Path.replace = counted
tilewright.load(sys.argv[1]).save(sys.argv[2])
"""
    command = [sys.executable, "-c", code, str(source), str(saved), str(renames)]
    ran = subprocess.run(command, check=False)
    assert ran.returncode == (0 if renames == 3 else -signal.SIGKILL)
    if renames == 0:
        case.check(tilewright.load(saved))
    elif renames == 3:
        other.check(tilewright.load(saved))
    else:
        with pytest.raises(tilewright.ProgramError, match="truncated, changed or replaced"):
            tilewright.load(saved)


def test_saves_of_two_processes_do_not_mix(small: Case, other_small: Case, tmp_path: Path) -> None:
    source, target = small.program.save(tmp_path / "source.vmfb"), tmp_path / "product.vmfb"
    code = """
import sys, time, tilewright
from pathlib import Path
replace = Path.replace
def slow(path, target):
    replace(path, target)
    print("renamed", flush=True)
    time.sleep(0.3)
Path.replace = slow
tilewright.load(sys.argv[1]).save(sys.argv[2])
"""
    command = [sys.executable, "-c", code, str(source), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "renamed\n"
        other_small.program.save(target)
    assert process.returncode == 0
    other_small.check(tilewright.load(target))


def test_what_a_killed_save_left_goes_with_the_next(small: Case, tmp_path: Path) -> None:
    left, other = tmp_path / ".product.irpa.abc.tmp", tmp_path / ".product.v2.irpa.abc.tmp"
    for path in (left, other):
        path.touch()
        os.utime(path, (time.time() - 3600,) * 2)
    small.program.save(tmp_path / "product.vmfb")
    assert not left.exists() and other.exists()
    left.touch()
    small.program.save(tmp_path / "product.vmfb")
    assert left.exists(), "another process may have just begun to write it"


def test_a_name_that_is_too_long_for_the_weights_is_an_error(scopes: Scopes, tmp_path: Path) -> None:
    with pytest.raises(tilewright.OutputError, match=r"cannot be written \(File name too long\)"):
        scopes.program.save(tmp_path / f"{'n' * 240}.vmfb")
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


def test_a_file_in_the_way_leaves_the_others_as_they_were(saved: Path, case: Case, other: Case) -> None:
    before = [path.read_bytes() for path in files_of(saved)[:2]]
    saved.with_suffix(".json").unlink()
    saved.with_suffix(".json").mkdir()
    with pytest.raises(tilewright.OutputError, match=r"product\.json: is a folder"):
        other.program.save(saved)
    assert [path.read_bytes() for path in files_of(saved)[:2]] == before


def test_explain_and_run_take_a_copy_under_another_name(saved: Path, tmp_path: Path) -> None:
    copy = copy_to(saved, tmp_path / "copies", "copy")
    shutil.rmtree(saved.parent)
    for command in ("explain", "run"):
        ran = subprocess.run(
            [sys.executable, "-m", "tilewright", command, copy.name],
            cwd=copy.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
    copy.with_suffix(".irpa").write_bytes(bytes(copy.with_suffix(".irpa").stat().st_size))
    assert "it does not contain the weights of copy.vmfb" in subprocess.run(
        [sys.executable, "-m", "tilewright", "run", str(copy)], capture_output=True, text=True, check=False
    ).stderr  # fmt: skip
