"""The documentation stays correct: its Python and its commands run, page by page, as a reader would run them."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import onnx
import onnx.parser
import pytest
import tilewright
from doc_pages import ROOT, Block, blocks, pages, text_of
from dynamic_models import encoder
from tilewright.cli.main import cli
from tilewright.records.targets import unregister_micro_kernel
from torch_cases import register_by_name

from benchmarks.workloads import build

_RUN_WITH_ALL = (
    "docs/guide/migrating.md",
    "docs/guide/variants.md",
    "docs/guide/gpu.md",
    "docs/guide/processes.md",
)
"""Pages whose blocks take long and show little that other tests do not; `--all` runs them."""

_MATMUL = """
func.func @main(%a: tensor<17x23xf32>, %b: tensor<23x33xf32>) -> tensor<17x33xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<17x33xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<17x33xf32>) -> tensor<17x33xf32>
  %c = linalg.matmul ins(%a, %b : tensor<17x23xf32>, tensor<23x33xf32>)
      outs(%init : tensor<17x33xf32>) -> tensor<17x33xf32>
  return %c : tensor<17x33xf32>
}
"""


def _runnable(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.language in ("python", "sh") and not block.not_run]


def _cases() -> list[Any]:
    lands = {
        page
        for page in pages()
        if page not in _RUN_WITH_ALL and any(not block.with_all for block in _runnable(page))
    }
    return [
        pytest.param(page, marks=[] if page in lands else pytest.mark.full)
        for page in pages()
        if _runnable(page)
    ]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Gives pages the cache that a reader has by default, because many pages compile the same model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pages assume: a model, its inputs, MLIR, and what the compiler dumped of it."""
    folder = tmp_path_factory.mktemp("workspace")
    model = build("bert-small")
    (folder / "models").mkdir()
    for path in (folder / "bert-small.onnx", folder / "models" / "bert-small.onnx"):
        onnx.save(model, str(path))
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        np.save(folder / f"{value.name}.npy", np.ones(shape, dtype))
    np.savez(folder / "inputs.npz", **{path.stem: np.load(path) for path in folder.glob("*.npy")})
    (folder / "model.mlir").write_text(_MATMUL)
    chains = (ROOT / "test" / "passes" / "plan" / "fusion" / "block-order.mlir").read_text()
    (folder / "chain.mlir").write_text(chains.partition("// -----")[0])
    onnx.save(encoder(), str(folder / "encoder.onnx"))
    onnx.save(onnx.parser.parse_model(_decode().STEP), str(folder / "step.onnx"))
    tilewright.compile(model, dump_dir=folder / "dump").save(folder / "bert-small.vmfb")
    return folder


