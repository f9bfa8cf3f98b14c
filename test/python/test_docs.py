"""The documents stay correct: their Python runs, and the pass table names every pass."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide"
DESIGN = ROOT / "docs" / "design"
REFERENCE = ROOT / "docs" / "reference"


def test_pass_table_names_every_pass() -> None:
    contracts = "".join(path.read_text() for path in (ROOT / "passes").rglob("Passes.td"))
    defined = set(re.findall(r'Pass<"(tile-[a-z-]+)"', contracts))
    listed = set(re.findall(r"^\| `(tile-[a-z-]+)`", (REFERENCE / "passes.md").read_text(), re.MULTILINE))
    assert listed == defined


def test_figures_of_the_long_fuzzing_run_are_those_of_its_file() -> None:
    text = (DESIGN / "testing.md").read_text()
    found = re.search(r"\]\(\.\./\.\./(benchmarks/results/\S+-fuzz\.json)\): (.*?)\n\n", text, re.DOTALL)
    assert found is not None
    result = json.loads((ROOT / found[1]).read_text())
    names = ("graphs", "passed", "passed_and_counted", "ops_in_our_kernels", "ops_eligible")
    assert [int(number) for number in re.findall(r"\d+", found[2])] == [
        *(result[name] for name in names),
        result["rarest_operator"],
    ]


def test_pipeline_document_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (GUIDE / "pipelines.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(blocks[0], names)
    printed = capsys.readouterr().out
    # This is figure 4 of Souffle: one expression whose map is the composition of all three.
    assert printed.count("tile.expr") == 1
    assert "one-relies-on-one" in printed
    assert re.search(r"\(d0, d1\) -> \(d1 \* 2, d0\)", printed)


def test_deploy_document_runs(tmp_path: Path) -> None:
    """Runs its commands one after another, as a shell would; the last one builds a wheel and has a script of its
    own."""
    import numpy as np
    import onnx

    from benchmarks.workloads import build

    model = build("bert-small")
    onnx.save(model, str(tmp_path / "bert-small.onnx"))
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        np.save(tmp_path / f"{value.name}.npy", np.ones(shape, dtype))
    blocks = re.findall(r"```sh\n(.*?)```", (GUIDE / "deploy.md").read_text(), re.DOTALL)
    tools = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for block in blocks[:-1]:
        commands = block.replace("tilewright compile", "python -m tilewright compile")
        ran = subprocess.run(
            ["sh", "-ec", commands], cwd=tmp_path, env={**os.environ, **tools}, capture_output=True
        )
        assert ran.returncode == 0, ran.stderr.decode()
    assert np.isfinite(np.load(tmp_path / "output.npy")).all()


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


def test_a_program_of_ones_own_adds_a_micro_kernel(tmp_path: Path) -> None:
    """Follows extending.md alone: another project finds the compiler in its build folder."""
    if not (ROOT / "build" / "TilewrightConfig.cmake").exists():
        pytest.skip("no build for development at hand")
    text = (GUIDE / "extending.md").read_text()
    text = text[text.index("In C++, a program that links the compiler") :]
    for language, name in (("cpp", "my-opt.cpp"), ("cmake", "CMakeLists.txt")):
        found = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)
        assert found is not None
        (tmp_path / name).write_text(found[1])
    (tmp_path / "model.mlir").write_text(_MATMUL)
    commands = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert commands is not None
    script = commands[1].replace("tilewright compile", "python -m tilewright compile")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-ec", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "TILEWRIGHT": str(ROOT)},
        capture_output=True,
    )
    assert ran.returncode == 0, ran.stdout.decode() + ran.stderr.decode()
    assert "mul_then_add-" in (tmp_path / "plan.json").read_text()
    assert (tmp_path / "model.vmfb").stat().st_size > 0


def test_plan_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx
    import tilewright

    from benchmarks.workloads import build

    (tmp_path / "models").mkdir()
    onnx.save(build("bert-small"), str(tmp_path / "models" / "bert-small.onnx"))
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (GUIDE / "plans.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(blocks[0], names)
    exec(blocks[1], names)
    with pytest.raises(tilewright.TilewrightError, match="does not fit extent"):
        exec(blocks[2], names)


def test_tour_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs its Python as one script, between the commands that make the model and compare."""
    text = (GUIDE / "tour.md").read_text()
    make, compare = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    _sh(make.replace("python ", f"{sys.executable} "), tmp_path, environment)
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), {})
    _sh(compare.replace("tilewright", f"{sys.executable} -m tilewright", 1), tmp_path, environment)


def test_extending_document_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx

    from benchmarks.workloads import build

    text = (GUIDE / "extending.md").read_text()
    dump, opt, *_ = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    onnx.save(build("bert-small"), str(tmp_path / "bert-small.onnx"))
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    _sh(dump.replace("tilewright", f"{sys.executable} -m tilewright", 1), tmp_path, environment)
    _sh(
        opt.replace("tilewright-opt", str(ROOT / "build" / "bin" / "tilewright-opt"), 1),
        tmp_path,
        environment,
    )
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), {})


def test_simulator_document_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DESIGN / "simulator.md").read_text()
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], {})
    assert "past the L2: 4096 bytes read, 4096 written" in capsys.readouterr().out


def _sh(command: str, folder: Path, environment: dict[str, str]) -> None:
    ran = subprocess.run(["sh", "-ec", command], cwd=folder, env=environment, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
