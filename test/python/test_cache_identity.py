"""The compiler in the key of a compilation, and hashes of files that are remembered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cache_key_cases import Key
from cache_key_cases import key as key
from tilewright.cache import build
from tilewright.cache.hashes import Hashes
from tilewright.ir.native import native
from tilewright.runtime.held import HeldFile


def test_an_edit_of_the_python_sources_changes_the_key(
    key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "tilewright"
    shutil.copytree(build._PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    before = key()
    monkeypatch.setattr(build, "_PACKAGE", copy)
    assert key() == before
    with (copy / "api/fuse.py").open("a") as file:
        file.write("# changed\n")
    assert key() != before


def test_the_identity_has_the_extension_module_and_the_compilers(tmp_path: Path) -> None:
    identity = build.compiler_identity(Hashes(tmp_path))
    library = Path(str(native.__file__))
    assert identity[library.name] == HeldFile(library, may_map=True).digest()
    assert identity["iree-base-compiler"] == "3.13.0"


def test_the_identity_is_the_same_beside_bindings_of_others(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from tilewright.cache.build import compiler_identity\n"
        "from tilewright.cache.hashes import Hashes\n"
        "before = compiler_identity(Hashes(pathlib.Path(sys.argv[1])))\n"
        "import iree.compiler.ir\n"
        "assert compiler_identity(Hashes(pathlib.Path(sys.argv[1]))) == before\n"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True, env=path)


def test_a_remembered_hash_saves_reading_and_a_changed_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    digest = HeldFile.digest

    def counted(file: HeldFile) -> str:
        read.append(file.path.name)
        return digest(file)

    monkeypatch.setattr(HeldFile, "digest", counted)
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    first = Hashes(tmp_path / "hashes").digest(path)
    assert Hashes(tmp_path / "hashes").digest(path) == first
    assert read == ["weights"]
    times = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # tools that copy times do this
    assert Hashes(tmp_path / "hashes").digest(path) != first
    assert read == ["weights", "weights"]


def test_a_damaged_memory_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    first = Hashes(tmp_path / "hashes").digest(path)
    [memory] = (tmp_path / "hashes").iterdir()
    memory.write_text('{"path": 3}')
    assert Hashes(tmp_path / "hashes").digest(path) == first


def test_hashes_need_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    assert Hashes(path / "no folder").digest(path) == HeldFile(path, may_map=True).digest()


def test_a_folder_has_no_hash(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no regular file"):
        Hashes(tmp_path / "hashes").digest(tmp_path)