def _decode() -> ModuleType:
    """Returns the example of a decode loop."""
    spec = importlib.util.spec_from_file_location("decode", ROOT / "examples" / "decode.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _names(page: str) -> dict[str, object]:
    """Returns the names that the Python of a page takes as given."""
    if page == "README.md":
        return {name: np.load(f"{name}.npy") for name in ("hidden_states", "attention_mask")}
    if page == "docs/guide/state.md":
        query, key, value = np.ones((3, 1, 4, 1, 16), np.float32)
        keys, mask = np.zeros((1, 4, 64, 16), np.float32), np.zeros((1, 1, 1, 64), np.float32)
        given = {"query": query, "key": key, "value": value, "keys": keys, "mask": mask}
        return {"np": np, "tilewright": tilewright, **given}
    return {}


@pytest.mark.parametrize("page", _cases())
def test_a_page_runs(
    page: str,
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    pytestconfig: pytest.Config,
) -> None:
    """Runs the blocks of a page in order, in one folder and one namespace."""
    if page == "docs/guide/pytorch.md":
        register_by_name()
    folder = tmp_path / "page"
    shutil.copytree(workspace, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TILEWRIGHT_TUNING", str(folder / "tuning.db"))
    names = _names(page)
    for block in blocks(page):
        if block.language == "c":
            (folder / "application.c").write_text(block.text)  # commands before it may compile it
    for block in blocks(page):
        if not block.not_run and (not block.with_all or pytestconfig.getoption("--all")):
            _run(block, names, folder)
    if page in _CLAIMS:
        _CLAIMS[page](capsys.readouterr().out, folder)


def _run(block: Block, names: dict[str, object], folder: Path) -> None:
    if block.language == "sh":
        _sh(block.text, folder)
    elif block.language == "python" and block.raises:
        with pytest.raises(getattr(tilewright, block.raises)):
            exec(block.text, names)
    elif block.language == "python":
        exec(block.text, names)
        # Micro kernels and targets that a page registers would change the plans of later tests in this process.
        for value in names.values():
            if isinstance(value, tilewright.MicroKernel):
                unregister_micro_kernel(value.name)


def _sh(command: str, folder: Path) -> None:
    """Runs a block as a shell does, with the tools of this checkout on PATH."""
    tools = folder / "tools"
    if not tools.exists():
        tools.mkdir()
        (tools / "tilewright").write_text(f'#!/bin/sh\nexec {sys.executable} -m tilewright "$@"\n')
        (tools / "tilewright").chmod(0o755)
        (tools / "python").symlink_to(sys.executable)
    path = [str(tools), str(ROOT / "build" / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    ran = subprocess.run(["sh", "-ec", command], cwd=folder, env=environment, capture_output=True)
    assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()


def _deployed(_printed: str, folder: Path) -> None:
    assert np.isfinite(np.load(folder / "output.npy")).all()


def _composed(printed: str, _folder: Path) -> None:
    """This is figure 4 of Souffle: one expression whose map is the composition of all three."""
    assert printed.count("tile.expr") == 1
    assert "one-relies-on-one" in printed
    assert re.search(r"\(d0, d1\) -> \(d1 \* 2, d0\)", printed)


def _counted(printed: str, _folder: Path) -> None:
    assert "past the L2: 4096 bytes read, 4096 written" in printed


def _rewrote(printed: str, _folder: Path) -> None:
    assert "[8, 64] reduces [1]" in printed
    assert "block is inside a kernel: True" in printed
    assert "arith.mulf" in printed
    assert "passes of the caller ran on the planned module: halve_tiles, canonicalize" in printed


_CLAIMS: dict[str, Callable[[str, Path], None]] = {
    "docs/guide/deploy.md": _deployed,
    "docs/guide/pipelines.md": _composed,
    "docs/guide/python-ir.md": _rewrote,
    "docs/guide/simulator.md": _counted,
}
"""What a page's blocks must have printed or written."""


# Blocks that are not run


@pytest.mark.parametrize("page", pages())
def test_python_is_python(page: str) -> None:
    for block in blocks(page):
        if block.language == "python":
            ast.parse(block.text)


@pytest.mark.parametrize("page", pages())
def test_commands_exist_with_their_options(page: str) -> None:
    wrong = [
        problem
        for block in blocks(page)
        if block.language == "sh"
        for line in re.sub(r"\\\n\s*", "", block.text).splitlines()
        if (problem := _problem(line))
    ]
    assert not wrong


_TOOLS = {
    "cc",
    "cd",
    "cmake",
    "ninja",
    "pip",
    "source",
    "split",
    "iree-run-module",
    "iree-compile",
    "tilewright-opt",
    "python3",
}


def _problem(line: str) -> str:
    """Returns what is wrong with a command, or "" if it could run."""
    words = shlex.split(line, comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words = words[1:]
    if not words:
        return ""
    words = words[words.index("&&") + 1 :] if words[0] == "cd" and "&&" in words else words
    tool = words[0].removeprefix(".venv/bin/")
    if tool == "tilewright":
        return _problem_of_options(line, words[1:])
    if tool == "python" and words[1] == "-m":
        return "" if importlib.util.find_spec(words[2]) else f"no module {words[2]}: {line}"
    if tool == "python":
        return "" if (ROOT / words[1]).exists() else f"no file {words[1]}: {line}"
    if tool.startswith(("scripts/", "examples/", "benchmarks/")):
        return "" if os.access(ROOT / tool, os.X_OK) else f"no script {tool}: {line}"
    return "" if tool in _TOOLS or tool.startswith(("build/", "./")) else f"unknown command: {line}"


def _problem_of_options(line: str, words: list[str]) -> str:
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"no command {words[0]}: {line}"
        command, words = command.commands[words[0]], words[1:]
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    given = {word.partition("=")[0] for word in words if re.match(r"-{1,2}[a-z]", word)}
    return f"no option {min(given - known)}: {line}" if given - known else ""


# A project that uses the compiler


def test_a_program_of_ones_own_adds_a_micro_kernel(tmp_path: Path) -> None:
    """Follows micro-kernels.md alone: another project finds the compiler in its build folder."""
    if not (ROOT / "build" / "TilewrightConfig.cmake").exists():
        pytest.skip("no build for development at hand")
    text = text_of("docs/guide/micro-kernels.md")
    text = text[text.index("In C++, a program that links the compiler") :]
    for language, name in (("cpp", "my-opt.cpp"), ("cmake", "CMakeLists.txt")):
        found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
        assert found is not None
        (tmp_path / name).write_text(found[1])
    (tmp_path / "model.mlir").write_text(_MATMUL)
    commands = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert commands is not None
    _sh(f"export TILEWRIGHT={ROOT}\n{commands[1]}", tmp_path)
    assert "mul_then_add-" in (tmp_path / "plan.json").read_text()
    assert (tmp_path / "model.vmfb").stat().st_size > 0
