"""Models with open dims: fixed, bounded, and compiled for the shapes that a program is called with."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tilewright
from click.testing import CliRunner
from dynamic_models import assert_right, encoder, inputs_of, layer_norm, mlp
from open_dims_cases import cache as cache
from open_dims_cases import compile as compile
from open_dims_cases import path as path
from open_dims_cases import settle
from tilewright.api.recompilation import Recompilation
from tilewright.cli.main import cli
from tilewright.errors import CompileError, InputError, ModelError, ProgramError

MLIR = """
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>) -> tensor<?x16xf32> {
  %product = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %e = stablehlo.exponential %product : tensor<?x16xf32>
  return %e : tensor<?x16xf32>
}
"""


pytestmark = pytest.mark.usefixtures("full_priority")


@pytest.mark.parametrize(
    "make, names", [(layer_norm, ("batch", "x.1")), (mlp, ("x.0",)), (encoder, ("batch", "seq"))]
)
def test_fixed_dims_make_a_static_program(make: Any, names: tuple[str, ...], compile: Any) -> None:
    model, sizes = make(), (3, 7)[: len(names)]
    program = compile(model, dims=dict(zip(names, sizes, strict=True)))
    assert all(isinstance(size, int) for spec in program.signature.inputs for size in spec.shape)
    assert program.kernels and not any("dynamic" in op.reason for op in program.metadata.report.left_to_iree)
    inputs = inputs_of(model, *sizes)
    assert_right(model, inputs, program(*inputs))


@pytest.mark.parametrize("make, shapes", [(mlp, [(11,), (12,)]), (encoder, [(3, 7)])])
def test_shapes_get_kernels_after_their_first_call(
    make: Any, shapes: list[tuple[int, ...]], compile: Any
) -> None:
    model = make()
    program = compile(model)
    for sizes in shapes:
        inputs = inputs_of(model, *sizes)
        assert_right(model, inputs, program(*inputs))
    settle(program)
    for sizes in shapes:
        inputs = inputs_of(model, *sizes)
        assert_right(model, inputs, program(*inputs))
    assert [(shape.state, shape.kernels > 0, shape.calls) for shape in program.shapes] == [
        ("ready", True, 2)
    ] * len(shapes)


def test_threads_call_different_shapes(compile: Any) -> None:
    model = mlp()
    program = compile(model)

    def call(rows: int) -> None:
        inputs = inputs_of(model, rows)
        for _ in range(20):
            assert_right(model, inputs, program(*inputs))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, [11, 12, 11, 12]))
    settle(program)
    assert [shape.calls for shape in program.shapes] == [40, 40]


def test_explain_says_what_became_of_shapes(compile: Any) -> None:
    model = layer_norm()
    program = compile(model, dims={"seq": (1, 512)})
    program(*inputs_of(model, 2, 5))
    settle(program)
    text = program.explain()
    assert "dim batch: any" in text and "dim seq: 1 to 512" in text
    assert "shape batch=2, seq=5: 1 fused kernels, after " in text
    (shape,) = program.explain("json")["shapes"]
    assert shape["sizes"] == {"batch": 2, "seq": 5} and shape["state"] == "ready"


@pytest.mark.parametrize("seq", [0, 513])
def test_sizes_out_of_bounds_are_refused(seq: int, compile: Any, tmp_path: Path) -> None:
    model = layer_norm()
    program = compile(model, dims={"seq": (1, 512)})
    loaded = tilewright.load(program.save(tmp_path / "norm.vmfb"))
    for each in (program, loaded):
        with pytest.raises(InputError) as error:
            each(np.zeros((2, seq, 24), np.float32))
        assert (
            str(error.value)
            == f"input 'x': dim 1 ('seq') is {seq}, but the program was compiled for 1 to 512"
        )


def test_sizes_that_contradict_each_other_are_refused(compile: Any, path: Path) -> None:
    x, _ = inputs_of(encoder(), 2, 5)
    with pytest.raises(InputError, match=r"input 'mask': dim 1 \('seq'\) is 6, but it is 5 in input 'x'"):
        compile(path)(x, np.zeros((2, 6), np.float32))


@pytest.mark.parametrize(
    "dims, message",
    [
        ({"length": 3}, "no dim of its inputs is called 'length'; it has: batch, seq"),
        ({"length": (3, 4)}, "no dim of its inputs is called 'length'; it has: batch, seq"),
        ({"batch": 1, "x.0": 2}, "dims says two things of 'batch'"),
    ],
)
def test_unknown_dims_are_refused(dims: Any, message: str, compile: Any) -> None:
    with pytest.raises(ModelError, match=message):
        compile(layer_norm(), dims=dims)


@pytest.mark.parametrize("choice", [0, -1, True, 1.5, (2, 1), (1, 2, 3), [], [0], "x", None])
def test_malformed_dims_are_refused(choice: Any) -> None:
    with pytest.raises(CompileError, match="of 'seq'; give a size from 1, a pair"):
        tilewright.compile(layer_norm(), dims={"seq": choice})


def test_a_failing_shape_stays_with_the_dynamic_program(
    compile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, calls = layer_norm(), itertools.count()

    def fail(*_: Any, **__: Any) -> Any:
        next(calls)
        raise CompileError("a planted failure")

    program = compile(model)
    monkeypatch.setattr(Recompilation, "one", fail)
    inputs = inputs_of(model, 2, 6)
    for _ in range(3):
        assert_right(model, inputs, program(*inputs))
        settle(program)
    assert next(calls) == 1, "it is tried once"
    assert (
        "shape batch=2, seq=6: IREE's dynamic program, because its own failed: a planted failure"
        in program.explain()
    )
    with pytest.raises(CompileError, match="a planted failure"):
        program.build(batch=2, seq=6)


def test_the_cache_serves_shapes_in_another_process(cache: Path, compile: Any, path: Path) -> None:
    program = compile(path)
    program.build(batch=3, seq=7)
    code = (
        "import sys, time, numpy as np, tilewright\n"
        "program = tilewright.compile(sys.argv[1], threads=1, cache=sys.argv[2])\n"
        "program.build(batch=3, seq=7)\n"
        "print(program.shapes[0].origin)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, path, cache],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.stdout.startswith("from the compilation cache, compiled ")


def test_a_model_that_changed_is_not_mixed_with_the_first(compile: Any, tmp_path: Path) -> None:
    changing = tmp_path / "model.onnx"
    onnx.save(layer_norm(), changing)
    compile(changing)
    program = compile(changing)  # from the cache, so that the model is read again for a shape
    onnx.save(mlp(), changing)
    with pytest.raises(CompileError, match="the model has changed since it was compiled"):
        program.build(batch=1, seq=19)


def test_an_import_outlives_its_model(compile: Any, tmp_path: Path) -> None:
    model, gone = mlp(), tmp_path / "model.onnx"
    onnx.save(model, gone)
    program = tilewright.compile(gone, threads=1, cache=False)
    gone.unlink()
    program.build({"x.0": 11})
    inputs = inputs_of(model, 11)
    assert_right(model, inputs, program(*inputs))


def test_mlir_dims_go_by_position(compile: Any) -> None:
    x, w = (np.random.default_rng(1).standard_normal(shape).astype(np.float32) for shape in ((5, 8), (8, 16)))
    wanted = np.exp(x.astype(np.float64) @ w)
    program = compile(MLIR, dims={"input0.0": 5})
    assert program.kernels
    ahead = compile(MLIR, dims={"input0.0": [5, 3]})
    dynamic = compile(MLIR)
    dynamic.build({"input0.0": 5})
    for each in (program, ahead, dynamic):
        # A sum of eight terms and exp in f32, at values up to exp(10).
        assert np.allclose(each(x, w)[0], wanted, rtol=1e-4)
    assert ahead.kernels and dynamic.shapes[0].kernels


def test_a_program_dies_with_its_process_while_it_compiles(path: Path, cache: Path, compile: Any) -> None:
    compile(path)
    code = (
        "import sys, time, numpy as np, tilewright\n"
        "program = tilewright.compile(sys.argv[1], threads=1, cache=sys.argv[2])\n"
        "program(np.zeros((1, 29, 24), np.float32), np.ones((1, 29), np.float32))\n"
        "while program.shapes[0].state != 'compiling': time.sleep(0.01)\n"
        "time.sleep(0.5)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, path, cache], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_command_line_takes_dims(cache: Path, tmp_path: Path) -> None:
    model, output = tmp_path / "norm.onnx", tmp_path / "norm.vmfb"
    onnx.save(layer_norm(), model)
    arguments = ["compile", str(model), "-o", str(output), "--threads", "1", "--cache", str(cache)]
    result = CliRunner().invoke(cli, [*arguments, "--dims", "batch=2,seq=4,13"])
    assert result.exit_code == 0, result.output
    assert len(tilewright.load(output).metadata.shapes) == 2


@pytest.mark.parametrize("text", ["seq", "=3", "seq=x", "seq=3:2", "seq=1:2:3", "seq=0", "seq=1,seq=2"])
def test_the_command_line_refuses_malformed_dims(text: str, path: Path) -> None:
    result = CliRunner().invoke(cli, ["compile", str(path), "--dims", text])
    assert result.exit_code == 2 and "--dims" in result.output


def test_a_program_of_fixed_shapes_builds_no_more(program: tilewright.Program) -> None:
    with pytest.raises(ProgramError, match="its shapes are fixed"):
        program.build(batch=1)


def test_builds_need_a_size_for_every_dim(compile: Any, path: Path) -> None:
    with pytest.raises(CompileError, match="no size is given for 'seq'"):
        compile(path).build(batch=1)
