"""`tilewright doctor` on broken installations names everything that is missing, with a hint, and nothing else hides."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tilewright.cli.doctor
from tilewright.cli.doctor import Check, examine


def failed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Check]:
    """Returns the failed checks, without the last one, which compiles."""
    monkeypatch.setattr(tilewright.cli.doctor, "_compile_and_run", lambda: "")
    return {check.name: check for check in examine() if check.ok is False}


def forget_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the native module from the cache, so that it is imported again."""
    monkeypatch.delitem(sys.modules, "tilewright.ir.native", raising=False)
    monkeypatch.delitem(sys.modules, "tilewright._native", raising=False)
    monkeypatch.delattr(tilewright, "_native", raising=False)


def test_a_whole_installation_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(monkeypatch) == {}


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tilewright.cli.doctor, "installed_version", lambda p: None if p == "onnx" else "1")
    checks = failed(monkeypatch)
    assert list(checks) == ["onnx"]
    assert checks["onnx"].finding == "not installed; run: pip install onnx"


def test_another_version_of_iree_is_refused_with_the_one_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.iree.versions.installed_version", lambda _: "3.12.0")
    checks = failed(monkeypatch)
    assert "pip install iree-base-compiler==3.13.0" in checks["iree-base-compiler"].finding


def test_a_module_that_does_not_load_leaves_the_other_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_native(monkeypatch)
    monkeypatch.setitem(sys.modules, "tilewright._native", None)
    checks = failed(monkeypatch)
    assert list(checks) == ["extension module"]
    assert "install the package with pip" in checks["extension module"].finding


def test_a_linux_that_is_too_old_is_told_to_build(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loader:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "tilewright._native":
                raise ImportError("libc.so.6: version `GLIBC_2.36' not found (required by libtilewright.so)")

    forget_native(monkeypatch)
    monkeypatch.setattr(sys, "meta_path", [Loader(), *sys.meta_path])
    assert "build the package here" in failed(monkeypatch)["extension module"].finding


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tilewright.cli.doctor, "find_opt", lambda: "/nowhere/tilewright-opt")
    assert "force-reinstall" in failed(monkeypatch)["tilewright-opt"].finding


def test_a_linker_that_may_not_be_executed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "iree-lld")
    assert "iree-base-compiler==3.13.0" in failed(monkeypatch)["IREE's linker"].finding
