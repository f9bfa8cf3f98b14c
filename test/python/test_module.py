"""Modules, passes, pipelines, plans and targets as Python objects."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright import Module, Plan, Target, passes
from tilewright.pipelines import OptionValue, nested, pass_text, pipeline

SOFTMAX = """
func.func @softmax(%x: tensor<7x37xf32>) -> tensor<7x37xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %row = tensor.empty() : tensor<7xf32>
  %all = tensor.empty() : tensor<7x37xf32>
  %low_row = linalg.fill ins(%low : f32) outs(%row : tensor<7xf32>) -> tensor<7xf32>
  %zero_row = linalg.fill ins(%zero : f32) outs(%row : tensor<7xf32>) -> tensor<7xf32>
  %max = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<7x37xf32>) outs(%low_row : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<7xf32>
  %exp = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<7x37xf32>, tensor<7xf32>) outs(%all : tensor<7x37xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<7x37xf32>
  %sum = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%exp : tensor<7x37xf32>) outs(%zero_row : tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%exp, %sum : tensor<7x37xf32>, tensor<7xf32>) outs(%all : tensor<7x37xf32>) {
  ^bb0(%e: f32, %s: f32, %o: f32):
    %d = arith.divf %e, %s : f32
    linalg.yield %d : f32
  } -> tensor<7x37xf32>
  return %y : tensor<7x37xf32>
}
"""


def count(module: Module, name: str) -> int:
    return sum(1 for _ in module.operation.walk(name))


# Modules


def test_parses_and_prints() -> None:
    module = Module.parse(SOFTMAX)
    assert count(module, "linalg.generic") == 4
    assert "linalg.generic" in module.to_text()
    assert '"linalg.generic"' in module.to_text(generic=True)
    assert "operations" in repr(module)


def test_dialects_it_does_not_know_pass_through() -> None:
    module = Module.parse(
        '"builtin.module"() ({ %0 = "hal.thing"() {a = #hal.b<1>} : () -> !hal.device }) : () -> ()'
    )
    assert '"hal.thing"() {a = #hal.b<1>} : () -> !hal.device' in module.to_text()


def test_operations_carry_place_and_types() -> None:
    text = 'func.func @f(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 loc("layer/add") return %y : f32 }'
    add = next(Module.parse(text).operation.walk("arith.addf"))
    assert str(add.location) == "layer/add"
    assert [str(result.type) for result in add.results] == ["f32"]


def test_text_that_does_not_parse_is_an_error_with_the_position() -> None:
    with pytest.raises(tilewright.ModelError) as error:
        Module.parse("func.func @f() {\n  wrong\n}", name="mine.mlir")
    assert error.value.where == "mine.mlir:2:3"


def test_a_clone_is_independent() -> None:
    module = Module.parse(SOFTMAX)
    copy = module.clone()
    copy.run("builtin.module(func.func(tile-raise))")
    assert count(copy, "tile.expr") > 0
    assert count(module, "tile.expr") == 0


# Passes


def test_passes_are_functions() -> None:
    module = Module.parse(SOFTMAX)
    passes.raise_tensor_exprs(module)
    assert count(module, "linalg.generic") == 0
    assert count(module, "tile.expr") >= 4
    passes.compose_exprs(module)
    module.verify()


def test_every_pass_is_there_and_documented() -> None:
    contracts = "".join(
        path.read_text() for path in (Path(__file__).parents[2] / "passes").rglob("Passes.td")
    )
    assert len(passes.__all__) == contracts.count('Pass<"tile-')
    for name in passes.__all__:
        assert getattr(passes, name).__doc__


def test_options_are_typed_keywords() -> None:
    module = Module.parse(SOFTMAX)
    positional: Any = passes.convert_to_vector
    with pytest.raises(TypeError):
        positional(module, "cpu")
    with pytest.raises(tilewright.PassError, match="pdp11"):
        passes.convert_to_vector(module, target="pdp11")


def test_analyses_answer_with_remarks() -> None:
    remarks = passes.print_tensor_graph(Module.parse(SOFTMAX))
    assert remarks
    assert all(remark.severity == "remark" for remark in remarks)


def test_declined_opportunities_are_remarks_with_reasons() -> None:
    text = """
    func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
      %y = linalg.exp ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32> loc("layer/exp")
      return %y : tensor<?xf32>
    }"""
    (remark,) = passes.raise_tensor_exprs(Module.parse(text))
    assert (remark.message, remark.location) == ("dynamic shape", "layer/exp")
    assert (remark.category, remark.outcome) == ("tile-raise", "missed")


def test_a_pipeline_is_text() -> None:
    text = pipeline("canonicalize", nested("func.func", pass_text("tile-raise"), "tile-compose"))
    assert text == "builtin.module(canonicalize,func.func(tile-raise,tile-compose))"
    module = Module.parse(SOFTMAX)
    module.run(text)
    assert count(module, "tile.expr") > 0


def test_options_are_written_as_mlir_reads_them() -> None:
    options: dict[str, OptionValue] = {"count": 3, "flag": True, "path": "a b/c.o", "list": [1, 2]}
    assert (
        pass_text("p", {**options, "none": None, "empty": ""})
        == "p{count=3 flag=true path='a b/c.o' list=1,2}"
    )


def test_a_path_with_spaces_reaches_the_pass(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    module = Module.parse(SOFTMAX)
    options = {"object-path": str(folder / "kernels.o"), "report": str(folder / "report.json")}
    module.run(pipeline(pass_text("tilewright-cpu", options)))
    assert (folder / "kernels.o").exists()
    assert (folder / "report.json").exists()


@pytest.mark.parametrize("text", ["builtin.module(no-such-pass)", "builtin.module(", "tile-raise{a=1}", ""])
def test_a_pipeline_that_does_not_parse_is_an_error(text: str) -> None:
    with pytest.raises(tilewright.PassError):
        Module.parse(SOFTMAX).run(text)


def test_a_failing_pass_tells_op_and_place_and_how_to_reproduce_it() -> None:
    text = """
    func.func @f(%x: f64) -> f64 {
      %y = math.exp %x : f64 loc("layer/exp")
      return %y : f64
    }"""
    with pytest.raises(tilewright.PassError) as error:
        passes.lower_math(Module.parse(text))
    assert error.value.operation == "math.exp"
    assert error.value.location == "layer/exp"
    assert error.value.reproducer is not None
    again = subprocess.run(shlex.split(error.value.reproducer), capture_output=True, text=True, check=False)
    assert again.returncode != 0
    assert error.value.message in again.stderr


def test_a_failing_pass_tells_numbers_that_a_caller_can_act_on() -> None:
    text = """
    tile.program @too_much_shared_memory outputs 1 {
    ^bb0(%x: !tile.slice<64xf32, global>):
      tile.parallel [64] tiles [64] workgroups 1 {
      tile.walk {
      ^bb0(%i: index):
        %b = tile.alloc at 0 : !tile.slice<30000xf32, block>
      }
      }
    }"""
    with pytest.raises(tilewright.PassError, match="a block needs 120000 bytes") as error:
        Module.parse(text).run("builtin.module(tile-convert-to-gpu{target=sm_86})")
    assert error.value.numbers == {"excess_block_bytes": 120000 - 101376}


def test_the_ir_after_every_pass_goes_to_a_folder(tmp_path: Path) -> None:
    Module.parse(SOFTMAX).run("builtin.module(func.func(tile-raise,tile-compose))", dump_directory=tmp_path)
    assert {path.name.partition("_tile-")[2] for path in tmp_path.rglob("*.mlir")} >= {"raise.mlir"}


# Plans


@pytest.fixture
def plan(program: tilewright.Program) -> Plan:
    made = program.plan
    assert made is not None
    return made


def test_a_plan_survives_json(plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.kernels[0].name in str(plan)


def test_a_changed_plan_is_carried_out(plan: Plan, model_path: Path) -> None:
    part = plan.kernels[0].groups[0]
    rows = next(i for i, extent in enumerate(part.extents) if extent == 7)
    part.tiles[rows] = 3 if part.tiles[rows] != 3 else 2
    for op in part.ops:
        op.blocking = None  # it depends on the tiles
    changed = tilewright.compile(model_path, plan=plan, threads=[2])
    assert changed.kernels[0].groups[0].tiles[rows] == part.tiles[rows]


def test_an_illegal_plan_is_refused_with_the_reason(plan: Plan, model_path: Path) -> None:
    plan.kernels[0].groups[0].tiles[0] = -5
    with pytest.raises(tilewright.PlanError, match="tile") as error:
        tilewright.compile(model_path, plan=plan, threads=[2])
    assert "\n" not in str(error.value)


def test_a_misspelt_member_is_named(plan: Plan) -> None:
    data = plan.to_json()
    data["kernels"][0]["nmae"] = data["kernels"][0].pop("name")
    with pytest.raises(tilewright.PlanError, match=r"name|nmae"):
        Plan.from_json(data)


# Targets


def test_targets_are_data() -> None:
    target = Target.lookup("x86-64-avx512")
    assert target.vector_bytes == 64
    assert target.levels[0].name == "L1"
    assert Target.from_json(target.to_json()) == target
    assert "x86-64-avx512" in tilewright.known_targets()


def test_any_field_can_be_overridden(tmp_path: Path) -> None:
    smaller = dataclasses.replace(Target.lookup("x86-64-avx2"), block_bytes=4096)
    smaller.save(tmp_path / "small.json")
    assert Target.lookup(tmp_path / "small.json").block_bytes == 4096


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"base": "x86-64-avx2", "cores": "two"}, "cores"),
        ({"base": "x86-64-avx2", "colour": 1}, "colour"),
        ({"base": "pdp11"}, "pdp11"),
        ({}, "missing"),
    ],
)
def test_a_wrong_target_is_refused_with_the_field(data: dict[str, object], message: str) -> None:
    with pytest.raises(tilewright.TargetError, match=message):
        Target.from_json(data)


def test_a_target_of_ones_own_compiles(model_path: Path) -> None:
    target = dataclasses.replace(Target.lookup("cpu"), name="mine")
    assert tilewright.compile(model_path, target=target, threads=1).metadata.target == "mine"
